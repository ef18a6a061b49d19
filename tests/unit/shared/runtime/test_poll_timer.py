"""When a service looks: polls that nothing starves, looks that were asked for, waits after failures."""

from shared.runtime.poll_timer import FIRST_BACKOFF_S, LONGEST_BACKOFF_S, Backoff, PollIntervals, PollTimer

POLLS = PollIntervals(connected_s=30.0, alone_s=1.0)


def rested(now: float = 0.0) -> PollTimer:
    """A rhythm whose first look has been had."""
    rhythm = PollTimer(POLLS, now)
    rhythm.poll(now, broker_answers=True)
    rhythm.succeeded(more=False, look_again=None)
    return rhythm


def test_the_first_look_is_owed_at_once() -> None:
    rhythm = PollTimer(POLLS, 5.0)
    assert rhythm.is_due(5.0)
    assert rhythm.wakes_at(5.0) == 5.0


def test_the_poll_is_slow_with_a_broker_and_fast_without() -> None:
    rhythm = rested()
    assert rhythm.wakes_at(0.0) == 30.0
    assert not rhythm.poll(10.0, broker_answers=False)
    assert rhythm.wakes_at(10.0) == 11.0
    assert rhythm.poll(11.0, broker_answers=False)


def test_looks_for_other_reasons_do_not_put_the_poll_off() -> None:
    rhythm = rested()
    for second in range(1, 30):
        assert not rhythm.poll(float(second), broker_answers=True)
        rhythm.succeeded(more=False, look_again=None)
    assert rhythm.poll(30.0, broker_answers=True)


def test_a_look_that_was_asked_for_comes_before_the_poll_and_once() -> None:
    rhythm = rested()
    rhythm.succeeded(more=False, look_again=4.0)
    assert not rhythm.is_due(3.9)
    assert rhythm.wakes_at(1.0) == 4.0
    assert rhythm.is_due(4.0)
    rhythm.succeeded(more=False, look_again=None)
    assert not rhythm.is_due(5.0)


def test_what_was_left_over_is_looked_at_next() -> None:
    rhythm = rested()
    rhythm.succeeded(more=True, look_again=None)
    assert rhythm.is_due(0.1)


def test_after_a_failure_the_next_look_is_owed_but_waits() -> None:
    rhythm = rested()
    rhythm.overdue = True
    rhythm.backoff.failed(10.0)
    assert rhythm.is_due(10.1)
    assert rhythm.wakes_at(10.1) == 10.0 + FIRST_BACKOFF_S
    assert rhythm.backoff.waits(10.1)
    assert not rhythm.backoff.waits(10.0 + FIRST_BACKOFF_S)


def test_waits_grow_to_a_limit_and_begin_anew_after_success() -> None:
    backoff = Backoff()
    waits = []
    for _ in range(12):
        backoff.failed(0.0)
        waits.append(backoff.until)
    assert waits == sorted(waits)
    assert (waits[0], waits[-1]) == (FIRST_BACKOFF_S, LONGEST_BACKOFF_S)
    backoff.succeeded()
    backoff.failed(0.0)
    assert backoff.until == FIRST_BACKOFF_S
