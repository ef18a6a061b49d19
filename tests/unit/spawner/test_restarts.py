"""How often an agent that dies is started again: waits grow, bursts are bounded, and giving up is final."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.spawner.restarts import GiveUp, RestartAt, next_restart, worth_remembering
from shared.fleet import RestartPolicy

POLICY = RestartPolicy()

policies = st.builds(
    RestartPolicy,
    first_wait_s=st.floats(0, 100),
    longest_wait_s=st.floats(0, 1_000),
    burst=st.integers(0, 8),
    burst_s=st.floats(0.001, 10_000),
)
gaps = st.lists(st.floats(0.0, 50.0), max_size=40)


def test_the_waits_double_until_it_is_given_up() -> None:
    deaths: list[float] = []
    waits = []
    for second in range(5):
        deaths.append(float(second))
        verdict = next_restart(POLICY, deaths)
        assert isinstance(verdict, RestartAt)
        waits.append(verdict.when - second)
        assert verdict.attempt == second + 1
    assert waits == [1, 2, 4, 8, 16]
    verdict = next_restart(POLICY, [*deaths, 5.0])
    assert isinstance(verdict, GiveUp)
    assert verdict.reason == "it died 6 times within 60 s; 5 restarts are allowed"


@pytest.mark.parametrize(
    ("first", "again"),
    [(0.0, 60.0), (0.0, 60.1)],
)
def test_a_death_long_ago_counts_no_more(first: float, again: float) -> None:
    assert next_restart(POLICY, [first, again]) == RestartAt(again + 1, 1)


def test_a_death_just_within_the_window_counts() -> None:
    assert next_restart(POLICY, [0.0, 59.9]) == RestartAt(61.9, 2)


def test_with_no_restarts_allowed_the_first_death_is_the_end() -> None:
    assert isinstance(next_restart(RestartPolicy(burst=0), [1.0]), GiveUp)


def test_no_wait_is_longer_than_the_longest() -> None:
    policy = RestartPolicy(first_wait_s=10, longest_wait_s=15, burst=9)
    assert [_when(policy, [0.0] * count) for count in (1, 2, 3, 9)] == [10, 15, 15, 15]


def _when(policy: RestartPolicy, deaths: list[float]) -> float:
    verdict = next_restart(policy, deaths)
    assert isinstance(verdict, RestartAt)
    return verdict.when


@pytest.mark.parametrize("first_wait_s", [0.0, 1.0])
def test_an_agent_that_may_die_for_ever_is_started_for_ever(first_wait_s: float) -> None:
    policy = RestartPolicy(first_wait_s=first_wait_s, longest_wait_s=5, burst=1_000_000, burst_s=86_400)
    deaths = [float(second) for second in range(5_000)]
    assert _when(policy, deaths) <= deaths[-1] + 5


@given(policies, gaps)
def test_waits_are_bounded_and_grow_within_a_burst(policy: RestartPolicy, gaps: list[float]) -> None:
    deaths = [0.0]
    before: RestartAt | None = None
    for gap in gaps:
        verdict = next_restart(policy, deaths)
        if isinstance(verdict, GiveUp):
            break
        wait = verdict.when - deaths[-1]
        assert wait <= policy.longest_wait_s + 1e-6
        assert wait >= min(policy.first_wait_s, policy.longest_wait_s) - 1e-6
        if before is not None and verdict.attempt > before.attempt:
            assert wait >= before.when - deaths[-2] - 1e-6
        before = verdict
        deaths.append(verdict.when + gap)


@given(policies, gaps)
def test_there_are_never_more_restarts_within_the_window_than_allowed(policy: RestartPolicy, gaps: list[float]) -> None:
    restarts: list[float] = []
    remembered: list[float] = []
    now = 0.0
    for gap in gaps:
        now += gap
        remembered = worth_remembering(policy, [*remembered, now])
        verdict = next_restart(policy, remembered)
        if isinstance(verdict, GiveUp):
            break
        now = verdict.when
        restarts.append(now)
    for last in restarts:
        within = [each for each in restarts if last - policy.burst_s < each - 1e-6 and each <= last]
        assert len(within) <= policy.burst


@given(policies, gaps)
def test_what_is_forgotten_makes_no_difference(policy: RestartPolicy, gaps: list[float]) -> None:
    everything: list[float] = []
    remembered: list[float] = []
    now = 0.0
    for gap in gaps:
        now += gap
        everything.append(now)
        remembered = worth_remembering(policy, [*remembered, now])
        assert len(remembered) <= policy.burst + 1
        whole, short = next_restart(policy, everything), next_restart(policy, remembered)
        assert type(whole) is type(short)
        if isinstance(whole, RestartAt):
            assert whole == short
