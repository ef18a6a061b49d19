"""The registrar's records in its journal memory, and how other services read the registry.

The journal is committed with the cursors, so its records are the truth. The file shows them to people and follows as
soon as it can be written.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from registry.file import RegistryFile
from registry.records import AgentRecord
from registry.validation import BadRegistry
from shared.runtime.memory import Memory, MemoryTable

if TYPE_CHECKING:  # the CLI reads records too, and starts faster without these
    from shared.messaging.journal import Journal
    from shared.runtime.turn import Turn


@dataclass(frozen=True)
class OutdatedEntry:
    """What the file was last written with for an agent, where that is not the agent's record."""

    written: AgentRecord | None


REGISTRAR = "registrar"
RECORDS = MemoryTable("agent:", AgentRecord)
OUTDATED = MemoryTable("outdated:", OutdatedEntry)
"""The agents that the file does not show as they are. One without a record may still be in the file."""
OUTDATED_ROWS = (REGISTRAR, OUTDATED.prefix, "written")
"""How the journal is asked whether the file is behind."""


def records_in(memory: Mapping[str, Any]) -> dict[str, AgentRecord]:
    """The records in the registrar's memory as the journal has it."""
    return Memory(memory).all(RECORDS)


class RegistryReader:
    """The records for other services: the file's, or the journal's while the file is missing, broken or behind."""

    def __init__(self, file: RegistryFile, journal: "Journal") -> None:
        self._file = file
        self._journal = journal
        self._from_journal: dict[str, AgentRecord] = {}

    def read(self, turn: "Turn") -> Mapping[str, AgentRecord]:
        """All records by agent. A record that did not change since stays the same object."""
        try:
            records = self._file.records()
        except BadRegistry as fault:
            turn.degrade(str(fault))
            return self._read_journal()
        if not self._file.is_there or self._journal.memory_has_field(*OUTDATED_ROWS):
            return self._read_journal()
        return records

    def _read_journal(self) -> Mapping[str, AgentRecord]:
        known, now = self._from_journal, records_in(self._journal.memory(REGISTRAR))
        self._from_journal = {agent: known[agent] if known.get(agent) == each else each for agent, each in now.items()}
        return self._from_journal
