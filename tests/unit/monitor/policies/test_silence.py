"""An agent that is said to work and writes nothing."""

from typing import Any

import pytest

from services.monitor.policies.policy import AgentObservation
from services.monitor.policies.silence import SilenceMemory, decide
from shared.contract.commands import Restart
from shared.contract.states import Activity
from shared.fleet.policies import Mend, UnresponsivePolicy
from tests.unit.monitor.policies.samples import NOW, kinds, observation, only, verbs

POLICY = UnresponsivePolicy(after_s=100)


def works(seconds: float, **more: Any) -> AgentObservation:
    return observation(Activity.WORKING, NOW, now=NOW + seconds, **{"wrote_at": NOW, **more})


def test_it_is_told_once() -> None:
    quiet = decide(SilenceMemory(), works(99), POLICY)
    assert (kinds(quiet), quiet.look_at) == ([], NOW + 100)
    told = decide(quiet.memory, works(100), POLICY)
    assert (kinds(told), verbs(told)) == (["unresponsive"], [])
    assert kinds(decide(told.memory, works(1_000), POLICY)) == []


def test_an_agent_that_writes_again_may_fall_silent_again() -> None:
    told = decide(SilenceMemory(), works(100), POLICY).memory
    again = decide(told, works(150, wrote_at=NOW + 150), POLICY)
    assert kinds(decide(again.memory, works(250, wrote_at=NOW + 150), POLICY)) == ["unresponsive"]


@pytest.mark.parametrize(
    "seen",
    [
        works(1_000, paints=False),
        works(1_000, wrote_at=NOW + 950),
        observation(Activity.WAITING, NOW, now=NOW + 1_000),
        observation(Activity.NEEDS_APPROVAL, NOW, now=NOW + 1_000),
    ],
)
def test_an_agent_that_does_not_work_or_does_not_paint_may_be_silent(seen: AgentObservation) -> None:
    assert kinds(decide(SilenceMemory(), seen, POLICY)) == []


def test_it_may_be_restarted() -> None:
    policy = UnresponsivePolicy(after_s=100, then=Mend.RESTART)
    outcome = decide(SilenceMemory(), works(100), policy)
    command = only(outcome)
    assert isinstance(command, Restart)
    assert (command.counts, command.spawn) == (True, "s1")
    assert verbs(decide(SilenceMemory(), works(100, declared=None), policy)) == []
    assert kinds(decide(SilenceMemory(), works(1e6), UnresponsivePolicy(after_s=0))) == []
