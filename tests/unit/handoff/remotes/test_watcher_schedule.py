"""When a remote is asked again: often while it answers, seldom while it does not, and never too late."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.handoff.remotes.watcher import DOWN_AFTER_FAILURES, FIRST_RETRY_S, LONGEST_RETRY_S, PollSchedule

NOW = 1_000.0
POLLS = st.floats(0.01, 1e9)


def waits(poll_s: float, failures: int) -> list[float]:
    schedule, found = PollSchedule(NOW), []
    for _ in range(failures):
        schedule = schedule.failed(NOW, poll_s)
        found.append(schedule.due - NOW)
    return found


def test_a_remote_that_answers_is_asked_again_after_its_interval() -> None:
    assert PollSchedule(NOW, failures=9).succeeded(NOW, 20) == PollSchedule(NOW + 20, failures=0)


@pytest.mark.parametrize(
    ("poll_s", "expected"),
    [
        (20.0, [FIRST_RETRY_S, 40.0, 80.0, 160.0, LONGEST_RETRY_S, LONGEST_RETRY_S]),
        (2.0, [2.0, 4.0, 8.0, 16.0, 32.0, 64.0]),
        (200.0, [FIRST_RETRY_S, LONGEST_RETRY_S, LONGEST_RETRY_S]),
        (3_600.0, [FIRST_RETRY_S, 3_600.0, 3_600.0]),
    ],
)
def test_a_remote_that_fails_is_asked_again_soon_and_then_less_often(poll_s: float, expected: list[float]) -> None:
    assert waits(poll_s, len(expected)) == expected


def test_failures_are_counted_until_the_remote_answers() -> None:
    failed = PollSchedule(NOW).failed(NOW, 20)
    assert (failed.failures, failed.succeeded(NOW, 20).failures) == (1, 0)
    assert failed.failed(NOW, 20).failures == DOWN_AFTER_FAILURES


@given(POLLS, st.integers(1, 100))
def test_however_often_a_remote_failed_it_is_asked_again_within_bounds(poll_s: float, failures: int) -> None:
    found = waits(poll_s, failures)
    assert found == sorted(found)
    assert found[0] == pytest.approx(min(FIRST_RETRY_S, poll_s), abs=1e-3)
    assert all(wait <= max(LONGEST_RETRY_S, poll_s) + 1e-3 for wait in found)
