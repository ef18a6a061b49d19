"""Starting many agents: a few at once, then one after every gap, and nobody waits for ever."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.spawner.sessions.restarts import Stagger
from shared.fleet.declaration import StartSettings

A_BIT = 1e-6

some_settings = st.builds(StartSettings, at_once=st.integers(1, 6), gap_s=st.floats(0, 10))
moments = st.lists(st.floats(0, 8), max_size=40)


def starts_of(settings: StartSettings, gaps: list[float], stagger: Stagger | None = None) -> list[float]:
    """When each agent starts that asks so long after the one before, and waits for its turn."""
    stagger = stagger or Stagger()
    now = 1_000.0
    starts = []
    for gap in gaps:
        now += gap
        now = max(now, stagger.due(settings, now))
        stagger.started(settings, now)
        starts.append(now)
    return starts


def test_fifty_agents_start_a_few_at_once_and_then_one_by_one() -> None:
    starts = starts_of(StartSettings(at_once=4, gap_s=0.5), [0.0] * 50)
    assert starts[:4] == [1_000.0] * 4
    assert starts[4:8] == [1_000.5, 1_001.0, 1_001.5, 1_002.0]
    assert starts[-1] == 1_023.0


def test_after_a_rest_as_many_start_at_once_as_ever() -> None:
    settings = StartSettings(at_once=3, gap_s=1)
    assert starts_of(settings, [0, 0, 0, 0, 10, 0, 0, 0]) == [1000, 1000, 1000, 1001, 1011, 1011, 1011, 1012]


def test_with_no_gap_nobody_waits() -> None:
    assert starts_of(StartSettings(at_once=1, gap_s=0), [0.0] * 100) == [1_000.0] * 100


@given(some_settings, moments)
def test_never_more_start_in_a_window_than_allowed(settings: StartSettings, gaps: list[float]) -> None:
    starts = starts_of(settings, gaps)
    for first, begin in enumerate(starts):
        for last, end in enumerate(starts[first:], start=first):
            assert (last - first + 1 - settings.at_once) * settings.gap_s <= end - begin + A_BIT


@given(some_settings, moments)
def test_nobody_waits_longer_than_a_gap_for_the_next_turn(settings: StartSettings, gaps: list[float]) -> None:
    stagger = Stagger()
    now = starts_of(settings, gaps, stagger)[-1] if gaps else 1_000.0
    assert stagger.due(settings, now) <= now + settings.gap_s + A_BIT


@given(some_settings, moments, st.floats(0, 1e6))
def test_a_clock_that_is_set_back_holds_nobody_up(settings: StartSettings, gaps: list[float], back: float) -> None:
    stagger = Stagger()
    starts_of(settings, gaps, stagger)
    now = 1_000.0 - back
    due = stagger.due(settings, now)
    assert due <= now + settings.gap_s + A_BIT
    assert stagger.due(settings, now + settings.gap_s + A_BIT) <= now + settings.gap_s + 2 * A_BIT


@pytest.mark.parametrize("forced", [1, 10, 1_000])
def test_starts_that_did_not_wait_count_and_delay_the_next_by_one_gap_at_most(forced: int) -> None:
    """A person's `restart` is carried out at once, however many there are."""
    settings = StartSettings(at_once=2, gap_s=1)
    stagger = Stagger()
    for _ in range(forced):
        stagger.started(settings, 1_000.0)
    assert stagger.due(settings, 1_000.0) == (1_000.0 if forced == 1 else 1_001.0)


def test_another_gap_counts_from_the_next_start_on() -> None:
    stagger = Stagger()
    for _ in range(4):
        stagger.started(StartSettings(at_once=4, gap_s=1_000), 0.0)
    assert stagger.due(StartSettings(at_once=4, gap_s=1), 0.0) <= 1.0


@given(some_settings, st.integers(0, 50))
def test_starts_that_are_given_back_are_not_waited_for_and_never_add_up_to_more_than_a_burst(
    settings: StartSettings, light: int
) -> None:
    stagger = Stagger()
    for _ in range(settings.at_once):
        stagger.started(settings, 0.0)
    stagger.give_back(settings, light)
    free = 0
    while stagger.due(settings, 0.0) <= A_BIT and free <= settings.at_once and settings.gap_s > A_BIT:
        stagger.started(settings, 0.0)
        free += 1
    assert settings.gap_s <= A_BIT or free == min(light, settings.at_once)
