"""The history of a clock that people and NTP set: which stamp is when."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.system.clock import JUMPED_S, JUMPS_KNOWN, ClockHistory, ClockReading, jump_sentence, read_clock

HOUR = 3600.0
START = 1_800_000_000.0
"""What the clock shows at the machine's start."""


def reading(since_boot: float, ahead: float = 0.0, boot: str = "b1") -> ClockReading:
    return ClockReading(boot, START + since_boot + ahead, since_boot)


CALM = ClockHistory.beginning(reading(1_000))


def jumped(by: float, at: float = 10 * HOUR) -> ClockHistory:
    """Set at this time since the machine's start, noticed 5 s later."""
    return CALM.continued(reading(at + 5, by), at)


def test_a_clock_that_nobody_sets_has_one_history_also_over_a_suspend() -> None:
    assert CALM.continued(reading(50 * HOUR), 1_000) is CALM
    assert CALM.continued(reading(50 * HOUR, JUMPED_S - 0.1), 1_000) is CALM


@pytest.mark.parametrize("by", [-2 * HOUR, 2 * HOUR, 30 * HOUR])
def test_a_stamp_from_before_a_jump_moves_and_one_from_after_it_stays(by: float) -> None:
    history, now = jumped(by), START + 10 * HOUR + by + 600
    ago_s = 700.0  # 100 s before the jump
    assert history.corrected(now - by - ago_s, now) == now - ago_s
    assert history.corrected(now - 500, now) == now - 500
    assert history.corrected(now, now) == now


def test_a_stamp_that_both_periods_can_have_made_counts_as_the_later_ones() -> None:
    history = jumped(-2 * HOUR)
    two_hours_later = START + 10 * HOUR
    assert history.corrected(two_hours_later - 60, two_hours_later) == two_hours_later - 60


def test_nothing_of_the_past_is_later_than_now() -> None:
    assert CALM.corrected(START + 9e9, START + 100) == START + 100


@pytest.mark.parametrize("by", [-2 * HOUR, 2 * HOUR])
def test_a_jump_while_nobody_looked_is_noticed(by: float) -> None:
    history = CALM.continued(reading(10 * HOUR, by), None)
    now = START + 10 * HOUR + by
    assert history.offset - CALM.offset == by
    assert history.corrected(now - by - 10, now) == now - 10
    assert history.corrected(now - 1, now) == now - 1


def test_after_a_restart_of_the_machine_nothing_is_known_of_the_clock_before() -> None:
    again = jumped(HOUR).continued(reading(10, 5 * HOUR, boot="b2"), None)
    assert not again.has_jumped


def test_only_the_latest_jumps_are_known() -> None:
    history = CALM
    for number in range(1, 3 * JUMPS_KNOWN):
        history = history.continued(reading(number * HOUR, 10.0 * number), number * HOUR - 1)
    assert len(history.periods) == JUMPS_KNOWN


def test_a_process_keeps_the_start_that_the_clock_showed_then() -> None:
    history = jumped(-2 * HOUR)
    assert history.shown_at(HOUR) == START + HOUR
    assert history.shown_at(11 * HOUR) == START + 9 * HOUR


@given(st.lists(st.tuples(st.integers(1, 50_000), st.integers(-40_000, 40_000)), max_size=8), st.floats(0, 1))
def test_a_stamp_of_the_present_period_is_never_moved(jumps: list[tuple[int, int]], share: float) -> None:
    history, at, ahead = CALM, 1_000.0, 0
    for passes, by in jumps:
        at, ahead = at + passes, ahead + by
        history = history.continued(reading(at, ahead), at)
    begins = history.periods[-1].begins
    now = at + 1_000 + history.offset
    moment = begins + share * (at + 1_000 - begins) + history.offset
    assert history.corrected(moment, now) == min(moment, now)


@pytest.mark.parametrize(
    ("by", "said"),
    [(-7200, "set back by 2 h"), (90_000, "set forward by 25 h"), (-5, "set back by 5 s"), (400_000, "by 4.6 d")],
)
def test_a_jump_is_said_in_a_sentence(by: float, said: str) -> None:
    assert said in jump_sentence(by)


def test_the_machine_has_both_clocks() -> None:
    first, second = read_clock(), read_clock()
    assert first.boot == second.boot
    assert second.offset == pytest.approx(first.offset, abs=1.0)
