"""An agent that can't go on by itself: what is restarted, what is held, and that each is told once."""

from dataclasses import replace
from typing import Any

import pytest

from services.monitor.policies.policy import AgentObservation
from services.monitor.policies.trouble import Troubled, decide
from shared.contract.commands import Restart, Send
from shared.contract.events.activity import AgentFatal
from shared.contract.states import Activity, Trouble
from shared.fleet.policies import HealPolicy, HoldPolicy, Mend, WatchPolicy
from tests.unit.monitor.policies.samples import NOW, kinds, only, sight, verbs

POLICY = WatchPolicy(heal=HealPolicy(after_s=30))


def failed(trouble: Trouble, seconds: float = 0.0, **more: Any) -> AgentObservation:
    return sight(Activity.FAILED, NOW, trouble=trouble, now=NOW + seconds, reason="it failed", **more)


@pytest.mark.parametrize("trouble", [Trouble.GONE, Trouble.SESSION])
def test_what_a_restart_may_mend_is_restarted_within_its_limits_once(trouble: Trouble) -> None:
    waits = decide(Troubled(), failed(trouble, 29), POLICY)
    assert (kinds(waits), verbs(waits), waits.look_at) == ([], [], NOW + 30)
    outcome = decide(waits.after, failed(trouble, 30), POLICY)
    command, (told,) = only(outcome), outcome.tells
    assert isinstance(command, Restart)
    assert (command.spawn, command.counts) == ("s1", True)
    assert isinstance(told, AgentFatal)
    assert (told.trouble, told.then) == (trouble, "restart")
    again = decide(outcome.after, failed(trouble, 300), POLICY)
    assert (kinds(again), verbs(again)) == ([], [])


@pytest.mark.parametrize("trouble", [Trouble.LOGIN, Trouble.CREDIT, Trouble.SETUP])
def test_what_only_a_person_mends_is_held_and_told_once(trouble: Trouble) -> None:
    outcome = decide(Troubled(), failed(trouble), POLICY)
    (told,) = outcome.tells
    assert isinstance(told, AgentFatal)
    assert (told.then, verbs(outcome), outcome.after.is_held) == ("hold", [], True)
    assert kinds(decide(outcome.after, failed(trouble, 1e6), POLICY)) == []


def test_who_is_held_may_be_asked_again_now_and_then() -> None:
    policy = WatchPolicy(credit=HoldPolicy(retry_s=600))
    after = decide(Troubled(), failed(Trouble.CREDIT), policy).after
    assert decide(after, failed(Trouble.CREDIT, 599), policy).look_at == NOW + 600
    outcome = decide(after, failed(Trouble.CREDIT, 600), policy)
    assert isinstance(only(outcome), Send)
    tried = decide(outcome.after, sight(Activity.WORKING, NOW + 601, now=NOW + 602), policy).after
    assert kinds(decide(tried, failed(Trouble.CREDIT, 603), policy)) == [], "that it failed again is no news"


def test_who_works_again_is_not_held_any_more() -> None:
    held = decide(Troubled(), failed(Trouble.LOGIN), POLICY).after
    assert decide(held, sight(Activity.WORKING, NOW + 100, now=NOW + 100), POLICY).after == Troubled()
    assert kinds(decide(Troubled(), failed(Trouble.LOGIN, 200), POLICY)) == ["fatal"]


def test_what_is_left_to_people_is_only_told() -> None:
    policy = WatchPolicy(heal=HealPolicy(after_s=0, then=Mend.TELL))
    outcome = decide(Troubled(), failed(Trouble.GONE), policy)
    assert (kinds(outcome), verbs(outcome)) == (["fatal"], [])
    found = decide(Troubled(), failed(Trouble.GONE, 60, declared=None), POLICY)
    assert (kinds(found), verbs(found)) == (["fatal"], [])


def test_nobody_is_restarted_while_its_account_is_limited() -> None:
    parked = failed(Trouble.GONE, 600, parked="its limit is reached")
    outcome = decide(Troubled(), parked, POLICY)
    assert (kinds(outcome), verbs(outcome)) == ([], [])
    assert verbs(decide(outcome.after, replace(parked, parked=""), POLICY)) == ["restart"]
