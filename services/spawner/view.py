"""One turn of the spawner: what is asked, what the fleet file says, what tmux shows, what is remembered."""

import time
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from pathlib import Path

from services.spawner.sessions.memory import AGENTS, AgentMemory
from shared.contract.states import Desired
from shared.errors import MusterError
from shared.fleet import SIDE_SERVICE, Backend, Fleet
from shared.runtime.turn import Turn
from shared.system.tmux import Pane

UNKNOWN = AgentMemory()
WORKS_FOR_S = 1.0
"""A turn begins nothing more after this time: the rest has the next turn, so that what was done is published first."""


class UnknownBackend(MusterError):
    """The fleet file no longer has the backend of what runs."""


@dataclass
class SpawnerView:
    turn: Turn
    fleet: Fleet
    panes: dict[str, Pane]
    """The panes of the fleet's agents, by agent; dead ones too."""
    others: Sequence[Pane]
    """All other panes of the server; the first pane of a session comes before the rest of it."""
    server: str | None = None
    """The tmux server that was looked at; None if none runs."""
    overtaken: frozenset[str] = frozenset()
    """Requests after which another one came for the same agent. They stop waiting."""
    starts: int = 0
    """How many sessions were started in this turn."""
    variables: Set[str] | None = None
    """What every new session gets from the tmux server; None before it was asked for in this turn."""
    _works_until: float = field(default_factory=lambda: time.monotonic() + WORKS_FOR_S)

    @property
    def is_over(self) -> bool:
        """Whether this turn has worked for long enough: what is not begun yet is left to the next one."""
        return time.monotonic() > self._works_until

    @property
    def now(self) -> float:
        return self.turn.now.timestamp()

    def time(self, epoch_s: float) -> datetime:
        return self.turn.now.fromtimestamp(epoch_s, self.turn.now.tzinfo)

    @cached_property
    def strangers(self) -> Mapping[str, Pane]:
        """The first pane that is not ours in each session, by the session's name."""
        return {pane.session: pane for pane in reversed(self.others)}

    def stranger(self, pane_id: str, session: str) -> Pane | None:
        """A pane that is not ours. Its window may be in several sessions: the one with this name is preferred."""
        found = [pane for pane in self.others if pane.pane_id == pane_id]
        return next((pane for pane in found if pane.session == session), found[0] if found else None)

    def known(self, agent: str) -> AgentMemory:
        return self.turn.memory.find(AGENTS, agent) or UNKNOWN

    def remember(self, agent: str, known: AgentMemory) -> None:
        self.turn.memory.put(AGENTS, known, agent)

    def running(self, agent: str) -> Pane | None:
        pane = self.panes.get(agent)
        return pane if pane is not None and not pane.dead else None

    def wish(self, agent: str) -> Desired:
        """Whether the agent should run: as a person asked, else as the fleet file says."""
        wish = self.known(agent).wish
        if wish is not None or agent not in self.fleet.agents:
            return wish or Desired.STOPPED
        return Desired.RUNNING if self.fleet.starts_by_itself(agent) else Desired.STOPPED

    def adopted(self) -> list[str]:
        """Adopted agents that the fleet file does not have."""
        known = self.turn.memory.all(AGENTS)
        return [name for name, each in known.items() if name not in self.fleet.agents and each.is_adopted]

    def backend_name(self, agent: str) -> str:
        """The backend of the newest session, else the declared one."""
        return self.known(agent).session.backend or self.fleet.agents[agent].backend

    def backend(self, agent: str) -> Backend:
        """How to type to the agent that runs; raises UnknownBackend."""
        name = self.backend_name(agent)
        if name == SIDE_SERVICE and agent in self.fleet.declared.services:
            return self.fleet.profile(agent)
        if name not in self.fleet.backends:
            raise UnknownBackend(
                f"{agent} runs on the backend {name!r}, which {self.fleet.path.name} no longer has: how to speak to it"
                " is not known"
            )
        return self.fleet.backends[name]

    def shares_workspace(self, agent: str, backend: str, workspace: Path) -> bool:
        """Whether another agent of this backend works there too: then the newest conversation may be either's."""
        for name, other in self.fleet.agents.items():
            with suppress(MusterError, OSError):  # its directory does not exist
                if name != agent and other.backend == backend and self.fleet.resolve(other.dir) == workspace:
                    return True
        return any(
            (known.session.backend, known.session.workspace) == (backend, str(workspace))
            for name in self.panes
            if name != agent and (known := self.known(name)).had_session
        )
