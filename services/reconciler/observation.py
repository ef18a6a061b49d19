"""One look at the world: tmux each time, processes and the agents' own files less often.

A source that does not answer raises, or leaves its part unknown. It never reads as empty. Conversation files are only
looked for, never touched.
"""

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from registry import AgentRecord
from services.reconciler.classification import Observation, TranscriptFile
from services.reconciler.examination import EXAMINES_FOR_S, PaneExaminer
from services.reconciler.foreign_agents import ForeignAgent, UnstampedPanes
from shared.agents.transcript import READERS
from shared.errors import MusterError
from shared.fleet import Backend, Fleet
from shared.fleet.launch_needs import variables_of
from shared.system.processes import Processes, ProcessesOnDemand
from shared.system.tmux import Pane, PaneStamp, Tmux

FILES_EVERY_S = 30.0
"""How often a recorded conversation's file is looked for."""
TURNS_APART_S = 0.05
"""Each turn reads all of tmux: at least this long between two that nobody asked for."""


@dataclass(frozen=True)
class ConversationFile:
    transcript: TranscriptFile = TranscriptFile.UNKNOWN
    moved_to: Path | None = None


@dataclass
class ConversationFiles:
    environment: Mapping[str, str]
    """Muster's. An agent's environment, which says where its files are, is made from it."""
    _found: dict[str, tuple[str, float, ConversationFile]] = field(default_factory=dict)

    def update(self, fleet: Fleet, records: Mapping[str, AgentRecord], now: float) -> None:
        for agent in self._found.keys() - records.keys():
            del self._found[agent]
        for agent, record in records.items():
            path, at, _ = self._found.get(agent, ("", float("-inf"), None))
            if record.transcript is not None and (path != record.transcript or not 0 <= now - at < FILES_EVERY_S):
                self._found[agent] = (record.transcript, now, self._find(fleet, agent, record, Path(record.transcript)))

    def of(self, agent: str, record: AgentRecord | None) -> ConversationFile:
        path, _, found = self._found.get(agent, ("", 0.0, ConversationFile()))
        return found if record is not None and path == record.transcript else ConversationFile()

    def expire(self) -> None:
        """Have every file looked for again."""
        self._found.clear()

    def _find(self, fleet: Fleet, agent: str, record: AgentRecord, path: Path) -> ConversationFile:
        """Look where it was, then wherever its reader knows. A place that can't be read leaves it unknown."""
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
        place = reader.locate(self._environment_of(fleet, agent, backend), Path(record.workspace), record.conversation)
        if place is None:
            return ConversationFile(TranscriptFile.UNKNOWN if there else TranscriptFile.GONE)
        return ConversationFile(TranscriptFile.THERE, place if place != path else None)

    def _environment_of(self, fleet: Fleet, agent: str, backend: Backend | None) -> Mapping[str, str]:
        if backend is None or agent not in fleet.agents:
            return self.environment
        try:
            return variables_of(fleet, agent, backend, self.environment)
        except MusterError:
            return self.environment


@dataclass(frozen=True)
class World:
    panes: Mapping[str, Pane]
    """The fleet's own panes, by agent."""
    observations: Mapping[str, Observation]
    """Of each agent that is recorded or has a pane."""
    foreign_agents: list[ForeignAgent]
    look_again_s: float | None
    """When to look again though tmux notices nothing."""


class Observer:
    def __init__(self, tmux: Tmux, environment: Mapping[str, str]) -> None:
        self._tmux = tmux
        self._examiner = PaneExaminer()
        self._files = ConversationFiles(environment)
        self._unstamped = UnstampedPanes()

    def stamps(self, fleet: Fleet) -> Set[PaneStamp]:
        """The panes of agents' sessions: the quickest look there is."""
        return self._tmux.stamps(fleet.stamp)

    def look(self, fleet: Fleet, records: Mapping[str, AgentRecord], now: float, *, thoroughly: bool) -> World:
        """Read tmux, and of processes and files what may have changed; `thoroughly`, all of them.

        `records` must have been read before: an agent that starts in between is then not known yet, and never missing.
        """
        panes = self._tmux.look()
        ours = {pane.agent: pane for pane in panes if pane.agent and pane.belongs_to(fleet.stamp)}
        if thoroughly:
            self._examiner.expire()
            self._files.expire()
            self._unstamped.expire()
        # After tmux: what that shows is in it.
        read_processes = cache(Processes.look if thoroughly else ProcessesOnDemand)
        at_most_s = float("inf") if thoroughly else EXAMINES_FOR_S
        next_examination = self._examiner.update(fleet, records, ours, read_processes, now, at_most_s=at_most_s)
        self._files.update(fleet, records, now)
        foreign_agents = list(self._unstamped.look(fleet, panes, read_processes, now))
        observations = {
            agent: self._observation(agent, records.get(agent), ours.get(agent))
            for agent in records.keys() | ours.keys()
        }
        due = [at for at in (next_examination, self._unstamped.next_look) if at is not None]
        return World(ours, observations, foreign_agents, max(TURNS_APART_S, min(due) - now) if due else None)

    def _observation(self, agent: str, record: AgentRecord | None, pane: Pane | None) -> Observation:
        file = self._files.of(agent, record)
        return Observation(pane, self._examiner.of(agent, pane), file.transcript, file.moved_to)
