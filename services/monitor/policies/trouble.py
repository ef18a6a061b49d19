"""An agent that can't go on by itself: restarted within its limits where that may help, else held and told. Pure."""

from dataclasses import dataclass, replace
from typing import Literal

from services.monitor.limits.hold import LOST_AFTER_S
from services.monitor.policies.policy import AgentObservation, PolicyOutcome, errand_id, restart, send
from shared.contract.events.activity import AgentFatal
from shared.contract.states import Activity, Trouble
from shared.fleet.policies import HoldPolicy, Mend, WatchPolicy

MENDS = {
    Trouble.LOGIN: "it is held until somebody has logged it in",
    Trouble.CREDIT: "it is held until its account has credit again",
    Trouble.SETUP: "it is held until somebody has changed how it is started",
}
"""What nothing but a person mends."""
FAILS_WITHIN_S = 60.0
"""Who was asked to go on all the same and fails so soon is in the same trouble still."""
AGAIN_S, TRIES = 60.0, 5
"""A restart that did not come about is asked for again so soon, so often."""


@dataclass(frozen=True)
class Troubled:
    """Of one agent that can't go on. Kept over restarts."""

    spawn: str = ""
    trouble: Trouble | None = None
    since: float = 0.0
    told: bool = False
    asked_at: float = 0.0
    """When it was last asked to go on all the same, or to be restarted."""
    asked: str = ""
    """The command that is to restart it, while nothing is known of that."""
    tries: int = 0

    @property
    def is_held(self) -> bool:
        return self.trouble in MENDS


def decide(troubled: Troubled, sight: AgentObservation, policy: WatchPolicy) -> PolicyOutcome[Troubled]:
    if sight.trouble is None or sight.status is not Activity.FAILED:
        tries = troubled.is_held and troubled.spawn == sight.spawn and sight.status is Activity.WORKING
        # What was asked to go on works for a moment, and fails again: that is no news.
        return PolicyOutcome(troubled if tries and sight.now - troubled.asked_at < FAILS_WITHIN_S else Troubled())
    if (troubled.spawn, troubled.trouble) != (sight.spawn, sight.trouble):
        troubled = Troubled(sight.spawn, sight.trouble, min(sight.since, sight.now))
    if sight.trouble in MENDS:
        return _hold(troubled, sight, policy.credit if sight.trouble is Trouble.CREDIT else policy.login)
    return _heal(troubled, sight, policy)


def _heal(troubled: Troubled, sight: AgentObservation, policy: WatchPolicy) -> PolicyOutcome[Troubled]:
    due = troubled.since + policy.heal.after_s
    restarts = policy.heal.then is Mend.RESTART and sight.may_restart
    if troubled.told and restarts:
        return _again(troubled, sight)
    if troubled.told or (sight.parked and restarts):
        return PolicyOutcome(troubled)
    if sight.now < due:
        return PolicyOutcome(troubled, look_at=due)
    if not restarts:
        told = _fatal(sight, "tell", "it is left to people")
        return PolicyOutcome(replace(troubled, told=True), tells=(told,))
    told = _fatal(sight, "restart", "it is restarted within its restart limits")
    return replace(_ask(replace(troubled, told=True), sight), tells=(told,))


def _ask(troubled: Troubled, sight: AgentObservation) -> PolicyOutcome[Troubled]:
    errand = errand_id("heal", sight.spawn, sight.trouble, troubled.since, troubled.tries)
    after = replace(troubled, asked=errand, asked_at=sight.now, tries=troubled.tries + 1)
    return PolicyOutcome(after, ((restart(sight, errand), sight.reason),), look_at=sight.now + AGAIN_S)


def _again(troubled: Troubled, sight: AgentObservation) -> PolicyOutcome[Troubled]:
    """It is there still: what was asked was refused, or came too late."""
    reply = sight.answers.get(troubled.asked)
    lost = reply is not None or not 0 <= sight.now - troubled.asked_at < LOST_AFTER_S
    due = troubled.asked_at + AGAIN_S
    if not lost or sight.parked or troubled.tries >= TRIES:
        return PolicyOutcome(troubled)
    return _ask(troubled, sight) if sight.now >= due else PolicyOutcome(troubled, look_at=due)


def _hold(troubled: Troubled, sight: AgentObservation, policy: HoldPolicy) -> PolicyOutcome[Troubled]:
    if not troubled.told:
        then = MENDS[sight.trouble or Trouble.LOGIN]
        again = f"; it is asked again every {policy.retry_s:g} s" if policy.retry_s else ""
        troubled = replace(troubled, told=True, asked_at=sight.now)
        return PolicyOutcome(troubled, tells=(_fatal(sight, "hold", f"{then}{again}"),))
    if not policy.retry_s or not sight.is_kept or sight.parked:
        return PolicyOutcome(troubled)
    due = troubled.asked_at + policy.retry_s
    if sight.now < due:
        return PolicyOutcome(troubled, look_at=due)
    command = send(sight, policy.prompt, errand_id("retry", sight.spawn, sight.now))
    return PolicyOutcome(replace(troubled, asked_at=sight.now), ((command, f"it may go on by now: {sight.reason}"),))


def _fatal(sight: AgentObservation, then: Literal["restart", "hold", "tell"], says: str) -> AgentFatal:
    trouble = sight.trouble or Trouble.SESSION
    reason = f"{sight.reason}; {says}"
    return AgentFatal(agent=sight.agent, spawn=sight.spawn, trouble=trouble, then=then, reason=reason)
