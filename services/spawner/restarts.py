"""Whether and when an agent that died is started again. Pure: burst limit and backoff as data."""

from collections.abc import Sequence
from dataclasses import dataclass

from shared.fleet import RestartPolicy


@dataclass(frozen=True, slots=True)
class RestartAt:
    when: float
    attempt: int


@dataclass(frozen=True, slots=True)
class GiveUp:
    reason: str


def next_restart(policy: RestartPolicy, deaths: Sequence[float]) -> RestartAt | GiveUp:
    """What follows from an agent's deaths (epoch seconds, oldest first, the last one still unanswered)."""
    last = deaths[-1]
    recent = [death for death in deaths if death > last - policy.burst_s]
    if len(recent) > policy.burst:
        return GiveUp(f"it died {len(recent)} times within {policy.burst_s:g} s; {policy.burst} restarts are allowed")
    wait = min(policy.first_wait_s * 2.0 ** min(len(recent) - 1, 64), policy.longest_wait_s)
    return RestartAt(last + wait, len(recent))


def worth_remembering(policy: RestartPolicy, deaths: Sequence[float]) -> list[float]:
    """The deaths that can still matter, so that the list does not grow for months."""
    return [death for death in deaths if death > deaths[-1] - policy.burst_s][-(policy.burst + 1) :]
