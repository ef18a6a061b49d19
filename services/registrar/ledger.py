"""The registrar's records during one turn: from its memory in the journal, and back to it.

They are the truth; the file shows them to people. While the file is missing or can't be read or written, the ledger
continues without it. A rebuild folds the journal's events again; the reconciler adds what runs in tmux besides.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import Any

from registry import AgentRecord, EndedSession
from registry.memory import AGENT_KEY, MemoryReader, RememberedRecord
from services.registrar.fold import endings, fold
from shared.contract.envelope import Envelope
from shared.contract.events.activity import StatusChanged
from shared.contract.topics import AGENT_ACTIVITY, AGENT_DRIFT, AGENT_LIFECYCLE, MalformedDocument, Space, locate
from shared.messaging.cursors import ReceivedEvent
from shared.messaging.journal import Journal
from shared.runtime.turn import Turn

ENDED_KEY = "ended:"


@dataclass
class Ledger:
    remembered: dict[str, RememberedRecord]
    """The memory at the beginning of the turn."""
    records: dict[str, AgentRecord]
    written: dict[str, AgentRecord | None]
    """Each record as the file was last written with it; None if it never was."""
    gone: set[str]
    """Agents without a record that the file may still show."""
    ended: dict[str, EndedSession] = field(default_factory=dict)
    """Ended sessions that the file does not show yet, by spawn id."""
    passed: dict[str, list[AgentRecord]] = field(default_factory=dict)
    """The versions of each record in this turn: one of them may have been written before a crash."""

    @classmethod
    def open(cls, turn: Turn, reader: MemoryReader) -> "Ledger":
        remembered = dict(reader.agents(turn.memory))
        return cls(
            remembered=remembered,
            records={agent: each.record for agent, each in remembered.items() if each.record is not None},
            written={agent: each.written for agent, each in remembered.items()},
            gone={agent for agent, each in remembered.items() if each.record is None},
            ended={
                key.removeprefix(ENDED_KEY): EndedSession.model_validate(each)
                for key, each in turn.memory.items()
                if key.startswith(ENDED_KEY) and each is not None
            },
        )

    def fold(self, received: Iterable[ReceivedEvent]) -> None:
        # Sources are read one after the other: an agent's activity may come before its start.
        for each in sorted(received, key=lambda one: isinstance(one.envelope.data, StatusChanged)):
            agent = each.envelope.data.agent
            before = self.records.get(agent)
            after = fold(before, each.envelope)
            self.ended |= endings(agent, before, after, each.envelope.time)
            self.put(agent, after)
            if after is not None:
                self.passed.setdefault(agent, []).append(after)

    def begin_with(self, records: Mapping[str, AgentRecord]) -> None:
        """Take the file's records, because nothing is remembered: the journal is new."""
        self.records = dict(records)
        self.written = dict(records)

    def put(self, agent: str, record: AgentRecord | None) -> None:
        if record is not None:
            self.records[agent] = record
            self.gone.discard(agent)
        elif self.records.pop(agent, None) is not None:
            self.gone.add(agent)

    def begin_anew(self, records: Mapping[str, AgentRecord], ended: Mapping[str, EndedSession]) -> None:
        """Take other records, of which the file has none."""
        self.records, self.ended = dict(records), dict(ended)
        self.written = {}
        self.gone = set()

    def note_written(self) -> None:
        """The file shows everything now."""
        self.written = dict(self.records)
        self.gone.clear()
        self.ended.clear()

    def remember(self, turn: Turn, reader: MemoryReader) -> None:
        """Store what changed. The turn commits it together with the cursors of what it read."""
        for agent in self.records.keys() | self.gone:
            record, written = self.records.get(agent), self.written.get(agent)
            known = self.remembered.get(agent)
            if known is None or known.record is not record or known.written is not written:
                now = RememberedRecord(record, written)
                turn.remember(f"{AGENT_KEY}{agent}", memory := now.dump())
                reader.note(agent, memory, now)
        for agent in self.remembered.keys() - self.records.keys() - self.gone:
            turn.remember(f"{AGENT_KEY}{agent}", None)
        for spawn, ended in self.ended.items():
            turn.remember(f"{ENDED_KEY}{spawn}", ended.model_dump(mode="json"))
        for key, each in turn.memory.items():
            if key.startswith(ENDED_KEY) and each is not None and key.removeprefix(ENDED_KEY) not in self.ended:
                turn.remember(key, None)


FOLDED = (AGENT_LIFECYCLE, AGENT_DRIFT, AGENT_ACTIVITY)


def refold(journal: Journal, space: Space) -> tuple[dict[str, AgentRecord], dict[str, EndedSession]]:
    """Every agent's record and every ended session, from all events that the journal still has."""
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
    """Each with a time that never goes back within its source, even if the clock was set back."""
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
                if located is not None and located[0] == space.host and located[1] in FOLDED:
                    try:
                        yield located[1].read(entry.payload)
                    except MalformedDocument:  # written by another version of Muster
                        continue
            after = entries[-1].seq
