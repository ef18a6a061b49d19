"""One turn of the spawner: what is asked, what the fleet file says, what tmux shows, what is remembered."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from services.spawner.decide import Known
from shared.fleet import Backend, Fleet, Kind
from shared.states import Desired
from shared.tmux import Pane
from shared.turn import Turn

SEED = "seed"
"""Remembered: what this journal's spawn ids are made of."""


@dataclass
class Scene:
    turn: Turn
    fleet: Fleet
    panes: dict[str, Pane]
    """The fleet's sessions, by agent, dead ones too."""
    strangers: Mapping[str, Pane]
    """All other sessions of the server, by their names."""
    _read: dict[str, tuple[object, Known]] = field(default_factory=dict)
    """What was read of the memory. It may outlive the turn: it is held against what is remembered."""

    @property
    def now(self) -> float:
        return self.turn.now.timestamp()

    def known(self, agent: str) -> Known:
        kept = self.turn.recall(f"agent:{agent}")
        before = self._read.get(agent)
        if before is None or before[0] is not kept:
            before = self._read[agent] = (kept, Known.read(kept))
        return before[1]

    def remember(self, agent: str, known: Known) -> None:
        self.turn.remember(f"agent:{agent}", asdict(known))

    def forget(self, agent: str) -> None:
        self.turn.remember(f"agent:{agent}", None)

    def running(self, agent: str) -> Pane | None:
        pane = self.panes.get(agent)
        return pane if pane is not None and not pane.dead else None

    def wish(self, agent: str) -> Desired:
        """What is wanted of the agent: what somebody asked for, else what the fleet file says."""
        wish = self.known(agent).wish
        if wish is not None or agent not in self.fleet.agents:
            return wish or Desired.STOPPED
        return Desired.RUNNING if self.fleet.agents[agent].enabled else Desired.STOPPED

    def adopted(self) -> list[str]:
        """Agents that were taken over and that the fleet file does not have."""
        keys = {**self.turn.memory, **self.turn.kept}
        names = [key.removeprefix("agent:") for key in keys if key.startswith("agent:")]
        return [name for name in names if name not in self.fleet.agents and self.known(name).adopted]

    def backend_name(self, agent: str) -> str:
        known = self.known(agent)
        if known.adopted:
            return known.adopted["backend"]
        return known.order.get("backend") or self.fleet.agents[agent].backend

    def backend(self, agent: str) -> Backend:
        """How the agent that runs is to be spoken to."""
        name = self.backend_name(agent)
        if agent in self.fleet.agents and self.fleet.agents[agent].kind is Kind.SERVICE:
            return self.fleet.profile(agent)
        return self.fleet.backends.get(name) or Backend()

    def shares_workspace(self, agent: str, backend: str, workspace: Path) -> bool:
        """Whether another agent of this kind works there too: then the newest conversation may be either's."""
        others = (name for name in self.fleet.agents if name != agent)
        return any(
            self.fleet.agents[name].backend == backend and self.fleet.resolve(self.fleet.agents[name].dir) == workspace
            for name in others
        )
