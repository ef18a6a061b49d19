"""How often the monitor looks, and at which screens."""

import pytest

from services.monitor.look_schedule import (
    CAPTURE_SURELY_WORKING_S,
    CAPTURE_WORKING_S,
    LOOK_BUSY_S,
    LOOK_IDLE_S,
    LOOK_MANY_S,
    QUIET_AFTER_S,
    LookSchedule,
)
from services.monitor.verdict import Verdict
from shared.agents.evidence import EvidenceSource
from shared.contract.states import Activity
from tests.unit.monitor.samples import NOW, pane, verdict

NEVER = float("-inf")
HOOKED = verdict(Activity.WORKING, source=EvidenceSource.HOOKS)
SURE = verdict(Activity.WORKING, source=EvidenceSource.LIVE_FILE)
DUE: dict[str, tuple[float, float, Verdict | None, bool]] = {
    "never captured": (-100, NEVER, None, True),
    "nothing was painted since": (-100, -50, None, False),
    "painted in the second of the capture": (0, 0, None, True),
    "painted since": (0, -5, None, True),
    "the clock was set back": (-100, 3600, None, True),
    "it works by its screen": (0, 0, verdict(Activity.WORKING), True),
    "it works by better sources": (0, 0.1 - CAPTURE_WORKING_S, HOOKED, False),
    "it works by better sources, for a while": (0, -CAPTURE_WORKING_S, HOOKED, True),
    "it works by its live file": (0, 0.1 - CAPTURE_SURELY_WORKING_S, SURE, False),
    "it works by its live file, for a while": (0, -CAPTURE_SURELY_WORKING_S, SURE, True),
    "it asks, by better sources": (0, 0, verdict(Activity.NEEDS_APPROVAL, source=EvidenceSource.HOOKS), True),
    "nothing tells": (0, 0, Verdict(Activity.UNKNOWN, None, ()), True),
}


@pytest.mark.parametrize(("painted", "captured", "known", "due"), DUE.values(), ids=DUE)
def test_a_screen_is_due(painted: float, captured: float, known: Verdict | None, due: bool) -> None:
    found = pane(activity=int(NOW + painted))
    assert LookSchedule().is_due(found, NOW + captured, known, NOW) is due


def test_a_screen_is_captured_again_if_its_second_was_not_over() -> None:
    """tmux tells the second only: what was captured in the middle of it is captured once more."""
    painted = pane(activity=int(NOW))
    assert LookSchedule().is_due(painted, NOW + 0.9, None, NOW + 1.4)
    assert not LookSchedule().is_due(painted, NOW + 1.4, None, NOW + 1.9)


QUIET = pane(activity=int(NOW - QUIET_AFTER_S))


@pytest.mark.parametrize(
    ("says", "wait_s"),
    [
        (Activity.WORKING, LOOK_BUSY_S),
        (Activity.STARTING, LOOK_BUSY_S),
        (Activity.NEEDS_APPROVAL, LOOK_BUSY_S),
        (Activity.WAITING, LOOK_IDLE_S),
        (Activity.LIMITED, LOOK_IDLE_S),
        (Activity.DONE, LOOK_IDLE_S),
    ],
)
def test_an_agent_at_work_is_looked_at_more_often(says: Activity, wait_s: float) -> None:
    schedule = LookSchedule()
    schedule.note(QUIET, verdict(says), NOW)
    assert schedule.next_look_s(NOW, 1) == wait_s


def test_a_pane_that_paints_is_looked_at_more_often() -> None:
    schedule = LookSchedule()
    schedule.note(pane(activity=int(NOW) - 1), verdict(Activity.WAITING), NOW)
    assert schedule.next_look_s(NOW, 1) == LOOK_BUSY_S


def test_one_agent_at_work_is_enough_to_look_more_often_for_a_while() -> None:
    schedule = LookSchedule()
    assert schedule.next_look_s(NOW, 1) == LOOK_IDLE_S
    schedule.note(QUIET, verdict(Activity.WORKING), NOW)
    schedule.note(QUIET, verdict(Activity.WAITING), NOW)
    assert schedule.next_look_s(NOW + QUIET_AFTER_S - 0.1, 1) == LOOK_BUSY_S
    assert schedule.next_look_s(NOW + QUIET_AFTER_S, 1) == LOOK_IDLE_S


@pytest.mark.parametrize(("agents", "wait_s"), [(1, LOOK_BUSY_S), (50, LOOK_BUSY_S), (100, 0.8), (2000, LOOK_MANY_S)])
def test_many_agents_are_looked_at_less_often(agents: int, wait_s: float) -> None:
    schedule = LookSchedule()
    schedule.note(QUIET, verdict(Activity.WORKING), NOW)
    assert schedule.next_look_s(NOW, agents) == wait_s
