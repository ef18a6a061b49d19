"""When background work is asked how it is, and what follows from the answer."""

import json
from typing import Any

import pytest

from services.monitor.health.checks import HEALTH, Health, conclude, due_at, health_of, may_be_asked
from services.monitor.policies.policy import PolicyOutcome
from shared.agents.fork import ForkAnswer, ForkFailed, ForkSilent, Result, TimedResult
from shared.contract.commands import Restart, Stop
from shared.contract.events.activity import AgentFinished, AgentProgress, AgentUnresponsive
from shared.contract.states import Activity
from shared.fleet import Agent, AgentKind
from shared.fleet.policies import End, HealthPolicy
from tests.unit.monitor.policies.samples import NOW, kinds, observation, only, verbs
from tests.unit.monitor.samples import turn

POLICY = HealthPolicy(every_s=600, timeout_s=120)
TASK = Agent(kind=AgentKind.TASK, prompt="build")
NEW = Health("s1")
FILE = "/fleet/.muster/jobs/builder-s1.txt"


def said(state: str, summary: str = "s", output: str = "") -> ForkAnswer:
    return ForkAnswer(json.dumps({"state": state, "summary": summary, "output": output}))


def after(result: Result, health: Health = NEW, policy: HealthPolicy = POLICY, **seen: Any) -> PolicyOutcome[Health]:
    return conclude(health, observation(**seen), policy, TimedResult(result, 1.0), FILE)[0]


# --- when ---


def test_an_agent_is_asked_an_interval_after_its_start_and_after_the_last_question() -> None:
    assert due_at(Health("s1"), POLICY, NOW - 100) == NOW + 500
    assert due_at(Health("s1", asked_at=NOW - 10), POLICY, NOW - 100) == NOW + 590


@pytest.mark.parametrize(
    ("seen", "may"),
    [
        ({"status": Activity.WORKING}, True),
        ({"status": Activity.WAITING}, True),
        ({"status": Activity.STALLED}, True),
        ({"status": Activity.NEEDS_APPROVAL}, True),
        ({"status": Activity.UNKNOWN}, True),
        ({"status": Activity.STARTING}, False),
        ({"status": Activity.LIMITED}, False),
        ({"status": Activity.DONE}, False),
        ({"status": Activity.FAILED}, False),
        ({"left_alone": "the limit of its account is reached"}, False),
        ({"declared": None}, False),
        ({"declared": Agent(kind=AgentKind.SERVICE)}, False),
    ],
)
def test_an_agent_is_asked_only_in_a_state_in_which_it_can_answer(seen: dict[str, Any], may: bool) -> None:
    assert may_be_asked(observation(**seen)) is may


# --- progress ---


@pytest.mark.parametrize("state", ["working", "waiting", "blocked"])
def test_progress_is_told_and_nothing_is_asked(state: str) -> None:
    outcome = after(said(state, "half done"))
    assert outcome.events == (AgentProgress(agent="builder", spawn="s1", state=state, summary="half done"),)
    assert outcome.commands == ()
    assert (outcome.memory.state, outcome.memory.summary, outcome.memory.asked_at) == (state, "half done", NOW)


@pytest.mark.parametrize(
    ("state", "summary", "told"), [("working", "s", []), ("working", "t", ["progress"]), ("blocked", "s", ["progress"])]
)
def test_progress_is_told_again_only_when_it_changed(state: str, summary: str, told: list[str]) -> None:
    first = after(said("working")).memory
    assert kinds(after(said(state, summary), first, now=NOW + 600)) == told


# --- finished ---


def test_a_finished_task_is_stopped_and_its_result_told() -> None:
    output = "x" * 2_000
    outcome, kept = conclude(
        Health("s1"), observation(declared=TASK), POLICY, TimedResult(said("finished", "done", output), 1.0), FILE
    )
    stop = only(outcome)
    assert isinstance(stop, Stop)
    assert (stop.agent, stop.spawn, stop.id is not None) == ("builder", "s1", True)
    assert outcome.events == (
        AgentFinished(agent="builder", spawn="s1", summary="done", output=output[:500], file=FILE),
    )
    assert kept == output


def test_a_finished_task_that_still_runs_is_stopped_again_and_told_once() -> None:
    first = after(said("finished", "done"), declared=TASK)
    again = after(said("finished", "it is done"), first.memory, declared=TASK, now=NOW + 600)
    assert (verbs(again), kinds(again)) == (["stop"], [])
    assert only(again).id != only(first).id


