"""An agent that idles too long: which step is taken, and when all begins anew."""

from dataclasses import replace
from typing import Any

import pytest

from services.monitor.policies.policy import AgentObservation, PolicyOutcome
from services.monitor.policies.stall import CAUSED_WITHIN_S, NUDGE_AFTER_RESTART_S, StallMemory, decide, due_at, steps
from shared.contract.commands import Restart, Send
from shared.contract.events.activity import AgentStalled
from shared.contract.states import Activity
from shared.fleet import Agent, AgentKind
from shared.fleet.policies import StallPolicy, Then, Wake
from tests.unit.monitor.policies.samples import NOW, kinds, observation, only, verbs

WAITING, WORKING = Activity.WAITING, Activity.WORKING
POLICY = StallPolicy(after_s=60, grace_s=10, promise_s=3_600, then=[Then.NUDGE, Then.RESTART, Then.TELL])


def idle(seconds: float, **more: Any) -> AgentObservation:
    """Idle since NOW, looked at so many seconds later."""
    return observation(WAITING, NOW, now=NOW + seconds, **more)


def known(seconds: float = 0.0) -> StallMemory:
    return decide(StallMemory(), idle(seconds), POLICY).memory


def acts(outcome: PolicyOutcome[StallMemory]) -> tuple[list[str], list[str]]:
    return kinds(outcome), verbs(outcome)


# --- when ---


def test_it_stalls_after_its_time_and_not_before() -> None:
    waits = decide(StallMemory(), idle(59), POLICY)
    assert (acts(waits), waits.look_at) == (([], []), NOW + 60)
    assert acts(decide(waits.memory, idle(60), POLICY)) == (["stalled"], ["send"])


def test_after_s_zero_means_never() -> None:
    never = replace_policy(after_s=0)
    assert acts(decide(StallMemory(), idle(1e6), never)) == ([], [])


def test_a_promise_is_believed_until_it_is_broken() -> None:
    until = NOW + 600
    assert acts(decide(known(), idle(609, promise=until), POLICY)) == ([], [])
    outcome = decide(known(), idle(610, promise=until), POLICY)
    (told,) = outcome.events
    assert isinstance(told, AgentStalled)
    assert told.promised_until is not None
    assert told.promised_until.timestamp() == until
    assert "it promised to wait until" in told.reason


def test_a_promise_may_be_shorter_than_its_patience_and_not_longer_than_allowed() -> None:
    assert due_at(known(), idle(0, promise=NOW + 5), POLICY) == NOW + 15
    assert due_at(known(), idle(0, promise=NOW + 1e6), POLICY) == NOW + 3_600 + 10


def test_an_agent_that_is_to_be_left_alone_does_not_stall() -> None:
    assert acts(decide(known(), idle(600, left_alone="its limit is reached"), POLICY)) == ([], [])


def test_an_agent_with_a_wake_schedule_does_not_stall_without_a_promise() -> None:
    declared = Agent(prompt="build", wake=Wake(every_s=3_600))
    assert acts(decide(known(), idle(600, declared=declared), POLICY)) == ([], [])
    assert acts(decide(known(), idle(600, declared=declared, promise=NOW + 5), POLICY)) == (["stalled"], ["send"])


@pytest.mark.parametrize("declared", [None, Agent(kind=AgentKind.SERVICE)])
def test_nothing_is_typed_into_an_agent_outside_the_fleet_file(declared: Agent | None) -> None:
    assert acts(decide(StallMemory(), idle(1e6, declared=declared), POLICY)) == ([], [])


# --- what ---


def test_an_idle_agent_is_nudged_then_restarted_and_nudged_then_left_to_people() -> None:
    nudged = decide(known(), idle(60), POLICY)
    assert isinstance(only(nudged), Send)
    restarted = decide(nudged.memory, idle(120), POLICY)
    command = only(restarted)
    assert isinstance(command, Restart)
    assert (command.spawn, command.counts, kinds(restarted)) == ("s1", True, ["stalled"])
    fresh = observation(WAITING, NOW + 125, spawn="s2", now=NOW + 126)
    soon = decide(restarted.memory, fresh, POLICY)
    assert acts(soon) == ([], [])
    owed = decide(soon.memory, replace(fresh, now=NOW + 125 + NUDGE_AFTER_RESTART_S), POLICY)
    assert (acts(owed), getattr(only(owed), "spawn", "")) == (([], ["send"]), "s2")
    last = decide(owed.memory, replace(fresh, now=NOW + 125 + NUDGE_AFTER_RESTART_S + 60), POLICY)
    assert acts(last) == (["stalled"], [])
    assert acts(decide(last.memory, replace(fresh, now=NOW + 1e6), POLICY)) == ([], [])


def test_each_step_is_explained() -> None:
    (told,) = decide(known(), idle(60), POLICY).events
    assert isinstance(told, AgentStalled)
    assert (told.then, told.reason) == ("nudge", "idle for 60 s; it is told to go on (1 of 3)")


def test_work_that_a_nudge_caused_does_not_reset_the_steps() -> None:
    nudged = decide(known(), idle(60), POLICY).memory
    works = decide(nudged, observation(WORKING, NOW + 61, now=NOW + 65), POLICY).memory
    idles = decide(works, observation(WAITING, NOW + 70, now=NOW + 70), POLICY).memory
    assert isinstance(only(decide(idles, observation(WAITING, NOW + 70, now=NOW + 130), POLICY)), Restart)


@pytest.mark.parametrize(("began", "ended"), [(60 + CAUSED_WITHIN_S + 1, 130), (61, 61 + 60 + 1)])
def test_work_for_another_reason_or_for_long_resets_the_steps(began: float, ended: float) -> None:
    nudged = decide(known(), idle(60), POLICY).memory
    works = decide(nudged, observation(WORKING, NOW + began, now=NOW + ended), POLICY).memory
    assert works.step == 0


def test_work_that_begins_after_people_were_told_resets_the_steps() -> None:
    told = decide(known(), idle(60), replace_policy(then=[Then.TELL])).memory
    again = decide(told, observation(WAITING, NOW + 65, now=NOW + 66), replace_policy(then=[Then.TELL])).memory
    assert again.step == 0
    assert acts(decide(again, observation(WAITING, NOW + 65, now=NOW + 125), replace_policy(then=[Then.TELL]))) == (
        ["stalled"],
        [],
    )


def test_a_turn_between_two_observations_counts_as_work() -> None:
    nudged = decide(known(), idle(60), POLICY).memory
    again = decide(nudged, observation(WAITING, NOW + 62, now=NOW + 63), POLICY)
    assert (again.memory.stalled, again.memory.step, again.memory.idle_since) == (False, 1, NOW + 62)
    much_later = decide(nudged, observation(WAITING, NOW + 600, now=NOW + 601), POLICY)
    assert much_later.memory.step == 0


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (Agent(prompt="build"), ("nudge", "nudge", "tell")),
        (Agent(kind=AgentKind.LOOP), ("nudge", "nudge", "tell")),
        (Agent(), ("tell",)),
        (Agent(kind=AgentKind.TASK, prompt="build"), ("tell",)),
    ],
)
def test_an_agent_without_a_prompt_is_not_nudged_by_default(declared: Agent, expected: tuple[str, ...]) -> None:
    assert steps(StallPolicy(), idle(0, declared=declared)) == expected
    wanted = "tell" if declared.kind is AgentKind.TASK else "restart"  # a task that is ended stays down
    assert steps(StallPolicy(then=[Then.RESTART]), idle(0, declared=declared)) == (wanted,)


def replace_policy(**changes: Any) -> StallPolicy:
    return POLICY.model_copy(update=changes)
