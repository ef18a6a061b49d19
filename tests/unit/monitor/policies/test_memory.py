"""What the policies remember goes into the journal and comes back as it was."""

import json

from services.monitor.limits.decision import LimitMemory
from services.monitor.limits.hold import LimitHold
from services.monitor.policies.memory import NOTHING, POLICIES, PolicyMemory, holds, memory_of
from services.monitor.policies.silence import SilenceMemory
from services.monitor.policies.stall import StallMemory
from services.monitor.policies.trouble import TroubleMemory
from services.monitor.policies.wake import WakeMemory
from shared.contract.states import Trouble
from tests.unit.monitor.samples import turn

HOLD = LimitHold("acme", "opus", "Opus", "s1", None, 1.0, resets_at=None, exact_to_s=0.0, resume_at=9.0, command="c1")
FULL = PolicyMemory(
    LimitMemory(HOLD, over_at=1.0, over_said="x", tries=2),
    TroubleMemory("s1", Trouble.CREDIT, 2.0, told=True, restart="c3"),
    SilenceMemory("s1", 3.0),
    StallMemory("s1", idle_since=4.0, step=1, stalled=True),
    WakeMemory(last=5.0, command="c2"),
)


def test_a_memory_is_read_back_from_the_journal() -> None:
    assert POLICIES.load(json.loads(json.dumps(POLICIES.dump(FULL)))) == FULL


def test_a_command_is_open_until_its_policy_forgets_it() -> None:
    assert FULL.open_commands == ("c1", "c2", "c3")
    assert NOTHING.open_commands == ()


def test_only_agents_with_a_limit_of_their_own_have_a_hold() -> None:
    taken = turn()
    taken.memory.put(POLICIES, FULL, "builder")
    taken.memory.put(POLICIES, PolicyMemory(stall=StallMemory("s2", step=1)), "tester")
    assert holds(taken) == {"builder": HOLD}
    assert memory_of(taken, "nobody") is NOTHING
