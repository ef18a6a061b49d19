"""An agent that can't go on by itself: what is restarted, what is held, and that each is told once."""

from dataclasses import replace
from typing import Any

import pytest

from services.monitor.policies.policy import AgentObservation
from services.monitor.policies.trouble import TroubleMemory, decide
from shared.contract.commands import Restart, Send
from shared.contract.events.activity import AgentFatal
from shared.contract.states import Activity, Trouble
from shared.fleet.policies import HealPolicy, HoldPolicy, Mend, WatchPolicy
from tests.unit.monitor.policies.samples import NOW, kinds, observation, only, verbs

POLICY = WatchPolicy(heal=HealPolicy(after_s=30))


def failed(trouble: Trouble, seconds: float = 0.0, **more: Any) -> AgentObservation:
    return observation(Activity.FAILED, NOW, trouble=trouble, now=NOW + seconds, reason="it failed", **more)


@pytest.mark.parametrize("trouble", [Trouble.GONE, Trouble.SESSION])
def test_trouble_that_a_restart_may_end_leads_to_one_restart(trouble: Trouble) -> None:
    waits = decide(TroubleMemory(), failed(trouble, 29), POLICY)
    assert (kinds(waits), verbs(waits), waits.look_at) == ([], [], NOW + 30)
    outcome = decide(waits.memory, failed(trouble, 30), POLICY)
    command, (told,) = only(outcome), outcome.events
    assert isinstance(command, Restart)
    assert (command.spawn, command.counts) == ("s1", True)
    assert isinstance(told, AgentFatal)
    assert (told.trouble, told.then) == (trouble, "restart")
    again = decide(outcome.memory, failed(trouble, 300), POLICY)
    assert (kinds(again), verbs(again)) == ([], [])


@pytest.mark.parametrize("trouble", [Trouble.LOGIN, Trouble.CREDIT, Trouble.SETUP])
def test_trouble_that_only_a_person_can_end_is_held_and_told_once(trouble: Trouble) -> None:
    outcome = decide(TroubleMemory(), failed(trouble), POLICY)
    (told,) = outcome.events
    assert isinstance(told, AgentFatal)
    assert (told.then, verbs(outcome), outcome.memory.is_held) == ("hold", [], True)
    assert kinds(decide(outcome.memory, failed(trouble, 1e6), POLICY)) == []


def test_a_held_agent_may_be_asked_again_now_and_then() -> None:
    policy = WatchPolicy(credit=HoldPolicy(retry_s=600))
    after = decide(TroubleMemory(), failed(Trouble.CREDIT), policy).memory
    assert decide(after, failed(Trouble.CREDIT, 599), policy).look_at == NOW + 600
    outcome = decide(after, failed(Trouble.CREDIT, 600), policy)
    assert isinstance(only(outcome), Send)
    tried = decide(outcome.memory, observation(Activity.WORKING, NOW + 601, now=NOW + 602), policy).memory
    assert kinds(decide(tried, failed(Trouble.CREDIT, 603), policy)) == [], "that it failed again is no news"


def test_an_agent_that_works_again_is_not_held_any_more() -> None:
    held = decide(TroubleMemory(), failed(Trouble.LOGIN), POLICY).memory
    assert decide(held, observation(Activity.WORKING, NOW + 100, now=NOW + 100), POLICY).memory == TroubleMemory()
    assert kinds(decide(TroubleMemory(), failed(Trouble.LOGIN, 200), POLICY)) == ["fatal"]


def test_trouble_that_is_left_to_people_is_only_told() -> None:
    policy = WatchPolicy(heal=HealPolicy(after_s=0, then=Mend.TELL))
    outcome = decide(TroubleMemory(), failed(Trouble.GONE), policy)
    assert (kinds(outcome), verbs(outcome)) == (["fatal"], [])
    found = decide(TroubleMemory(), failed(Trouble.GONE, 60, declared=None), POLICY)
    assert (kinds(found), verbs(found)) == (["fatal"], [])


def test_no_agent_is_restarted_while_its_account_is_limited() -> None:
    parked = failed(Trouble.GONE, 600, left_alone="its limit is reached")
    outcome = decide(TroubleMemory(), parked, POLICY)
    assert (kinds(outcome), verbs(outcome)) == ([], [])
    assert verbs(decide(outcome.memory, replace(parked, left_alone=""), POLICY)) == ["restart"]
