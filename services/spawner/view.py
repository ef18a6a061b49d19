"""One turn of the spawner: what is asked, what the fleet file says, what tmux shows, what is remembered."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path

from services.spawner.sessions.decision import AgentMemory
from shared.contract.states import Desired
from shared.errors import MusterError
from shared.fleet import SIDE_SERVICE, Backend, Fleet
from shared.runtime.turn import Turn
from shared.system.tmux import Pane

SEED = "seed"
"""Remembered: what this journal's spawn ids are made of."""


class UnknownBackend(MusterError):
    """What runs is not described any more."""


@dataclass
class SpawnerView:
    turn: Turn
    fleet: Fleet
    panes: dict[str, Pane]
    """Where the fleet's agents are, by agent, dead ones too."""
    others: Sequence[Pane]
    """All other panes of the server, a session's first one before its others."""
    server: str | None = None
    """Which tmux server that was; None: none runs."""
    overtaken: frozenset[str] = frozenset()
    """Requests after which something else was asked about the same agent: what waits does not wait on."""
    _read: dict[str, tuple[object, AgentMemory]] = field(default_factory=dict)
    """What was read of the memory. It may outlive the turn: it is held against what is remembered."""

    @property
    def now(self) -> float:
        return self.turn.now.timestamp()

    @cached_property
    def strangers(self) -> Mapping[str, Pane]:
        """The first of somebody else's panes in each session, by the session's name."""
        return {pane.session: pane for pane in reversed(self.others)}

    def stranger(self, pane_id: str, session: str) -> Pane | None:
        """Somebody else's pane. A window may be in several sessions, of which one was named."""
        found = [pane for pane in self.others if pane.pane_id == pane_id]
        return next((pane for pane in found if pane.session == session), found[0] if found else None)

    def known(self, agent: str) -> AgentMemory:
        kept = self.turn.recall(f"agent:{agent}")
        before = self._read.get(agent)
        if before is None or before[0] is not kept:
            before = self._read[agent] = (kept, AgentMemory.read(kept))
        return before[1]

    def remember(self, agent: str, known: AgentMemory) -> None:
        self.turn.remember(f"agent:{agent}", asdict(known))

    def forget(self, agent: str) -> None:
        for what in ("agent", "delivery", "pressing"):
            self.turn.remember(f"{what}:{agent}", None)

    def running(self, agent: str) -> Pane | None:
        pane = self.panes.get(agent)
        return pane if pane is not None and not pane.dead else None

    def wish(self, agent: str) -> Desired:
        """What is wanted of the agent: what somebody asked for, else what the fleet file says."""
        wish = self.known(agent).wish
        if wish is not None or agent not in self.fleet.agents:
            return wish or Desired.STOPPED
        return Desired.RUNNING if self.fleet.starts_by_itself(agent) else Desired.STOPPED

    def adopted(self) -> list[str]:
        """Agents that were taken over and that the fleet file does not have."""
        keys = {**self.turn.memory, **self.turn.remembered}
        names = [key.removeprefix("agent:") for key in keys if key.startswith("agent:")]
        return [name for name in names if name not in self.fleet.agents and self.known(name).adopted]

    def backend_name(self, agent: str) -> str:
        """What runs in the newest session, else what is declared."""
        return self.known(agent).backend or self.fleet.agents[agent].backend

    def backend(self, agent: str) -> Backend:
        """How the agent that runs is to be spoken to; UnknownBackend if the fleet file no longer says."""
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
        """Whether another agent of this kind works there too: then the newest conversation may be either's."""
        for name, other in self.fleet.agents.items():
            with suppress(MusterError, OSError):  # one that leads nowhere is no neighbour
                if name != agent and other.backend == backend and self.fleet.resolve(other.dir) == workspace:
                    return True
        return any(
            (known.backend, known.workspace) == (backend, str(workspace))
            for name in self.panes
            if name != agent and (known := self.known(name)).alive
        )
