"""What the registrar holds to be true: kept in the journal, so that it outlives a broken or missing file.

The file shows it to people. While that can't be read or written, the book goes on, and the file follows later.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from registry import AgentRecord, EndedSession, endings, fold
from registry.kept import AGENT, Kept, KeptReader
from shared.events import StatusChanged
from shared.following import Heard
from shared.turn import Turn

ENDED = "ended:"


@dataclass
class Book:
    kept: dict[str, Kept]
    """As it is remembered."""
    records: dict[str, AgentRecord]
    bases: dict[str, AgentRecord | None]
    """Each record as it was last written to the file; None for one that never was."""
    gone: set[str]
    """Agents that have no record any more, though the file may still tell of them."""
    ended: dict[str, EndedSession] = field(default_factory=dict)
    """Sessions whose end the file does not tell yet, by their spawn ids."""
    passed: dict[str, list[AgentRecord]] = field(default_factory=dict)
    """What each record was on its way through this turn: before a crash, it may have been written so."""

    @classmethod
    def open(cls, turn: Turn, reader: KeptReader) -> "Book":
        kept = dict(reader.agents(turn.memory))
        return cls(
            kept=kept,
            records={agent: each.record for agent, each in kept.items() if each.record is not None},
            bases={agent: each.base for agent, each in kept.items()},
            gone={agent for agent, each in kept.items() if each.record is None},
            ended={
                key.removeprefix(ENDED): EndedSession.model_validate(each)
                for key, each in turn.memory.items()
                if key.startswith(ENDED) and each is not None
            },
        )

    def fold(self, heard: Iterable[Heard]) -> None:
        # Services are read one after the other: what an agent is doing may come before the word that it was started.
        for each in sorted(heard, key=lambda one: isinstance(one.envelope.data, StatusChanged)):
            agent = each.envelope.data.agent
            before = self.records.get(agent)
            after = fold(before, each.envelope)
            self.ended |= endings(agent, before, after, each.envelope.time)
            self.put(agent, after)
            if after is not None:
                self.passed.setdefault(agent, []).append(after)

    def begin_with(self, records: Mapping[str, AgentRecord]) -> None:
        """With what the file says, where nothing is remembered: it is of an earlier version, or the journal is new."""
        self.records = dict(records)
        self.bases = dict(records)

    def put(self, agent: str, record: AgentRecord | None) -> None:
        if record is not None:
            self.records[agent] = record
            self.gone.discard(agent)
        elif self.records.pop(agent, None) is not None:
            self.gone.add(agent)

    def begin_anew(self, records: Mapping[str, AgentRecord], ended: Mapping[str, EndedSession]) -> None:
        """With other records, and a file that has none of them."""
        self.records, self.ended = dict(records), dict(ended)
        self.bases = {}
        self.gone = set()

    def written(self) -> None:
        """The file tells all of it now."""
        self.bases = dict(self.records)
        self.gone.clear()
        self.ended.clear()

    def keep(self, turn: Turn, reader: KeptReader) -> None:
        """Have it remembered, together with the place in what this turn has read."""
        for agent in self.records.keys() | self.gone:
            record, base = self.records.get(agent), self.bases.get(agent)
            known = self.kept.get(agent)
            if known is None or known.record is not record or known.base is not base:
                now = Kept(record, base)
                turn.remember(f"{AGENT}{agent}", kept := now.dump())
                reader.note(agent, kept, now)
        for agent in self.kept.keys() - self.records.keys() - self.gone:
            turn.remember(f"{AGENT}{agent}", None)
        for spawn, ended in self.ended.items():
            turn.remember(f"{ENDED}{spawn}", ended.model_dump(mode="json"))
        for key, each in turn.memory.items():
            if key.startswith(ENDED) and each is not None and key.removeprefix(ENDED) not in self.ended:
                turn.remember(key, None)
