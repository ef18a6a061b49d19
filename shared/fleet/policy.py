"""What is done about an agent that dies, idles, hits a limit or should be woken."""

from enum import StrEnum
from typing import Self

from pydantic import Field, model_validator

from shared.fleet.section import MoreThanNoSeconds, Seconds, Section

CRON = r"^\s*(\S+\s+){4}\S+\s*$"


class RestartPolicy(Section):
    """How often an agent that dies is started again, and when that is given up."""

    first_wait_s: Seconds = 1.0
    """Doubled with each death of a burst, up to `longest_wait_s`."""
    longest_wait_s: Seconds = 60.0
    """No wait is longer."""
    burst: int = Field(default=5, ge=0)
    """At most this many restarts …"""
    burst_s: MoreThanNoSeconds = 60.0
    """… within this time."""
    sustained: int = Field(default=30, ge=0)
    """And at most this many …"""
    sustained_s: MoreThanNoSeconds = 3600.0
    """… within this longer time."""


class FleetRestarts(Section):
    """The same for all agents together, for what kills them all alike."""

    burst: int = Field(default=20, ge=1)
    """More restarts than this …"""
    burst_s: MoreThanNoSeconds = 10.0
    """… within this time wait for their turn."""
    sustained: int = Field(default=0, ge=0)
    """More than this within `sustained_s`, and who dies next is given up; 0: ten for each agent, at least 100."""
    sustained_s: MoreThanNoSeconds = 3600.0
    """The longer time."""


class Then(StrEnum):
    """What to do about an agent that does not go on."""

    NUDGE = "nudge"
    RESTART = "restart"
    TELL = "tell"


class StallPolicy(Section):
    """An agent that idles too long."""

    after_s: Seconds = 1800.0
    """Idle for so long without a `WAITING-UNTIL:` promise; 0: never."""
    grace_s: Seconds = 120.0
    """So long past a promise."""
    then: Then = Then.NUDGE
    """`nudge` types the text below, `restart` starts it anew, `tell` leaves it to people."""
    nudge: str = "Go on with your task. If you are waiting for something, say WAITING-UNTIL: <ISO time>."
    """What is typed then."""


class LimitPolicy(Section):
    """An agent whose account hit a usage limit."""

    resume: bool = True
    """Whether the agent is resumed when its usage limit lifts."""
    slack_s: Seconds = 60.0
    """So long after the reset."""
    tries: int = Field(default=3, ge=1)
    """How often that is tried before a person is told."""
    prompt: str = "continue"
    """What is typed to resume it."""


class HealthPolicy(Section):
    """Asking background work how it is."""

    every_s: Seconds = 0.0
    """How often background work is asked for its state, on a fork of the conversation; 0: never."""
    timeout_s: MoreThanNoSeconds = 120.0
    """How long the answer may take."""
    model: str | None = None
    """A cheap one."""


class WatchPolicy(Section):
    """What the monitor does about this agent."""

    stall: StallPolicy = StallPolicy()
    limits: LimitPolicy = LimitPolicy()
    health: HealthPolicy = HealthPolicy()


class Wake(Section):
    """When a persistent agent is pinged while it is idle: by an interval or by a cron line."""

    every_s: MoreThanNoSeconds | None = None
    """Seconds between two pings."""
    cron: str | None = Field(default=None, pattern=CRON)
    """Five fields, as in crontab; local time."""
    text: str = "Look for new work."
    """What is typed then."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.every_s is None) == (self.cron is None):
            raise ValueError("a wake has either `every_s` or `cron`")
        return self
