"""How often an agent that dies is started again: waits grow, bursts and rates are bounded, and giving up is final."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.spawner.sessions.restarts import (
    GiveUp,
    RestartAt,
    fleet_restart,
    fleet_worth_remembering,
    next_restart,
    worth_remembering,
)
from shared.fleet import FleetRestarts, RestartPolicy

POLICY = RestartPolicy()
A_BIT = 1e-6
"""For sums that floating point makes inexact."""

policies = st.builds(
    RestartPolicy,
    first_wait_s=st.floats(0, 100),
    longest_wait_s=st.floats(0, 1_000),
    burst=st.integers(0, 8),
    burst_s=st.floats(0.001, 10_000),
    sustained=st.integers(0, 12),
    sustained_s=st.floats(0.001, 10_000),
)
gaps = st.lists(st.floats(0.0, 50.0), max_size=40)


def most_within(times: list[float], window_s: float) -> int:
    """How many at most fall into any stretch of time of this length."""
    return max((sum(last - window_s < each - A_BIT and each <= last for each in times) for last in times), default=0)


def when(policy: RestartPolicy, deaths: list[float]) -> float:
    verdict = next_restart(policy, deaths)
    assert isinstance(verdict, RestartAt)
    return verdict.when


# --- one agent ---


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
    assert verdict == GiveUp("it died 6 times within 60 s; 5 restarts are allowed")


def test_an_agent_that_dies_every_minute_is_given_up_within_the_hour() -> None:
    """It never makes a burst; the sustained limit is for it."""
    deaths = [float(minute * 61) for minute in range(40)]
    verdicts = [next_restart(POLICY, deaths[:count]) for count in range(1, 41)]
    assert all(isinstance(each, RestartAt) for each in verdicts[:30])
    assert verdicts[30] == GiveUp("it died 31 times within 3600 s; 30 restarts are allowed")


@pytest.mark.parametrize(("first", "again"), [(0.0, 60.0), (0.0, 60.1)])
def test_a_death_long_ago_counts_no_more(first: float, again: float) -> None:
    assert next_restart(POLICY, [first, again]) == RestartAt(again + 1, 1)


def test_a_death_just_within_the_window_counts() -> None:
    assert next_restart(POLICY, [0.0, 59.9]) == RestartAt(61.9, 2)


@pytest.mark.parametrize("policy", [RestartPolicy(burst=0), RestartPolicy(sustained=0)])
def test_with_no_restarts_allowed_the_first_death_is_the_end(policy: RestartPolicy) -> None:
    assert isinstance(next_restart(policy, [1.0]), GiveUp)


def test_no_wait_is_longer_than_the_longest() -> None:
    policy = RestartPolicy(first_wait_s=10, longest_wait_s=15, burst=9)
    assert [when(policy, [0.0] * count) for count in (1, 2, 3, 9)] == [10, 15, 15, 15]


@pytest.mark.parametrize("first_wait_s", [0.0, 1.0])
def test_an_agent_that_may_die_for_ever_is_started_for_ever(first_wait_s: float) -> None:
    often = {"burst": 1_000_000, "burst_s": 86_400, "sustained": 1_000_000}
    policy = RestartPolicy.model_validate({"first_wait_s": first_wait_s, "longest_wait_s": 5, **often})
    deaths = [float(second) for second in range(5_000)]
    assert when(policy, deaths) <= deaths[-1] + 5


@given(policies, gaps)
def test_waits_are_bounded_and_grow_within_a_burst(policy: RestartPolicy, gaps: list[float]) -> None:
    deaths = [0.0]
    before: RestartAt | None = None
    for gap in gaps:
        verdict = next_restart(policy, deaths)
        if isinstance(verdict, GiveUp):
            break
        wait = verdict.when - deaths[-1]
        assert wait <= policy.longest_wait_s + A_BIT
        assert wait >= min(policy.first_wait_s, policy.longest_wait_s) - A_BIT
        if before is not None and verdict.attempt > before.attempt:
            assert wait >= before.when - deaths[-2] - A_BIT
        before = verdict
        deaths.append(verdict.when + gap)


@given(policies, gaps)
def test_there_are_never_more_restarts_within_a_window_than_allowed(policy: RestartPolicy, gaps: list[float]) -> None:
    answered: list[float] = []
    restarts: list[float] = []
    remembered: list[float] = []
    now = 0.0
    for gap in gaps:
        now += gap
        remembered = worth_remembering(policy, [*remembered, now])
        verdict = next_restart(policy, remembered)
        if isinstance(verdict, GiveUp):
            break
        answered.append(now)
        now = verdict.when
        restarts.append(now)
    assert most_within(answered, policy.burst_s) <= policy.burst
    assert most_within(answered, policy.sustained_s) <= policy.sustained
    assert most_within(restarts, policy.burst_s) <= policy.burst
    # A long wait before the window may bring one restart into it whose death was outside.
    assert most_within(restarts, policy.sustained_s - policy.longest_wait_s) <= policy.sustained


@given(policies, gaps)
def test_what_is_forgotten_makes_no_difference(policy: RestartPolicy, gaps: list[float]) -> None:
    everything: list[float] = []
    remembered: list[float] = []
    now = 0.0
    for gap in gaps:
        now += gap
        everything.append(now)
        remembered = worth_remembering(policy, [*remembered, now])
        assert len(remembered) <= max(policy.burst, policy.sustained) + 1
        whole, short = next_restart(policy, everything), next_restart(policy, remembered)
        assert type(whole) is type(short)
        if isinstance(whole, RestartAt):
            assert whole == short


# --- the fleet ---

fleet_policies = st.builds(
    FleetRestarts,
    burst=st.integers(1, 5),
    burst_s=st.floats(0.01, 100),
    sustained=st.integers(0, 30),
    sustained_s=st.floats(0.01, 1_000),
)


def test_a_few_restarts_are_made_at_once_and_more_wait_for_their_turn() -> None:
    policy = FleetRestarts(burst=2, burst_s=10)
    assert fleet_restart(policy, 1, [], 100.0) == RestartAt(100.0, 0)
    assert fleet_restart(policy, 1, [99.0], 100.0) == RestartAt(100.0, 0)
    assert fleet_restart(policy, 1, [95.0, 99.0], 100.0) == RestartAt(105.0, 0)
    assert fleet_restart(policy, 1, [90.0, 99.0], 100.0) == RestartAt(100.0, 0)


@pytest.mark.parametrize(("agents", "sustained", "allowed"), [(1, 0, 100), (50, 0, 500), (50, 7, 7)])
def test_past_the_sustained_rate_it_is_given_up(agents: int, sustained: int, allowed: int) -> None:
    policy = FleetRestarts(burst=1_000, sustained=sustained)
    restarts = [float(second) for second in range(allowed)]
    assert isinstance(fleet_restart(policy, agents, restarts[1:], 600.0), RestartAt)
    verdict = fleet_restart(policy, agents, restarts, 600.0)
    assert verdict == GiveUp(f"the fleet restarted {allowed} times within 3600 s; more are not allowed")


@given(fleet_policies, st.integers(0, 3), st.lists(st.floats(0, 20), max_size=60))
def test_the_fleet_never_restarts_more_than_allowed(policy: FleetRestarts, agents: int, gaps: list[float]) -> None:
    allowed = policy.sustained or 100
    everything: list[float] = []
    remembered: list[float] = []
    now = 0.0
    for gap in gaps:
        now += gap
        verdict = fleet_restart(policy, agents, remembered, now)
        assert verdict == fleet_restart(policy, agents, everything, now), "what was forgotten made a difference"
        recent = sum(each > now - policy.sustained_s for each in everything)
        if isinstance(verdict, GiveUp):
            assert recent >= allowed
            continue
        assert recent < allowed
        assert now <= verdict.when <= now + policy.burst_s + A_BIT
        now = verdict.when
        everything.append(now)
        remembered = fleet_worth_remembering(policy, [*remembered, now])
    assert most_within(everything, policy.burst_s) <= policy.burst
    assert all(earlier <= later for earlier, later in pairwise(everything))