@pytest.mark.parametrize("kind", [AgentKind.PERSISTENT, AgentKind.LOOP])
def test_a_finished_agent_that_is_no_task_is_not_stopped(kind: AgentKind) -> None:
    outcome = after(said("finished"), declared=Agent(kind=kind, prompt="build"))
    assert (verbs(outcome), kinds(outcome)) == ([], ["finished"])


def test_finished_is_told_once_in_whatever_words_until_the_agent_has_moved_on() -> None:
    first = after(said("finished", "done")).memory
    same = after(said("finished", "all is done"), first, now=NOW + 600)
    assert kinds(same) == []
    moved = after(said("finished", "the next is done"), same.memory, since=NOW + 700, now=NOW + 1_200)
    assert kinds(moved) == ["finished"]
    between = after(said("working"), first, now=NOW + 600).memory
    assert kinds(after(said("finished", "done"), between, now=NOW + 1_200)) == ["finished"]


def test_without_a_result_there_is_no_file() -> None:
    outcome, kept = conclude(Health("s1"), observation(), POLICY, TimedResult(said("finished"), 1.0), FILE)
    (told,) = outcome.events
    assert isinstance(told, AgentFinished)
    assert (told.file, kept) == (None, None)


# --- no answer ---


@pytest.mark.parametrize(
    ("declared", "then", "does"),
    [
        (TASK, None, "stop"),
        (Agent(), None, "tell"),
        (Agent(kind=AgentKind.LOOP), None, "tell"),
        (TASK, End.TELL, "tell"),
        (TASK, End.RESTART, "tell"),
        (Agent(), End.STOP, "stop"),
        (Agent(), End.RESTART, "restart"),
    ],
)
def test_no_answer_in_time_is_told_and_followed_by_what_the_policy_says(
    declared: Agent, then: End | None, does: str
) -> None:
    outcome = after(ForkSilent(), policy=HealthPolicy(every_s=600, timeout_s=5, then=then), declared=declared)
    (told,) = outcome.events
    assert isinstance(told, AgentUnresponsive)
    assert (told.then, told.silent_s) == (does, 5)
    assert "did not answer within 5 s" in told.reason
    assert verbs(outcome) == ([] if does == "tell" else [does])
    if does == "restart":
        restart = only(outcome)
        assert isinstance(restart, Restart)
        assert (restart.counts, restart.spawn) == (True, "s1")


def test_an_agent_that_does_not_answer_is_told_once_until_it_answers() -> None:
    first = after(ForkSilent()).memory
    assert kinds(after(ForkSilent(), first)) == []
    answers = after(said("working"), first)
    assert kinds(answers) == ["progress"]
    assert kinds(after(ForkSilent(), answers.memory)) == ["unresponsive"]


@pytest.mark.parametrize("seen", [{"left_alone": "its limit is reached"}, {"status": Activity.LIMITED}])
def test_an_agent_that_is_limited_meanwhile_need_not_answer(seen: dict[str, Any]) -> None:
    outcome = after(ForkSilent(), declared=TASK, **seen)
    assert (outcome.commands, outcome.events) == ((), ())
    assert "no answer within 120 s" in outcome.memory.trouble


# --- what is no sign of anything ---


@pytest.mark.parametrize(
    "result", [ForkFailed("Not logged in"), ForkFailed("limit", limited=True), ForkAnswer("It goes well.")]
)
def test_a_question_that_failed_says_nothing_of_the_agent(result: Result) -> None:
    known = after(said("working")).memory
    outcome = after(result, known, declared=TASK, now=NOW + 600)
    assert (outcome.commands, outcome.events) == ((), ())
    assert outcome.memory.trouble
    assert (outcome.memory.state, outcome.memory.asked_at) == ("working", NOW + 600)
    assert after(said("working"), outcome.memory).memory.trouble == ""


# --- remembering ---


def test_a_remembered_check_counts_for_its_own_session_only() -> None:
    health = after(said("working", "half")).memory
    kept = {HEALTH.key("builder"): json.loads(json.dumps(HEALTH.dump(health)))}
    assert health_of(turn(kept), "builder", "s1") == health
    assert health_of(turn(kept), "builder", "s2") == Health("s2")
    assert health_of(turn(), "builder", "s1") == Health("s1")
