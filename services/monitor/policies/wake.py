"""A persistent agent is pinged on its schedule, while it is idle. Pure.

What falls due while the agent works, or while nothing runs, is made up for by one ping once it is idle.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo

from cronsim import CronSim

from services.monitor.policies.policy import AgentObservation, PolicyOutcome, errand_id, send
from shared.contract.events.activity import AgentWoken
from shared.fleet.policies import Wake

LOST_AFTER_S = 600.0
"""A ping that is not answered by then never will be: the journal was lost, say."""
AGAIN_S = 60.0
"""After a ping that was not typed."""


@dataclass(frozen=True)
class Waking:
    """Kept over restarts."""

    last: float = 0.0
    """When it was last woken, or first seen."""
    asked: str = ""
    asked_at: float = 0.0
    due: float = 0.0
    not_before: float = 0.0


def decide(waking: Waking, sight: AgentObservation, wake: Wake | None, zone: tzinfo) -> PolicyOutcome[Waking]:
    """`zone`: in which the schedule's times of day are meant."""
    if wake is None or not sight.is_kept:
        return PolicyOutcome(Waking())
    if not 0 < waking.last <= sight.now:  # or the clock was set back
        waking = Waking(last=sight.now)
    tells: tuple[AgentWoken, ...] = ()
    if waking.asked and not 0 <= sight.now - waking.asked_at < LOST_AFTER_S:
        waking = replace(waking, asked="")
    elif waking.asked and (reply := sight.answers.get(waking.asked)) is not None:
        if reply.ok:
            tells = (_woken(waking, sight, wake),)
            waking = Waking(last=max(waking.asked_at, waking.due))
        else:
            waking = replace(waking, asked="", not_before=sight.now + AGAIN_S)
    due = due_at(waking, wake, zone)
    if waking.asked or sight.now < due:
        return PolicyOutcome(waking, tells=tells, look_at=due if due > sight.now else None)
    if sight.parked or not sight.is_idle or sight.now < waking.not_before:
        return PolicyOutcome(waking, tells=tells, look_at=waking.not_before if waking.not_before > sight.now else None)
    command = send(sight, wake.text, errand_id("wake", sight.agent, due, sight.now))
    after = replace(waking, asked=str(command.id), asked_at=sight.now, due=due)
    return PolicyOutcome(after, ((command, f"its schedule: {_schedule(wake)}"),), tells)


def due_at(waking: Waking, wake: Wake, zone: tzinfo) -> float:
    """When it is to be woken next."""
    if wake.every_s is not None:
        return waking.last + wake.every_s
    return next(CronSim(wake.cron or "* * * * *", datetime.fromtimestamp(waking.last, zone))).timestamp()


def _woken(waking: Waking, sight: AgentObservation, wake: Wake) -> AgentWoken:
    due = datetime.fromtimestamp(waking.due, UTC)
    return AgentWoken(agent=sight.agent, spawn=sight.spawn, due=due, reason=_schedule(wake))


def _schedule(wake: Wake) -> str:
    return f"every {wake.every_s:g} s" if wake.every_s is not None else f"cron {wake.cron}"
