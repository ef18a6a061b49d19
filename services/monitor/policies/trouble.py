"""What is done about an agent that can't go on by itself: it is restarted where that may help, else paused. Pure."""

from dataclasses import dataclass, replace
from typing import Literal

from services.monitor.policies.policy import (
    REPLY_LOST_AFTER_S,
    AgentObservation,
    PolicyOutcome,
    restart,
    send,
    stable_id,
)
from shared.contract.events.activity import AgentFatal
from shared.contract.states import Activity, Trouble
from shared.fleet.policies import HoldPolicy, Mend, WatchPolicy
from shared.runtime.moments import Moment

HELD_UNTIL = {
    Trouble.LOGIN: "it is held until somebody has logged it in",
    Trouble.CREDIT: "it is held until its account has credit again",
    Trouble.SETUP: "it is held until somebody has changed how it is started",
}
"""The troubles that only a person can end."""
SAME_TROUBLE_WITHIN_S = 60.0
"""A paused agent that was asked to go on and fails again this soon is still in the same trouble."""
RESTART_RETRY_S, RESTART_TRIES = 60.0, 5
"""How soon, and how often, a restart that did not happen is asked for again."""


@dataclass(frozen=True)
class TroubleMemory:
    """The trouble that one agent is in."""

    spawn: str = ""
    trouble: Trouble | None = None
    since: Moment = 0.0
    told: bool = False
    asked_at: Moment = 0.0
    """When it was last asked to go on all the same, or its restart was asked for."""
    restart: str = ""
    """The id of the last command that was to restart it."""
    tries: int = 0

    @property
    def is_held(self) -> bool:
        return self.trouble in HELD_UNTIL


def decide(memory: TroubleMemory, observed: AgentObservation, policy: WatchPolicy) -> PolicyOutcome[TroubleMemory]:
    if observed.trouble is None or observed.status is not Activity.FAILED:
        tries = memory.is_held and memory.spawn == observed.spawn and observed.status is Activity.WORKING
        # An agent that was asked to go on works for a moment before it fails again: that is no news.
        stays = tries and observed.now - memory.asked_at < SAME_TROUBLE_WITHIN_S
        return PolicyOutcome(memory if stays else TroubleMemory())
    if (memory.spawn, memory.trouble) != (observed.spawn, observed.trouble):
        memory = TroubleMemory(observed.spawn, observed.trouble, min(observed.since, observed.now))
    if observed.trouble in HELD_UNTIL:
        return _hold(memory, observed, policy.credit if observed.trouble is Trouble.CREDIT else policy.login)
    return _heal(memory, observed, policy)


def _heal(memory: TroubleMemory, observed: AgentObservation, policy: WatchPolicy) -> PolicyOutcome[TroubleMemory]:
    due = memory.since + policy.heal.after_s
    restarts = policy.heal.then is Mend.RESTART and observed.may_restart
    if memory.told and restarts:
        return _restart_again(memory, observed)
    if memory.told or (observed.left_alone and restarts):
        return PolicyOutcome(memory)
    if observed.now < due:
        return PolicyOutcome(memory, look_at=due)
    if not restarts:
        event = _fatal(observed, "tell", "it is left to people")
        return PolicyOutcome(replace(memory, told=True), events=(event,))
    event = _fatal(observed, "restart", "it is restarted within its restart limits")
    return replace(_restart(replace(memory, told=True), observed), events=(event,))


def _restart(memory: TroubleMemory, observed: AgentObservation) -> PolicyOutcome[TroubleMemory]:
    command_id = stable_id("heal", observed.spawn, observed.trouble, memory.since, memory.tries)
    after = replace(memory, restart=command_id, asked_at=observed.now, tries=memory.tries + 1)
    command = restart(observed, command_id)
    return PolicyOutcome(after, ((command, observed.reason),), look_at=observed.now + RESTART_RETRY_S)


def _restart_again(memory: TroubleMemory, observed: AgentObservation) -> PolicyOutcome[TroubleMemory]:
    """The session is still there, so the last restart was refused, or its reply was lost."""
    is_open = memory.restart not in observed.replies and 0 <= observed.now - memory.asked_at < REPLY_LOST_AFTER_S
    if is_open or observed.left_alone or memory.tries >= RESTART_TRIES:
        return PolicyOutcome(memory)
    due = memory.asked_at + RESTART_RETRY_S
    return _restart(memory, observed) if observed.now >= due else PolicyOutcome(memory, look_at=due)


def _hold(memory: TroubleMemory, observed: AgentObservation, policy: HoldPolicy) -> PolicyOutcome[TroubleMemory]:
    if not memory.told:
        then = HELD_UNTIL[observed.trouble or Trouble.LOGIN]
        again = f"; it is asked again every {policy.retry_s:g} s" if policy.retry_s else ""
        memory = replace(memory, told=True, asked_at=observed.now)
        return PolicyOutcome(memory, events=(_fatal(observed, "hold", f"{then}{again}"),))
    if not policy.retry_s or not observed.is_managed or observed.left_alone:
        return PolicyOutcome(memory)
    due = memory.asked_at + policy.retry_s
    if observed.now < due:
        return PolicyOutcome(memory, look_at=due)
    command = send(observed, policy.prompt, stable_id("retry", observed.spawn, observed.now))
    after = replace(memory, asked_at=observed.now)
    return PolicyOutcome(after, ((command, f"it may go on by now: {observed.reason}"),))


def _fatal(observed: AgentObservation, then: Literal["restart", "hold", "tell"], sentence: str) -> AgentFatal:
    trouble = observed.trouble or Trouble.SESSION
    reason = f"{observed.reason}; {sentence}"
    return AgentFatal(agent=observed.agent, spawn=observed.spawn, trouble=trouble, then=then, reason=reason)
