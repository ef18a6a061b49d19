"""An agent that idles too long, or past what it promised: nudged, restarted or told, one step after the other. Pure."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from services.monitor.policies.policy import IDLE, AgentObservation, PolicyOutcome, errand_id, restart, send
from shared.contract.events.activity import AgentStalled
from shared.contract.states import Activity
from shared.fleet import AgentKind
from shared.fleet.policies import StallPolicy, Then

OURS_S = 60.0
"""Work that begins so soon after a step is owed to it."""
READY_S = 2.0
NUDGED = (Then.NUDGE, Then.NUDGE, Then.TELL)
TOLD = (Then.TELL,)


@dataclass(frozen=True)
class Stall:
    """How far it has come with one agent. Kept over restarts."""

    spawn: str = ""
    idle_since: float = 0.0
    """0: it was not idle when it was last looked at."""
    step: int = 0
    """How many steps were taken since it last worked for another reason."""
    acted_at: float = 0.0
    nudged_at: float = 0.0
    """When it was last told to go on, or restarted: work that begins soon after is owed to that."""
    works_since: float = 0.0
    stalled: bool = False
    """Whether it is stalled now, and was told."""
    owes_nudge: bool = False
    """Whether it was restarted, and is to be told what to do."""


def steps(policy: StallPolicy, sight: AgentObservation) -> tuple[Then, ...]:
    """What is gone through, one after the other."""
    if policy.then is not None:  # a task that is ended stays down: it is told instead
        return tuple(each if sight.may_restart or each is not Then.RESTART else Then.TELL for each in policy.then)
    is_loop = sight.declared is not None and sight.declared.kind is AgentKind.LOOP
    return NUDGED if (sight.has_task or is_loop) and sight.may_restart else TOLD


def decide(stall: Stall, sight: AgentObservation, policy: StallPolicy) -> PolicyOutcome[Stall]:
    if not sight.is_kept or policy.after_s == 0:
        return PolicyOutcome(Stall())
    if sight.status not in IDLE:
        return PolicyOutcome(_not_idle(stall, sight, policy))
    if stall.spawn != sight.spawn or not stall.idle_since:
        stall = replace(stall, spawn=sight.spawn, idle_since=sight.since, stalled=False, works_since=0.0)
    elif sight.since > stall.idle_since:  # it worked between two looks
        ours = 0 <= sight.since - stall.nudged_at <= OURS_S
        stall = replace(stall, idle_since=sight.since, stalled=False, step=stall.step if ours else 0)
    if sight.parked:
        return PolicyOutcome(replace(stall, stalled=False))
    if stall.owes_nudge and sight.now - stall.idle_since >= READY_S:
        owed = replace(stall, owes_nudge=False, acted_at=sight.now, nudged_at=sight.now)
        return _nudge(owed, sight, policy, "it was restarted")
    return _wait_or_act(stall, sight, policy)


def _not_idle(stall: Stall, sight: AgentObservation, policy: StallPolicy) -> Stall:
    """It goes on; for another reason than a step of ours, or for long, and all begins anew."""
    works_since = stall.works_since or sight.since
    began_by_us = 0 <= works_since - stall.nudged_at <= OURS_S and sight.now - works_since < policy.after_s
    works = sight.status is Activity.WORKING
    step = stall.step if began_by_us or not works else 0
    owes = stall.owes_nudge and not works
    return replace(
        Stall(sight.spawn, step=step, owes_nudge=owes),
        acted_at=stall.acted_at,
        nudged_at=stall.nudged_at,
        works_since=works_since if works else 0.0,
    )


def due_at(stall: Stall, sight: AgentObservation, policy: StallPolicy) -> float:
    """When it counts as stalled."""
    if sight.promise is not None and not stall.stalled:
        return min(sight.promise, stall.idle_since + policy.promise_s) + policy.grace_s
    return max(stall.idle_since, stall.acted_at) + policy.after_s


def _wait_or_act(stall: Stall, sight: AgentObservation, policy: StallPolicy) -> PolicyOutcome[Stall]:
    ladder = steps(policy, sight)
    due = due_at(stall, sight, policy)
    schedule = sight.declared is not None and sight.declared.wake is not None and sight.promise is None
    if sight.now < due or stall.step >= len(ladder) or (schedule and not stall.stalled):
        return PolicyOutcome(stall, look_at=due if due > sight.now else None)
    then = ladder[stall.step]
    idle_s = sight.now - stall.idle_since
    promised = datetime.fromtimestamp(sight.promise, UTC) if sight.promise is not None else None
    why = f"it promised to wait until {promised:%Y-%m-%d %H:%M:%S %Z}" if promised else f"idle for {idle_s:.0f} s"
    stalled = AgentStalled(
        agent=sight.agent,
        spawn=sight.spawn,
        idle_s=round(idle_s, 1),
        promised_until=promised,
        then=_word(then),
        reason=f"{why}; {_says(then, stall.step, len(ladder))}",
    )
    nudged_at = stall.nudged_at if then is Then.TELL else sight.now
    after = replace(stall, step=stall.step + 1, acted_at=sight.now, nudged_at=nudged_at, stalled=True)
    match then:
        case Then.NUDGE:
            acted = _nudge(after, sight, policy, why)
        case Then.RESTART:
            asks = ((restart(sight, _id(after)), f"it stalled: {why}"),)
            acted = PolicyOutcome(replace(after, owes_nudge=True), asks)
        case Then.TELL:
            acted = PolicyOutcome(after)
    return replace(acted, tells=(stalled,))


def _nudge(stall: Stall, sight: AgentObservation, policy: StallPolicy, why: str) -> PolicyOutcome[Stall]:
    return PolicyOutcome(stall, ((send(sight, policy.nudge, _id(stall)), f"it stalled: {why}"),))


def _id(stall: Stall) -> str:
    return errand_id("stall", stall.spawn, stall.acted_at, stall.step)


def _word(then: Then) -> Literal["nudge", "restart", "tell"]:
    return then.value


def _says(then: Then, step: int, of: int) -> str:
    place = f" ({step + 1} of {of})" if of > 1 else ""
    match then:
        case Then.NUDGE:
            return f"it is told to go on{place}"
        case Then.RESTART:
            return f"it is restarted{place}"
        case Then.TELL:
            return f"it is left to people{place}"
