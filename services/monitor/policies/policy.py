"""What every policy has in common: it decides from an observation of one agent, and gives an outcome.

A policy is a pure function `decide(memory, observed, settings)` in a module of its own. `runner.py` calls it, sends its
commands to the spawner, emits its events and remembers its memory.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

from services.monitor.limits.claims import LimitClaim
from services.monitor.subject import Subject
from services.monitor.verdict import Verdict
from shared.contract.commands import Command, Reply, Restart, Send
from shared.contract.envelope import Event
from shared.contract.states import Activity, Trouble
from shared.fleet import Agent, AgentKind, Fleet

S = TypeVar("S")

IDLE = (Activity.WAITING, Activity.STALLED)
IDLE_SETTLES_S = 2.0
"""An agent must be idle for this long before anything is typed: between two tools it may seem idle."""
REPLY_LOST_AFTER_S = 600.0
"""A command without a reply by then never gets one: the journal was lost, or the agent is gone."""
INPUT_BOX_WITHIN_S = 30.0
"""How long a text may wait for an input box. Later, its reason may not hold any more."""
RESTART_EXPIRES = timedelta(minutes=10)
"""How long a restart may wait for the spawner. It names one session, so a late one can't hit another."""


@dataclass(frozen=True)
class AgentObservation:
    """One agent as it is now."""

    agent: str
    spawn: str
    status: Activity
    since: float
    """Since when it has this status, by the evidence that decided it."""
    reason: str
    now: float
    is_weak: bool = False
    """Whether the status follows only from what is absent: an input box, and no sign of work."""
    declared: Agent | None = None
    """Its part of the fleet file; None for an agent that was only found: nothing is typed into that."""
    account: str = ""
    conversation: str | None = None
    claim: LimitClaim | None = None
    """What it says about a usage limit."""
    trouble: Trouble | None = None
    promise: float | None = None
    """Until when it said that it waits."""
    wrote_at: float = 0.0
    """When it last wrote to its terminal."""
    paints: bool = False
    """Whether its program is known to paint all the time while it works."""
    left_alone: str = ""
    """Why nothing is asked of it now, such as a limit of its account; empty where something may be."""
    replies: Mapping[str, Reply] = field(default_factory=dict)
    """The replies to earlier commands, by command id. A command that is not here is under way."""

    @property
    def is_managed(self) -> bool:
        """Whether it is an agent of the fleet file, not a side service."""
        return self.declared is not None and self.declared.kind is not AgentKind.SERVICE

    @property
    def may_restart(self) -> bool:
        """Whether it is started again after it ends. A task is not."""
        return self.is_managed and not self.is_task

    @property
    def is_task(self) -> bool:
        return self.declared is not None and self.declared.kind is AgentKind.TASK

    @property
    def is_idle(self) -> bool:
        return self.status in IDLE and self.now - self.since >= IDLE_SETTLES_S

    @property
    def has_prompt(self) -> bool:
        """Whether it was told what to do when it started."""
        return self.declared is not None and bool(self.declared.prompt or self.declared.prompt_file)


def observe(fleet: Fleet, subject: Subject, verdict: Verdict, now: float) -> AgentObservation:
    """What all decisions about an agent need. The policy runner adds what only policies need."""
    winner = verdict.winner
    return AgentObservation(
        agent=subject.agent,
        spawn=subject.spawn,
        status=verdict.status,
        since=min(winner.at if winner is not None else now, now),
        reason=verdict.reason,
        now=now,
        declared=fleet.agents.get(subject.agent),
    )


@dataclass(frozen=True)
class PolicyOutcome(Generic[S]):
    """What a policy decided."""

    memory: S
    commands: tuple[tuple[Command, str], ...] = ()
    """Commands to the spawner, each with the reason."""
    events: tuple[Event, ...] = ()
    look_at: float | None = None
    """When to decide again if nothing changes before."""


def stable_id(*parts: object) -> str:
    """A command id that follows from the reason: the same reason gives the same command, which acts once."""
    return hashlib.sha256(":".join(map(str, parts)).encode()).hexdigest()[:24]


def send(observed: AgentObservation, text: str, command_id: str) -> Send:
    """Type a text into an idle agent. The spawner may leave a menu for it, if leaving costs and changes nothing."""
    return Send(
        agent=observed.agent,
        spawn=observed.spawn,
        text=text,
        when="if_idle",
        leaves_menu=True,
        wait_s=INPUT_BOX_WITHIN_S,
        expires=datetime.fromtimestamp(observed.now, UTC) + timedelta(seconds=2 * INPUT_BOX_WITHIN_S),
        id=command_id,
    )


def restart(observed: AgentObservation, command_id: str) -> Restart:
    """End its session as if it had died: it is started again within its restart limits."""
    expires = datetime.fromtimestamp(observed.now, UTC) + RESTART_EXPIRES
    return Restart(agent=observed.agent, spawn=observed.spawn, counts=True, id=command_id, expires=expires)
