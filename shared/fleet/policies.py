"""The policies of the fleet file: what is done about an agent that idles, hits a limit, fails or hangs."""

from enum import StrEnum
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from shared.fleet.section import PositiveSeconds, Seconds, Section, listed

CRON = r"^\s*(\S+\s+){4}\S+\s*$"


class Then(StrEnum):
    """What to do about an agent that does not go on."""

    NUDGE = "nudge"
    RESTART = "restart"
    TELL = "tell"


Steps = Annotated[list[Then], Field(min_length=1), BeforeValidator(listed, json_schema_input_type=Then | list[Then])]
"""One step, or several that are taken in turn."""


class Mend(StrEnum):
    """What to do about an agent that can't go on."""

    RESTART = "restart"
    TELL = "tell"


class End(StrEnum):
    """What to do about background work that does not answer."""

    STOP = "stop"
    RESTART = "restart"
    TELL = "tell"


class StallPolicy(Section):
    """An agent that idles too long."""

    after_s: Seconds = 1800.0
    """Idle for so long without a `WAITING-UNTIL:` promise; 0: never."""
    grace_s: Seconds = 120.0
    """So long past a promise."""
    promise_s: Seconds = 86400.0
    """No promise counts for longer."""
    then: Steps | None = None
    """`nudge` types the text below, `restart` starts it anew, `tell` leaves it to people; a list is gone through, one
    step each time that it stalls again. Default: nudge, nudge, tell; where it has no prompt, or is a task: tell."""
    nudge: str = Field(
        default="Go on with your task. If you are waiting for something, say WAITING-UNTIL: <ISO time>.", min_length=1
    )
    """What is typed then."""


class LimitPolicy(Section):
    """An agent whose account hit a usage limit."""

    resume: bool = True
    """Whether the agent is resumed when its usage limit lifts."""
    slack_s: Seconds = 60.0
    """So long after the reset."""
    gap_s: Seconds = 15.0
    """So long after another agent of its account was resumed."""
    patience_s: Seconds = 180.0
    """So long past the reset an agent is left alone that says that it continues by itself."""
    unknown_s: PositiveSeconds = 900.0
    """So long after the limit was hit it is tried, where nothing tells the reset; then twice as long after each try."""
    tries: int = Field(default=3, ge=1, le=100)
    """How often that is tried before a person is told."""
    prompt: str = Field(default="continue", min_length=1)
    """What is typed to resume it."""


class HealPolicy(Section):
    """An agent whose program is gone from its pane, is another one, or can't go on with its conversation."""

    after_s: Seconds = 30.0
    """So long it must have been so."""
    then: Mend = Mend.RESTART
    """`restart` counts as a death in its restart limits, `tell` leaves it to people."""


class HoldPolicy(Section):
    """An agent that is not logged in, or whose account has no credit: it is not restarted and not nudged."""

    retry_s: Seconds = 0.0
    """How often it is asked to go on all the same; 0: never, a person does."""
    prompt: str = Field(default="continue", min_length=1)
    """What is typed then."""


class UnresponsivePolicy(Section):
    """An agent that is said to work, and writes nothing to its terminal."""

    after_s: Seconds = 900.0
    """For so long; 0: never."""
    then: Mend = Mend.TELL
    """`restart` counts as a death in its restart limits, `tell` leaves it to people."""


class HealthPolicy(Section):
    """Asking background work how it is."""

    every_s: Seconds = 0.0
    """How often background work is asked for its state, on a fork of the conversation; 0: never."""
    timeout_s: PositiveSeconds = 120.0
    """How long the answer may take."""
    model: str | None = None
    """A cheap one; default: the backend's."""
    then: End | None = None
    """What is done about work that does not answer. Default: a task is stopped, others are told of."""


class WatchPolicy(Section):
    """What the monitor does about this agent."""

    stall: StallPolicy = StallPolicy()
    limits: LimitPolicy = LimitPolicy()
    heal: HealPolicy = HealPolicy()
    login: HoldPolicy = HoldPolicy()
    credit: HoldPolicy = HoldPolicy()
    unresponsive: UnresponsivePolicy = UnresponsivePolicy()
    health: HealthPolicy = HealthPolicy()


def _comes_true(cron: str) -> str:
    from datetime import UTC, datetime  # noqa: PLC0415 - slow to import, and few fleet files have a cron line

    from cronsim import CronSim, CronSimError  # noqa: PLC0415

    try:
        next(CronSim(cron, datetime(2026, 1, 1, tzinfo=UTC)))
    except (CronSimError, StopIteration) as error:
        raise ValueError(f"no time is like this: {error or 'it never comes'}") from error
    return cron


Cron = Annotated[str, Field(pattern=CRON), AfterValidator(_comes_true)]


class Wake(Section):
    """When a persistent agent is pinged while it is idle: by an interval or by a cron line."""

    every_s: PositiveSeconds | None = None
    """Seconds between two pings."""
    cron: Cron | None = None
    """Five fields, as in crontab; local time."""
    text: str = Field(default="Look for new work.", min_length=1)
    """What is typed then."""

    @model_validator(mode="after")
    def _one_of_both(self) -> Self:
        if (self.every_s is None) == (self.cron is None):
            raise ValueError("a wake has either `every_s` or `cron`")
        return self
