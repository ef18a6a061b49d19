"""What a policy decides from, and what it may want done."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from services.monitor.limits.claims import Claim
from shared.commands import Command, Reply
from shared.events import Event
from shared.fleet import Agent, Kind
from shared.states import Activity, Trouble

S = TypeVar("S")

IDLE = (Activity.WAITING, Activity.STALLED)
SETTLES_S = 2.0
"""So long an agent must have been idle before anything is typed: between two tools it may seem so."""


@dataclass(frozen=True)
class Sight:
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
    claim: Claim | None = None
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
        return self.declared is not None and self.declared.kind is not Kind.SERVICE

    @property
    def may_restart(self) -> bool:
        """Whether it would be started again when it is ended: a task would not."""
        return self.is_kept and self.declared is not None and self.declared.kind is not Kind.TASK

    @property
    def is_idle(self) -> bool:
        return self.status in IDLE and self.now - self.since >= SETTLES_S

    @property
    def has_task(self) -> bool:
        """Whether it was told what to do when it started."""
        return self.declared is not None and bool(self.declared.prompt or self.declared.prompt_file)


@dataclass(frozen=True)
class Outcome(Generic[S]):
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
