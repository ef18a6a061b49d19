"""The registrar's records in its journal memory, and how other services read the registry.

The journal is committed with the cursors, so its records are the truth. The file shows them to people and follows as
soon as it can be written.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from registry.file import RegistryFile
from registry.records import AgentRecord
from registry.validation import BadRegistry

if TYPE_CHECKING:  # the CLI reads records too, and starts faster without these
    from shared.messaging.journal import Journal
    from shared.runtime.turn import Turn

REGISTRAR = "registrar"
AGENT_KEY = "agent:"
"""What the keys of agents begin with in the registrar's memory."""
WRITTEN_FIELD = "base"
"""Only in the memory of an agent that the file does not show as it is."""


@dataclass(frozen=True)
class RememberedRecord:
    """One agent in the registrar's memory."""

    record: AgentRecord | None
    """None for an agent that has no record any more, while the file may still show one."""
    written: AgentRecord | None
    """What the file was last written with."""

    def dump(self) -> dict[str, Any]:
        memory: dict[str, Any] = {"record": _dump(self.record)}
        if self.written != self.record:
            memory[WRITTEN_FIELD] = _dump(self.written)
        return memory

    @classmethod
    def load(cls, memory: Mapping[str, Any]) -> "RememberedRecord":
        record = _load(memory["record"])
        return cls(record, _load(memory[WRITTEN_FIELD]) if WRITTEN_FIELD in memory else record)


class MemoryReader:
    """Reads the registrar's memory. A record that did not change since stays the same object."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Any, RememberedRecord]] = {}

    def note(self, agent: str, memory: Mapping[str, Any], remembered: RememberedRecord) -> None:
        """What is about to be remembered: it need not be read again."""
        self._known[f"{AGENT_KEY}{agent}"] = (memory, remembered)

    def agents(self, memory: Mapping[str, Any]) -> Iterator[tuple[str, RememberedRecord]]:
        for key, each in memory.items():
            if key.startswith(AGENT_KEY) and each is not None:
                known = self._known.get(key)
                if known is None or (known[0] is not each and known[0] != each):
                    known = self._known[key] = (each, RememberedRecord.load(each))
                yield key.removeprefix(AGENT_KEY), known[1]

    def records(self, memory: Mapping[str, Any]) -> dict[str, AgentRecord]:
        return {agent: each.record for agent, each in self.agents(memory) if each.record is not None}


class RegistryReader:
    """The records for other services: the file's, or the journal's while the file is missing, broken or behind."""

    def __init__(self, file: RegistryFile, journal: "Journal") -> None:
        self._file = file
        self._journal = journal
        self._memory = MemoryReader()

    def read(self, turn: "Turn") -> Mapping[str, AgentRecord]:
        """All records by agent. A record that did not change since stays the same object."""
        try:
            records = self._file.records()
        except BadRegistry as fault:
            turn.degrade(str(fault))
            return self._from_journal()
        if not self._file.is_there or self._journal.keeps(REGISTRAR, AGENT_KEY, WRITTEN_FIELD):
            return self._from_journal()
        return records

    def _from_journal(self) -> Mapping[str, AgentRecord]:
        return self._memory.records(self._journal.memory(REGISTRAR))


def _dump(record: AgentRecord | None) -> dict[str, Any] | None:
    return record.model_dump(mode="json", exclude_defaults=True) if record is not None else None


def _load(memory: Mapping[str, Any] | None) -> AgentRecord | None:
    return AgentRecord.model_validate(memory) if memory is not None else None
