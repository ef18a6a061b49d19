"""Whether and when an agent that died is restarted, and how many starts are spread out. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.fleet import FleetRestarts, RestartPolicy
from shared.fleet.declaration import StartSettings

RESTARTS_PER_AGENT, FEWEST_RESTARTS = 10, 100
"""The sustained limit of a fleet whose file does not set one."""


@dataclass(frozen=True, slots=True)
class RestartAt:
    when: float
    attempt: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    reason: str


def next_restart(policy: RestartPolicy, deaths: Sequence[float]) -> RestartAt | GiveUp:
    """What follows from an agent's deaths: epoch seconds, oldest first; the last one led to this question."""
    last = deaths[-1]
    recent = within(deaths, last, policy.burst_s)
    for allowed, window_s in ((policy.burst, policy.burst_s), (policy.sustained, policy.sustained_s)):
        died = within(deaths, last, window_s)
        if died > allowed:
            return GiveUp(f"it died {died} times within {window_s:g} s; {allowed} restarts are allowed")
    wait = min(policy.first_wait_s * 2.0 ** min(recent - 1, 64), policy.longest_wait_s)
    return RestartAt(last + wait, recent)


def worth_remembering(policy: RestartPolicy, deaths: Sequence[float]) -> list[float]:
    """The deaths that still count in a window."""
    longest_s, most = max(policy.burst_s, policy.sustained_s), max(policy.burst, policy.sustained)
    return [death for death in deaths if death > deaths[-1] - longest_s][-(most + 1) :]


def fleet_restart(policy: FleetRestarts, agents: int, restarts: Sequence[float], now: float) -> RestartAt | GiveUp:
    """When the limits of the fleet allow one more restart, after those at these times (epoch seconds)."""
    allowed = policy.sustained or max(FEWEST_RESTARTS, RESTARTS_PER_AGENT * agents)
    if within(restarts, now, policy.sustained_s) >= allowed:
        return GiveUp(f"the fleet restarted {allowed} times within {policy.sustained_s:g} s; more are not allowed")
    recent = [each for each in restarts if each > now - policy.burst_s]
    if len(recent) < policy.burst:
        return RestartAt(now, 0)
    return RestartAt(recent[-policy.burst] + policy.burst_s, 0)


def fleet_worth_remembering(policy: FleetRestarts, restarts: Sequence[float]) -> list[float]:
    longest_s = max(policy.burst_s, policy.sustained_s)
    return [each for each in restarts if each > restarts[-1] - longest_s]


def within(times: Sequence[float], end: float, window_s: float) -> int:
    return sum(time > end - window_s for time in times)


class Stagger:
    """Says when the next agent may start. All times are those of one clock that nobody sets."""

    def __init__(self) -> None:
        self._full_at = 0.0
        """When a full burst may start again."""

    def due(self, settings: StartSettings, now: float) -> float:
        """When one more may start; at most `now` if it may start at once."""
        self._full_at = min(max(self._full_at, now), now + settings.at_once * settings.gap_s)
        return self._full_at - (settings.at_once - 1) * settings.gap_s

    def started(self, settings: StartSettings, now: float) -> None:
        self._full_at = max(self._full_at, now) + settings.gap_s

    def give_back(self, settings: StartSettings, starts: int) -> None:
        """So many earlier starts need not be waited for."""
        self._full_at -= starts * settings.gap_s
