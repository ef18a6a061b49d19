"""One loop in one turn: what it is decided from, and where what is decided goes."""

from dataclasses import dataclass

from services.handoff.memory import Memory
from shared.fleet import Fleet, Kind
from shared.fleet.loops import Loop
from shared.turn import Turn


@dataclass(frozen=True)
class Round:
    turn: Turn
    memory: Memory
    fleet: Fleet
    name: str
    """Of the loop."""
    loop: Loop

    @property
    def now(self) -> float:
        return self.turn.now.timestamp()

    @property
    def phases(self) -> list[str]:
        return [phase.name for phase in self.loop.phases]

    def players(self, kind: Kind | None = None) -> list[str]:
        """Who plays in the loop, of those that the fleet file has."""
        agents = [agent for agent in dict.fromkeys(self.loop.roles.values()) if agent in self.fleet.agents]
        return [agent for agent in agents if kind is None or self.fleet.agents[agent].kind is kind]
