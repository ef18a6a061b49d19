"""The actions of a phase: when each is taken, how it is retried, and how often a failure is reported."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.handoff.loops.phase_actions import (
    ACTIONS,
    BUSY_LOOK_S,
    COMMAND_LOST_AFTER_S,
    FIRST_RETRY_S,
    LONGEST_RETRY_S,
    ActionKind,
    ActionStep,
    AgentSituation,
    PhaseAction,
    asked,
    decide,
    failed,
)
from tests.unit.handoff.samples import NOW, read_back, reply

GRACE_S = 300.0
START = PhaseAction(ActionKind.START, "bob", ("builder",), 2, "build", NOW)
ASKED = asked(START, "c1", NOW)


def seen(seconds: float = 0.0, **more: Any) -> AgentSituation:
    return AgentSituation(**{"now": NOW + seconds, "grace_s": GRACE_S, **more})


# --- when ---


@pytest.mark.parametrize("kind", list(ActionKind))
def test_an_idle_agent_is_acted_on_at_once(kind: ActionKind) -> None:
    action = replace(START, kind=kind)
    assert decide(action, seen()) == ActionStep(action, act=True)


@pytest.mark.parametrize("kind", [ActionKind.START, ActionKind.STOP])
def test_a_busy_agent_gets_its_grace(kind: ActionKind) -> None:
    action = replace(START, kind=kind)
    assert decide(action, seen(10, is_busy=True)) == ActionStep(action, look_at=NOW + 10 + BUSY_LOOK_S)
    assert decide(action, seen(GRACE_S - 1, is_busy=True)).look_at == NOW + GRACE_S
    assert decide(action, seen(GRACE_S, is_busy=True)).act
    assert decide(action, seen(11)).act


@pytest.mark.parametrize("kind", [ActionKind.START, ActionKind.STOP])
def test_a_busy_agent_gets_no_grace_where_a_person_asked_or_none_is_declared(kind: ActionKind) -> None:
    assert decide(replace(START, kind=kind, at_once=True), seen(is_busy=True)).act
    assert decide(replace(START, kind=kind), seen(is_busy=True, grace_s=0.0)).act


@pytest.mark.parametrize("kind", [ActionKind.TELL, ActionKind.RUN])
def test_an_action_that_ends_no_session_gives_no_grace(kind: ActionKind) -> None:
    assert decide(replace(START, kind=kind), seen(is_busy=True)).act


def test_the_agent_of_on_complete_waits_for_the_other_actions() -> None:
    run = replace(START, kind=ActionKind.RUN, roles=())
    assert decide(run, seen(9e9, others_done=False)) == ActionStep(run)
    assert decide(run, seen()).act


# --- once ---


def test_an_action_under_way_is_not_asked_for_again() -> None:
    assert (ASKED.command_id, ASKED.asked_at, ASKED.tries) == ("c1", NOW, 1)
    for seconds in (0, 60, COMMAND_LOST_AFTER_S - 1):
        assert decide(ASKED, seen(seconds)) == ActionStep(ASKED)


def test_an_action_that_is_done_is_over() -> None:
    step = decide(ASKED, seen(5, reply=reply()))
    assert (step.succeeded, step.act, step.after.done, step.after.command_id) == (True, False, True, "")
    for later in (seen(6), seen(9e9, is_busy=True), seen(7, reply=reply(ok=False))):
        assert decide(step.after, later) == ActionStep(step.after)


def test_a_command_that_was_never_answered_is_sent_again() -> None:
    lost = decide(ASKED, seen(COMMAND_LOST_AFTER_S))
    assert (lost.act, lost.after.command_id, lost.look_at) == (False, "", NOW + COMMAND_LOST_AFTER_S)
    assert decide(lost.after, seen(COMMAND_LOST_AFTER_S)).act


@pytest.mark.parametrize("back", [0.01, 1.0, 60.0])
def test_no_agent_is_started_twice_when_the_clock_is_set_back_a_little(back: float) -> None:
    assert decide(ASKED, seen(-back)) == ActionStep(ASKED)


# --- failures ---


def test_a_failure_is_reported_once_and_retried_with_backoff() -> None:
    action, now, waits, tells = START, 0.0, [], []
    for number in range(10):
        assert decide(action, seen(now)).act
        action = asked(action, f"c{number}", NOW + now)
        step = decide(action, seen(now, reply=reply(ok=False, said="no such model")))
        assert not step.after.done
        assert step.look_at == step.after.not_before
        early = decide(step.after, seen(step.after.not_before - NOW - 0.01))
        assert (early.act, early.look_at) == (False, step.after.not_before)
        waits.append(step.after.not_before - NOW - now)
        tells.append(step.failure)
        action, now = step.after, now + waits[-1]
    assert waits[:4] == [FIRST_RETRY_S, FIRST_RETRY_S * 2, FIRST_RETRY_S * 4, FIRST_RETRY_S * 8]
    assert waits[-1] == LONGEST_RETRY_S
    assert tells == ["no such model", *[""] * 9]


def test_a_failure_for_another_reason_is_reported_again() -> None:
    reasons = ["a", "a", "b", "b", "a"]
    action, tells = ASKED, []
    for reason in reasons:
        step = decide(asked(action, "c", NOW), seen(reply=reply(ok=False, said=reason)))
        action = step.after
        tells.append(step.failure)
    assert tells == ["a", "", "b", "", "a"]


def test_an_action_that_could_not_be_asked_for_fails_in_the_same_way() -> None:
    first = failed(asked(START, "", NOW), "the template can't be read", NOW)
    assert (first.failure, first.look_at, first.after.command_id) == (
        "the template can't be read",
        NOW + FIRST_RETRY_S,
        "",
    )
    again = failed(asked(first.after, "", NOW), "the template can't be read", NOW)
    assert (again.failure, again.look_at) == ("", NOW + FIRST_RETRY_S * 2)


@given(st.integers(0, 10_000), st.floats(0, 1e10))
def test_however_often_an_action_failed_it_is_retried_within_bounds(tries: int, now: float) -> None:
    step = failed(replace(ASKED, tries=tries), "x", now)
    assert now + FIRST_RETRY_S <= step.after.not_before <= now + LONGEST_RETRY_S


# --- over a whole life ---

LOOK = st.tuples(st.floats(0, 400), st.booleans(), st.sampled_from(["ok", "refused", "none"]), st.booleans())


@given(st.sampled_from(list(ActionKind)), st.booleans(), st.lists(LOOK, max_size=60))
def test_no_action_is_repeated_while_a_command_is_open_or_after_it_is_done(
    kind: ActionKind, at_once: bool, life: list[tuple[float, bool, str, bool]]
) -> None:
    action, now, successes, out = replace(START, kind=kind, at_once=at_once), 0.0, 0, False
    for passes, is_busy, answer, restarts in life:
        now += passes
        given_reply = reply(ok=answer == "ok") if out and answer != "none" else None
        step = decide(action, seen(now, is_busy=is_busy, reply=given_reply))
        out = out and given_reply is None
        successes += step.succeeded
        action = step.after
        if step.act:
            assert not out
            assert not successes
            action, out = asked(action, "c", NOW + now), True
        if restarts:
            (action,) = read_back(ACTIONS, (action,))
    assert action.done == (successes == 1)
    assert successes <= 1
