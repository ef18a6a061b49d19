"""The record from what the journal holds alone. What runs in tmux beside that, the reconciler tells."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from operator import itemgetter
from typing import Any

from registry import AgentRecord, EndedSession, endings, fold
from shared.events import Envelope
from shared.journal import Journal
from shared.topics import AGENT_ACTIVITY, AGENT_DRIFT, AGENT_LIFECYCLE, Malformed, Space, locate

TOLD = (AGENT_LIFECYCLE, AGENT_DRIFT, AGENT_ACTIVITY)


def refold(journal: Journal, space: Space) -> tuple[dict[str, AgentRecord], dict[str, EndedSession]]:
    """Every agent's record and every session's end, as far back as events are kept."""
    records: dict[str, AgentRecord] = {}
    ended: dict[str, EndedSession] = {}
    for _, _, _, envelope in sorted(_in_order(_events(journal, space)), key=itemgetter(0, 1, 2)):
        agent = envelope.data.agent
        before = records.get(agent)
        after = fold(before, envelope)
        ended |= endings(agent, before, after, envelope.time)
        if after is not None:
            records[agent] = after
        else:
            records.pop(agent, None)
    return records, ended


def _in_order(envelopes: Iterable[Envelope[Any]]) -> Iterator[tuple[datetime, str, int, Envelope[Any]]]:
    """Each with a time that never goes back within its source, though the clock may have been set back."""
    latest: dict[str, datetime] = {}
    for each in envelopes:
        latest[each.source] = max(each.time, latest.get(each.source, each.time))
        yield latest[each.source], each.source, each.seq, each


def _events(journal: Journal, space: Space) -> Iterator[Envelope[Any]]:
    for source in journal.sources():
        after = 0
        while entries := journal.entries(source, after):
            for entry in entries:
                located = locate(entry.topic, space.prefix)
                if located is not None and located[0] == space.host and located[1] in TOLD:
                    try:
                        yield located[1].read(entry.payload)
                    except Malformed:  # of a version that this one does not know
                        continue
            after = entries[-1].seq
