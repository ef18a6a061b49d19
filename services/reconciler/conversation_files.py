"""Whether the recorded conversations are still on disk. They are only looked for, never touched."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from registry import AgentRecord
from services.reconciler.sights import Transcript
from shared.errors import MusterError
from shared.fleet import Backend, Fleet
from shared.fleet.needs import variables_of
from shared.transcripts import READERS

EVERY_S = 30.0


@dataclass(frozen=True)
class Found:
    transcript: Transcript = Transcript.UNKNOWN
    moved_to: Path | None = None


@dataclass
class ConversationFiles:
    own: Mapping[str, str]
    """Muster's environment: from it that of an agent is made, which says where it keeps its files."""
    _found: dict[str, tuple[str, float, Found]] = field(default_factory=dict)

    def look(self, fleet: Fleet, records: Mapping[str, AgentRecord], now: float) -> None:
        for agent in self._found.keys() - records.keys():
            del self._found[agent]
        for agent, record in records.items():
            path, at, _ = self._found.get(agent, ("", float("-inf"), None))
            if record.transcript is not None and (path != record.transcript or not 0 <= now - at < EVERY_S):
                self._found[agent] = (record.transcript, now, self._find(fleet, agent, record, Path(record.transcript)))

    def of(self, agent: str, record: AgentRecord | None) -> Found:
        path, _, found = self._found.get(agent, ("", 0.0, Found()))
        return found if record is not None and path == record.transcript else Found()

    def forget(self) -> None:
        self._found.clear()

    def _find(self, fleet: Fleet, agent: str, record: AgentRecord, path: Path) -> Found:
        """Where it was, or anywhere that its reader knows of. What can't be looked at is not gone."""
        try:
            there = path.exists()
            home = path.parent.exists()
        except OSError:
            return Found()
        backend = fleet.backends.get(record.backend)
        reader = READERS.get(backend.transcript or "") if backend is not None else None
        if there and (reader is None or path.suffix != ".db"):
            return Found(Transcript.THERE)
        if reader is None or record.conversation is None:
            return Found(Transcript.GONE if home else Transcript.UNKNOWN)
        place = reader.locate(self._environment(fleet, agent, backend), Path(record.workspace), record.conversation)
        if place is None:
            return Found(Transcript.UNKNOWN if there else Transcript.GONE)
        return Found(Transcript.THERE, place if place != path else None)

    def _environment(self, fleet: Fleet, agent: str, backend: Backend | None) -> Mapping[str, str]:
        if backend is None or agent not in fleet.agents:
            return self.own
        try:
            return variables_of(fleet, agent, backend, self.own)
        except MusterError:
            return self.own
