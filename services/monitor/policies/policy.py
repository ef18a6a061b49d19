"""What a policy decides from, and what it may ask of the spawner: a text for an idle agent, or a new session."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Generic, TypeVar

from services.monitor.limits.claims import LimitClaim
from shared.contract.commands import Command, Reply, Restart, Send
from shared.contract.envelope import Event
from shared.contract.states import Activity, Trouble
from shared.fleet import Agent, AgentKind

S = TypeVar("S")

IDLE = (Activity.WAITING, Activity.STALLED)
SETTLES_S = 2.0
"""So long an agent must have been idle before anything is typed: between two tools it may seem so."""


@dataclass(frozen=True)
class AgentObservation:
    """One agent, as it is now."""

    agent: str
    spawn: str
    status: Activity
    since: float
    """Since when it has this status, by what decided it."""
    reason: str
    now: float
    is_hint: bool = False
    """Whether it is told only by what is absent: an input box, and no sign of work."""
    declared: Agent | None = None
    """As the fleet file has it; None for one that was only found: nothing is typed into that."""
    account: str = ""
    conversation: str | None = None
    claim: LimitClaim | None = None
    """What it says of a usage limit."""
    trouble: Trouble | None = None
    promise: float | None = None
    """Until when it said that it waits."""
    wrote_at: float = 0.0
    """When it last wrote to its terminal."""
    draws: bool = False
    """Whether it is known to paint something for as long as it works."""
    siblings: tuple[str, ...] = ()
    """The other agents that a limit of its would concern."""
    parked: str = ""
    """Why it is left alone, where its account's usage limit is reached or something else has it in hand."""
    answers: Mapping[str, Reply] = field(default_factory=dict)
    """What became of the commands that were asked before, by their ids; one that is not here is under way."""

    @property
    def is_kept(self) -> bool:
        """Whether it is an agent of the fleet file, and no side service."""
        return self.declared is not None and self.declared.kind is not AgentKind.SERVICE

    @property
    def may_restart(self) -> bool:
        """Whether it would be started again when it is ended: a task would not."""
        return self.is_kept and self.declared is not None and self.declared.kind is not AgentKind.TASK

    @property
    def is_idle(self) -> bool:
        return self.status in IDLE and self.now - self.since >= SETTLES_S

    @property
    def has_task(self) -> bool:
        """Whether it was told what to do when it started."""
        return self.declared is not None and bool(self.declared.prompt or self.declared.prompt_file)


@dataclass(frozen=True)
class PolicyOutcome(Generic[S]):
    """What a decision comes to."""

    after: S
    """What is to be remembered."""
    asks: tuple[tuple[Command, str], ...] = ()
    """Commands to the spawner, and why."""
    tells: tuple[Event, ...] = ()
    look_at: float | None = None
    """When to look again, if nothing happens before."""


def errand_id(*parts: object) -> str:
    """The id of a command: the same for the same reason, so that it is asked once."""
    return hashlib.sha256(":".join(map(str, parts)).encode()).hexdigest()[:24]


WITHIN_S = 30.0
"""So long it may wait for an input box; what is typed later would be about what was."""


def send(sight: AgentObservation, text: str, errand: str) -> Send:
    """A menu that offers something is left for it, where that costs and changes nothing; no other ever is."""
    return Send(
        agent=sight.agent,
        spawn=sight.spawn,
        text=text,
        when="if_idle",
        leaves_menu=True,
        wait_s=WITHIN_S,
        expires=datetime.fromtimestamp(sight.now, UTC) + timedelta(seconds=2 * WITHIN_S),
        id=errand,
    )


RESTARTS_WITHIN = timedelta(minutes=10)
"""So long the spawner may be away: it is about one session, so that nothing else can come of it."""


def restart(sight: AgentObservation, errand: str) -> Restart:
    """End its session as if it had died: it is started again within its restart limits."""
    expires = datetime.fromtimestamp(sight.now, UTC) + RESTARTS_WITHIN
    return Restart(agent=sight.agent, spawn=sight.spawn, counts=True, id=errand, expires=expires)
