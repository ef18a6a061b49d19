"""The registrar's records during one turn: from its memory in the journal, and back to it.

These records are the truth, and the file shows them to people. While the file is missing or can't be read or written,
the ledger goes on without it. A rebuild folds the journal's events again, and keeps what they
do not tell of; the reconciler then reports what else runs.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from operator import itemgetter
from typing import Any, TypeVar

from registry import AgentRecord, EndedSession
from registry.memory import OUTDATED, RECORDS, OutdatedEntry
from services.registrar.fold import endings, fold
from shared.contract.envelope import Envelope
from shared.contract.events.activity import StatusChanged
from shared.contract.events.lifecycle import AgentDeleted
from shared.contract.topics import AGENT_ACTIVITY, AGENT_DRIFT, AGENT_LIFECYCLE, MalformedDocument, Space, locate
from shared.messaging.cursors import ReceivedEvent
from shared.messaging.journal import Journal
from shared.runtime.memory import Memory, MemoryTable

ENDED = MemoryTable("ended:", EndedSession)
"""Ended sessions that the file does not show yet, by spawn id."""

Row = TypeVar("Row")


@dataclass
class Ledger:
    records: dict[str, AgentRecord] = field(default_factory=dict)
    written: dict[str, AgentRecord | None] = field(default_factory=dict)
    """Each record as the file was last written with it; None if it never was."""
    gone: set[str] = field(default_factory=set)
    """Agents without a record that the file may still show."""
    ended: dict[str, EndedSession] = field(default_factory=dict)
    """Ended sessions that the file does not show yet, by spawn id."""
    passed: dict[str, list[AgentRecord]] = field(default_factory=dict)
    """The versions of each record in this turn: one of them may have been written before a crash."""

    @classmethod
    def open(cls, memory: Memory) -> "Ledger":
        records, outdated = memory.all(RECORDS), memory.all(OUTDATED)
        return cls(
            records=records,
            written={**records, **{agent: entry.written for agent, entry in outdated.items()}},
            gone=outdated.keys() - records.keys(),
            ended=memory.all(ENDED),
        )

    @property
    def is_empty(self) -> bool:
        return not (self.records or self.gone)

    def fold(self, received: Iterable[ReceivedEvent]) -> None:
        # Sources are read one after the other: an agent's activity may come before its start.
        for each in sorted(received, key=lambda one: isinstance(one.envelope.data, StatusChanged)):
            agent = each.envelope.data.agent
            self.fold_event(agent, each.envelope)
            if agent in self.records:
                self.passed.setdefault(agent, []).append(self.records[agent])

    def fold_event(self, agent: str, envelope: Envelope[Any]) -> None:
        before = self.records.get(agent)
        after = fold(before, envelope)
        self.ended |= endings(agent, before, after, envelope.time)
        self.put(agent, after)

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

    def begin_anew(self, rebuilt: "Ledger") -> None:
        """Take other records, of which the file has none. What no event tells of stays: the journal may be younger than
        its agents."""
        told = {*rebuilt.records, *rebuilt.gone}
        self.records = {**{name: each for name, each in self.records.items() if name not in told}, **rebuilt.records}
        self.ended = {**self.ended, **rebuilt.ended}
        self.written = {}
        self.gone = set()

    def note_written(self) -> None:
        """The file shows everything now."""
        self.written = dict(self.records)
        self.gone.clear()
        self.ended.clear()

    def remember(self, memory: Memory) -> None:
        """Store what changed. The turn commits it together with the cursors of what it read."""
        outdated = {*self.gone, *(agent for agent, record in self.records.items() if self.written.get(agent) != record)}
        _store(memory, RECORDS, self.records)
        _store(memory, OUTDATED, {agent: OutdatedEntry(self.written.get(agent)) for agent in outdated})
        _store(memory, ENDED, self.ended)


def _store(memory: Memory, table: MemoryTable[Row], rows: Mapping[str, Row]) -> None:
    for name in memory.all(table).keys() - rows.keys():
        memory.put(table, None, name)
    for name, row in rows.items():
        memory.put(table, row, name)


FOLDED = (AGENT_LIFECYCLE, AGENT_DRIFT, AGENT_ACTIVITY)


def refold(journal: Journal, space: Space) -> Ledger:
    """Every agent's record and every ended session, from all events that the journal still has."""
    ledger = Ledger()
    for _, _, _, envelope in sorted(_in_order(_events(journal, space)), key=itemgetter(0, 1, 2)):
        ledger.fold_event(envelope.data.agent, envelope)
        if isinstance(envelope.data, AgentDeleted):
            ledger.gone.add(envelope.data.agent)  # also one of an earlier journal
    ledger.gone -= ledger.records.keys()
    return ledger


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
