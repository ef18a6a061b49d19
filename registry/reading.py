"""The records as other services read them: the file's, or the registrar's own while the file can't follow."""

from collections.abc import Mapping
from typing import Any

from registry.faults import BadRegistry
from registry.file import RegistryFile
from registry.kept import AGENT, Kept
from registry.records import AgentRecord
from shared.journal import Journal
from shared.turn import Turn

REGISTRAR = "registrar"
BASE = "base"
"""An entry that has it is not in the file as it is kept."""


class Records:
    def __init__(self, file: RegistryFile, journal: Journal) -> None:
        self._file = file
        self._journal = journal
        self._kept: dict[str, tuple[Any, AgentRecord | None]] = {}

    def read(self, turn: Turn) -> Mapping[str, AgentRecord]:
        """What is recorded. A record that did not change since is the same object."""
        try:
            records = self._file.records()
        except BadRegistry as fault:
            # The registrar goes on without the file, and so do we.
            turn.complain(str(fault))
            return self._from_journal()
        if self._journal.keeps(REGISTRAR, AGENT, BASE):
            return self._from_journal()  # it reads well, and can't be written: it tells of long ago
        self._kept = {}
        return records

    def _from_journal(self) -> Mapping[str, AgentRecord]:
        memory = self._journal.memory(REGISTRAR)
        self._kept = {key: self._read(key, kept) for key, kept in memory.items() if key.startswith(AGENT)}
        return {key.removeprefix(AGENT): record for key, (_, record) in self._kept.items() if record is not None}

    def _read(self, key: str, kept: Any) -> tuple[Any, AgentRecord | None]:
        known = self._kept.get(key)
        return known if known is not None and known[0] == kept else (kept, Kept.read(kept).record)
