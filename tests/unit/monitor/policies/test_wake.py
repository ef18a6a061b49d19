"""Pings on a schedule: when one is due, and that none comes twice."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.monitor.policies.policy import AgentObservation, PolicyOutcome
from services.monitor.policies.wake import RETRY_S, WakeMemory, decide, due_at
from shared.contract.events.activity import AgentWoken
from shared.contract.states import Activity
from shared.fleet.policies import Wake
from shared.runtime.moments import moved, mover
from tests.unit.monitor.policies.samples import NOW, kinds, observation, only, reply, verbs

EVERY = Wake(every_s=100, text="look")
BERLIN = ZoneInfo("Europe/Berlin")


def step(waking: WakeMemory, seen: AgentObservation, wake: Wake | None = EVERY) -> PolicyOutcome[WakeMemory]:
    return decide(waking, seen, wake, UTC)


def idle(seconds: float, **more: Any) -> AgentObservation:
    return observation(Activity.WAITING, NOW - 50, now=NOW + seconds, **more)


BEGUN = step(WakeMemory(), idle(0)).memory


def test_it_is_woken_once_an_interval_and_told_when_it_has_the_text() -> None:
    assert verbs(step(BEGUN, idle(99))) == []
    due = step(BEGUN, idle(100))
    command_id = str(only(due).id)
    assert (verbs(due), kinds(due)) == (["send"], [])
    assert verbs(step(due.memory, idle(101))) == []
    woken = step(due.memory, idle(102, replies=reply(command_id)))
    (told,) = woken.events
    assert isinstance(told, AgentWoken)
    assert told.due.timestamp() == NOW + 100
    assert (verbs(woken), woken.look_at) == ([], NOW + 200)


@pytest.mark.parametrize("busy", [{"status": Activity.WORKING}, {"since": NOW + 99}, {"left_alone": "its limit"}])
def test_a_wake_that_falls_due_while_the_agent_is_busy_is_made_up_for(busy: dict[str, Any]) -> None:
    waits = step(BEGUN, replace(idle(100), **busy))
    assert verbs(waits) == []
    assert verbs(step(waits.memory, idle(130))) == ["send"]


def test_many_missed_wakes_become_one() -> None:
    woken = step(BEGUN, idle(10_000))
    after = step(woken.memory, idle(10_001, replies=reply(str(only(woken).id)))).memory
    assert due_at(after, EVERY, UTC) == NOW + 10_100


def test_a_text_that_was_not_typed_is_tried_again_later() -> None:
    due = step(BEGUN, idle(100))
    refused = step(due.memory, idle(101, replies=reply(str(only(due).id), ok=False)))
    assert (kinds(refused), verbs(refused)) == ([], [])
    assert verbs(step(refused.memory, idle(101 + RETRY_S))) == ["send"]


def test_without_a_schedule_nothing_is_remembered() -> None:
    assert step(BEGUN, idle(100), None).memory == WakeMemory()


def test_cron_is_local_time_over_the_change_of_clocks() -> None:
    before = datetime(2026, 10, 24, 9, 0, tzinfo=BERLIN).timestamp()
    wake = Wake(cron="0 9 * * *")
    after = due_at(WakeMemory(last=before), wake, BERLIN)
    assert after - before == 25 * 3600
    assert datetime.fromtimestamp(after, BERLIN).hour == 9


@given(st.integers(1_700_000_000, 2_000_000_000), st.sampled_from(["* * * * *", "*/7 3 * * 1-5", "0 0 29 2 *"]))
@settings(max_examples=50)
def test_a_schedule_always_goes_on(last: int, cron: str) -> None:
    assert due_at(WakeMemory(last=last), Wake(cron=cron), BERLIN) > last


@pytest.mark.parametrize("by", [-7200, 7200])
def test_an_interval_goes_by_the_time_that_passes_and_cron_by_the_clock(by: int) -> None:
    assert moved(WakeMemory, BEGUN, mover(by)) == replace(BEGUN, last=BEGUN.last + by)
    cron = step(WakeMemory(), idle(0), Wake(cron="0 9 * * *")).memory
    assert moved(WakeMemory, cron, mover(by)) == cron
