"""What the policies remember of each agent."""

from dataclasses import dataclass, field

from services.monitor.limits.decision import LimitMemory
from services.monitor.limits.hold import LimitHold
from services.monitor.policies.silence import SilenceMemory
from services.monitor.policies.stall import StallMemory
from services.monitor.policies.trouble import TroubleMemory
from services.monitor.policies.wake import WakeMemory
from shared.runtime.memory import MemoryTable
from shared.runtime.turn import Turn


@dataclass(frozen=True)
class PolicyMemory:
    limits: LimitMemory = field(default_factory=LimitMemory)
    trouble: TroubleMemory = field(default_factory=TroubleMemory)
    silence: SilenceMemory = field(default_factory=SilenceMemory)
    stall: StallMemory = field(default_factory=StallMemory)
    wake: WakeMemory = field(default_factory=WakeMemory)

    @property
    def open_commands(self) -> tuple[str, ...]:
        """The ids of the commands whose replies the policies wait for."""
        hold = self.limits.hold
        ids = (hold.command if hold is not None else "", self.wake.command, self.trouble.restart)
        return tuple(each for each in ids if each)


POLICIES = MemoryTable("policy:", PolicyMemory)
NOTHING = PolicyMemory()


def memory_of(turn: Turn, agent: str) -> PolicyMemory:
    return turn.memory.find(POLICIES, agent) or NOTHING


def holds(turn: Turn) -> dict[str, LimitHold]:
    """The agents that a limit of their own holds."""
    found = {agent: memory.limits.hold for agent, memory in turn.memory.all(POLICIES).items()}
    return {agent: hold for agent, hold in found.items() if hold is not None}
