"""Wakes an agent on its schedule, while it is idle. Pure.

Times that pass while the agent works, or while nothing runs, are made up for by one text once it is idle.
"""

from dataclasses import dataclass, replace
from datetime import UTC, datetime, tzinfo

from cronsim import CronSim

from services.monitor.policies.policy import REPLY_LOST_AFTER_S, AgentObservation, PolicyOutcome, send, stable_id
from shared.contract.events.activity import AgentWoken
from shared.fleet.policies import Wake
from shared.runtime.moments import Moment, Move

RETRY_S = 60.0
"""How long to wait after a text that was not typed."""


@dataclass(frozen=True)
class WakeMemory:
    """The last time that one agent was woken, and the text that is under way."""

    last: float = 0.0
    """When it was last woken, or first observed."""
    is_cron: bool = False
    """Whether its schedule goes by the clock on the wall: then `last` does too."""
    command: str = ""
    """The id of the command that wakes it, while that has no reply."""
    sent_at: Moment = 0.0
    due: float = 0.0
    not_before: Moment = 0.0

    def with_moments(self, move: Move) -> "WakeMemory":
        return self if self.is_cron else replace(self, last=move(self.last))


def decide(
    memory: WakeMemory, observed: AgentObservation, wake: Wake | None, zone: tzinfo
) -> PolicyOutcome[WakeMemory]:
    """`zone` is the time zone of the schedule."""
    if wake is None or not observed.is_managed:
        return PolicyOutcome(WakeMemory())
    if not 0 < memory.last <= observed.now:  # first observed now, or the clock on the wall was set back
        memory = WakeMemory(last=observed.now)
    memory = replace(memory, is_cron=wake.cron is not None)
    events: tuple[AgentWoken, ...] = ()
    if memory.command and observed.now - memory.sent_at >= REPLY_LOST_AFTER_S:
        memory = replace(memory, command="")
    elif memory.command and (reply := observed.replies.get(memory.command)) is not None:
        if reply.ok:
            events = (_woken(memory, observed, wake),)
            memory = WakeMemory(last=max(memory.sent_at, memory.due), is_cron=memory.is_cron)
        else:
            memory = replace(memory, command="", not_before=observed.now + RETRY_S)
    due = due_at(memory, wake, zone)
    if memory.command or observed.now < due:
        return PolicyOutcome(memory, events=events, look_at=due if due > observed.now else None)
    if observed.left_alone or not observed.is_idle or observed.now < memory.not_before:
        look_at = memory.not_before if memory.not_before > observed.now else None
        return PolicyOutcome(memory, events=events, look_at=look_at)
    command_id = stable_id("wake", observed.agent, due, observed.now)
    after = replace(memory, command=command_id, sent_at=observed.now, due=due)
    command = send(observed, wake.text, command_id)
    return PolicyOutcome(after, ((command, f"its schedule: {_schedule(wake)}"),), events)


def due_at(memory: WakeMemory, wake: Wake, zone: tzinfo) -> float:
    """When it is to be woken next."""
    if wake.every_s is not None:
        return memory.last + wake.every_s
    return next(CronSim(wake.cron or "* * * * *", datetime.fromtimestamp(memory.last, zone))).timestamp()


def _woken(memory: WakeMemory, observed: AgentObservation, wake: Wake) -> AgentWoken:
    due = datetime.fromtimestamp(memory.due, UTC)
    return AgentWoken(agent=observed.agent, spawn=observed.spawn, due=due, reason=_schedule(wake))


def _schedule(wake: Wake) -> str:
    return f"every {wake.every_s:g} s" if wake.every_s is not None else f"cron {wake.cron}"
