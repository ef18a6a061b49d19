"""The records as the registrar keeps them in the journal: what is true while the file can't be read or written."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from registry.records import AgentRecord

AGENT = "agent:"


@dataclass(frozen=True)
class Kept:
    """One agent: its record (None: it has none any more), and what the file was last written with."""

    record: AgentRecord | None
    base: AgentRecord | None

    def dump(self) -> dict[str, Any]:
        kept: dict[str, Any] = {"record": _dump(self.record)}
        if self.base != self.record:
            kept["base"] = _dump(self.base)
        return kept

    @classmethod
    def read(cls, kept: Mapping[str, Any]) -> "Kept":
        record = _read(kept["record"])
        return cls(record, _read(kept["base"]) if "base" in kept else record)


class KeptReader:
    """Reads the registrar's memory; what did not change since is not read again, and stays the same object."""

    def __init__(self) -> None:
        self._read: dict[str, tuple[Any, Kept]] = {}

    def note(self, agent: str, kept: Mapping[str, Any], read: Kept) -> None:
        """What is about to be kept, as it will be read."""
        self._read[f"{AGENT}{agent}"] = (kept, read)

    def agents(self, memory: Mapping[str, Any]) -> Iterator[tuple[str, Kept]]:
        for key, kept in memory.items():
            if key.startswith(AGENT) and kept is not None:
                known = self._read.get(key)
                if known is None or known[0] is not kept:
                    known = self._read[key] = (kept, Kept.read(kept))
                yield key.removeprefix(AGENT), known[1]


def kept_records(memory: Mapping[str, Any]) -> dict[str, AgentRecord]:
    return {agent: kept.record for agent, kept in KeptReader().agents(memory) if kept.record is not None}


def _dump(record: AgentRecord | None) -> dict[str, Any] | None:
    return record.model_dump(mode="json", exclude_defaults=True) if record is not None else None


def _read(kept: Mapping[str, Any] | None) -> AgentRecord | None:
    return AgentRecord.model_validate(kept) if kept is not None else None
