"""The hold of an agent by a usage limit, and the events that tell of it. Pure."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from services.monitor.policies.policy import REPLY_LOST_AFTER_S, AgentObservation
from shared.contract.events.activity import LimitHit, LimitLifted, LimitStuck
from shared.fleet.policies import LimitPolicy
from shared.runtime.moments import Moment, Move

How = Literal["resumed", "by_itself", "by_somebody", "left"]

SAID: dict[How, str] = {
    "resumed": "it was resumed",
    "by_itself": "it goes on by itself",
    "by_somebody": "somebody brought it to go on",
    "left": "its policy leaves it to people to bring it to go on",
}


@dataclass(frozen=True)
class LimitHold:
    """One agent, left alone until its limit lifts."""

    account: str
    model: str | None
    """The model that the limit is of; None: of the whole account."""
    scope: str
    spawn: str
    conversation: str | None
    since: Moment
    """When the limit was hit, by the evidence."""
    resets_at: float | None
    exact_to_s: float
    """The reset may be this much later."""
    resume_at: float
    """When the agent is asked to go on."""
    continues: bool = False
    """Whether the agent says that it goes on by itself then."""
    said: str = ""
    tries: int = 0
    command: str = ""
    """The id of the command that asks it to go on, while that is under way."""
    asked_at: Moment = 0.0
    sent_at: Moment = 0.0
    """When the prompt was first known to have arrived."""
    refusals: int = 0
    """How often nothing could be typed, since a person was typing or had scrolled back."""
    worked: bool = False
    """Whether it was seen at work since the limit was hit."""
    stuck: bool = False

    def is_under_way(self, now: float) -> bool:
        """Whether it was asked to go on, and the result is not known yet."""
        return bool(self.command) and 0 <= now - self.asked_at < REPLY_LOST_AFTER_S

    def with_moments(self, move: Move) -> "LimitHold":
        """A reset is by the clock on the wall; when it is not known, or over, the agent is asked after a while."""
        is_by_clock = self.resets_at is not None and not self.tries and not self.refusals
        return self if is_by_clock else replace(self, resume_at=move(self.resume_at))

    @property
    def named(self) -> str:
        return f"its {self.scope} limit" if self.scope else "its usage limit"


def resume_at(resets_at: float | None, exact_to_s: float, hit_at: float, policy: LimitPolicy) -> float:
    """When a limit is certainly over."""
    return hit_at + policy.unknown_s if resets_at is None else resets_at + exact_to_s + policy.slack_s


def limit_hit(hold: LimitHold, observed: AgentObservation, policy: LimitPolicy) -> LimitHit:
    until = "and nothing tells when it lifts"
    if hold.resets_at is not None:
        until = f"until {_moment(hold.resets_at):%Y-%m-%d %H:%M:%S %Z}"
    return LimitHit(
        agent=observed.agent,
        spawn=observed.spawn,
        account=hold.account,
        scope=hold.scope,
        since=_moment(hold.since),
        resets_at=_moment(hold.resets_at) if hold.resets_at is not None else None,
        resumes_at=_moment(hold.resume_at) if policy.resume and observed.is_managed else None,
        continues=hold.continues,
        said=hold.said,
        reason=f"{hold.named} is reached, {until}; {_then(hold, observed, policy)}",
    )


def _then(hold: LimitHold, observed: AgentObservation, policy: LimitPolicy) -> str:
    if not observed.is_managed:
        return "it was only found, and is left to people"
    if not policy.resume:
        return "its policy leaves it to people"
    if hold.continues:
        return f"it says that it goes on by itself; where it does not, it is resumed {policy.patience_s:g} s later"
    return f"it is resumed at {_moment(hold.resume_at):%H:%M:%S %Z}"


def limit_lifted(hold: LimitHold, observed: AgentObservation, how: How, why: str) -> LimitLifted:
    return LimitLifted(
        agent=observed.agent,
        spawn=observed.spawn,
        account=hold.account,
        scope=hold.scope,
        how=how,
        tries=hold.tries,
        reason=f"{hold.named} is over: {SAID[how]} ({why})",
    )


def limit_stuck(hold: LimitHold, observed: AgentObservation) -> LimitStuck:
    asked = f"it was asked {hold.tries} times to go on, and does not: {observed.reason}"
    return LimitStuck(
        agent=observed.agent,
        spawn=observed.spawn,
        account=hold.account,
        tries=hold.tries,
        reason=f"{hold.named} should be over; {asked}",
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
