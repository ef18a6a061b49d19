"""One look at the world: tmux every time, processes and the agents' own files less often.

A source that does not answer raises, or leaves what it would tell unknown. It never reads as empty. Conversation files
are only looked for, never touched.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from registry import AgentRecord
from services.reconciler.comparison import Observation, TranscriptFile
from services.reconciler.examination import AT_ONCE_S, PaneExaminer
from services.reconciler.foreign_agents import Stranger, UnstampedPanes
from shared.agents.transcript import READERS
from shared.contract.ids import is_id
from shared.errors import MusterError
from shared.fleet import Backend, Fleet
from shared.fleet.launch_needs import variables_of
from shared.system.processes import Processes
from shared.system.tmux import Pane, Tmux

EVERY_S = 30.0


@dataclass(frozen=True)
class ConversationFile:
    transcript: TranscriptFile = TranscriptFile.UNKNOWN
    moved_to: Path | None = None


@dataclass
class ConversationFiles:
    own: Mapping[str, str]
    """Muster's environment: from it that of an agent is made, which says where it keeps its files."""
    _found: dict[str, tuple[str, float, ConversationFile]] = field(default_factory=dict)

    def look(self, fleet: Fleet, records: Mapping[str, AgentRecord], now: float) -> None:
        for agent in self._found.keys() - records.keys():
            del self._found[agent]
        for agent, record in records.items():
            path, at, _ = self._found.get(agent, ("", float("-inf"), None))
            if record.transcript is not None and (path != record.transcript or not 0 <= now - at < EVERY_S):
                self._found[agent] = (record.transcript, now, self._find(fleet, agent, record, Path(record.transcript)))

    def of(self, agent: str, record: AgentRecord | None) -> ConversationFile:
        path, _, found = self._found.get(agent, ("", 0.0, ConversationFile()))
        return found if record is not None and path == record.transcript else ConversationFile()

    def forget(self) -> None:
        self._found.clear()

    def _find(self, fleet: Fleet, agent: str, record: AgentRecord, path: Path) -> ConversationFile:
        """Where it was, or anywhere that its reader knows of. What can't be looked at is not gone."""
        try:
            there = path.exists()
            home = path.parent.exists()
        except OSError:
            return ConversationFile()
        backend = fleet.backends.get(record.backend)
        reader = READERS.get(backend.transcript or "") if backend is not None else None
        if there and (reader is None or path.suffix != ".db"):
            return ConversationFile(TranscriptFile.THERE)
        if reader is None or record.conversation is None:
            return ConversationFile(TranscriptFile.GONE if home else TranscriptFile.UNKNOWN)
        place = reader.locate(self._environment(fleet, agent, backend), Path(record.workspace), record.conversation)
        if place is None:
            return ConversationFile(TranscriptFile.UNKNOWN if there else TranscriptFile.GONE)
        return ConversationFile(TranscriptFile.THERE, place if place != path else None)

    def _environment(self, fleet: Fleet, agent: str, backend: Backend | None) -> Mapping[str, str]:
        if backend is None or agent not in fleet.agents:
            return self.own
        try:
            return variables_of(fleet, agent, backend, self.own)
        except MusterError:
            return self.own


SOONEST_S = 0.05
"""Each turn is a whole look at tmux: not sooner than this after the last one, unless somebody says so."""


@dataclass(frozen=True)
class World:
    panes: Mapping[str, Pane]
    """The fleet's sessions, by agent."""
    sights: Mapping[str, Observation]
    """What is seen of each agent that is recorded or runs."""
    strangers: list[Stranger]
    look_again_s: float | None
    """When there is more to see, though nobody will say so."""


class Observer:
    def __init__(self, tmux: Tmux, own: Mapping[str, str]) -> None:
        self._tmux = tmux
        self._insides = PaneExaminer()
        self._files = ConversationFiles(own)
        self._unstamped = UnstampedPanes()

    def stamps(self, fleet: Fleet) -> Mapping[str, str]:
        """Which agents have a session at all."""
        return self._tmux.stamps(fleet.stamp)

    def look(self, fleet: Fleet, records: Mapping[str, AgentRecord], now: float, *, thoroughly: bool) -> World:
        """What tmux says now, and of all else what is new, where it is worth a look; `thoroughly`, all of it.

        `records` were read before: what is started in between is only not known yet, never missing.
        """
        panes = self._tmux.look()
        ours = {pane.agent: pane for pane in panes if pane.agent and is_ours(pane, fleet)}
        if thoroughly:
            self._insides.forget()
            self._files.forget()
            self._unstamped.forget()
        processes = cache(Processes.look)  # one look, and only if somebody asks; what tmux just told is in it
        at_most_s = float("inf") if thoroughly else AT_ONCE_S
        again = [self._insides.look(fleet, records, ours, processes, now, at_most_s=at_most_s)]
        self._files.look(fleet, records, now)
        strangers = list(self._unstamped.look(fleet, panes, processes, now))
        again.append(self._unstamped.next_look)
        sights = {
            agent: self._sight(agent, records.get(agent), ours.get(agent)) for agent in records.keys() | ours.keys()
        }
        soonest = min((at for at in again if at is not None), default=None)
        return World(ours, sights, strangers, None if soonest is None else max(SOONEST_S, soonest - now))

    def _sight(self, agent: str, record: AgentRecord | None, pane: Pane | None) -> Observation:
        kept = self._files.of(agent, record)
        return Observation(pane, self._insides.of(agent, pane), kept.transcript, kept.moved_to)


def is_ours(pane: Pane, fleet: Fleet) -> bool:
    """Whether its stamps are ours. Anybody can change them, and then they are nobody's."""
    return pane.fleet == fleet.stamp and is_id(pane.agent or "") and is_id(pane.spawn or "")
