"""An agent that is held by a usage limit, and the words in which that is told. Pure."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Literal

from services.monitor.policies.policy import AgentObservation
from shared.contract.events.activity import LimitHit, LimitLifted, LimitStuck
from shared.fleet.policies import LimitPolicy

LOST_AFTER_S = 600.0
"""A command that is not answered by then never will be: the journal was lost, or its agent is gone."""

How = Literal["resumed", "by_itself", "by_somebody", "left"]

SAID: dict[How, str] = {
    "resumed": "it was resumed",
    "by_itself": "it goes on by itself",
    "by_somebody": "somebody brought it to go on",
    "left": "its policy leaves it to people to bring it to go on",
}


@dataclass(frozen=True)
class LimitHold:
    """Kept over restarts."""

    account: str
    model: str | None
    """The model that the limit is of; None: of the whole account."""
    scope: str
    spawn: str
    conversation: str | None
    since: float
    """When it was hit, by what told it."""
    resets_at: float | None
    exact_to_s: float
    resume_at: float
    """When it is to go on."""
    continues: bool = False
    """Whether it says that it goes on by itself then."""
    said: str = ""
    tries: int = 0
    asked: str = ""
    """The command that is to bring it to go on, while that is under way."""
    asked_at: float = 0.0
    sent_at: float = 0.0
    """When the prompt was known to have arrived."""
    refusals: int = 0
    """How often nothing could be typed: somebody was typing, or it was scrolled back."""
    worked: bool = False
    """Whether it was seen at work since it was hit."""
    stuck: bool = False

    def is_under_way(self, now: float) -> bool:
        """Whether it has been asked to go on, and it is not known yet what came of that."""
        return bool(self.asked) and 0 <= now - self.asked_at < LOST_AFTER_S

    def clamped(self, now: float) -> "LimitHold":
        """The same with nothing later than now: the clock may have been set back."""
        return replace(
            self,
            since=min(self.since, now),
            asked_at=min(self.asked_at, now),
            sent_at=min(self.sent_at, now),
        )

    @property
    def named(self) -> str:
        return f"its {self.scope} limit" if self.scope else "its usage limit"


def resume_at(resets_at: float | None, exact_to_s: float, hit_at: float, policy: LimitPolicy) -> float:
    """When a limit is surely over."""
    return hit_at + policy.unknown_s if resets_at is None else resets_at + exact_to_s + policy.slack_s


def limit_hit(held: LimitHold, sight: AgentObservation, policy: LimitPolicy) -> LimitHit:
    until = "and nothing tells when it lifts"
    if held.resets_at is not None:
        until = f"until {_moment(held.resets_at):%Y-%m-%d %H:%M:%S %Z}"
    return LimitHit(
        agent=sight.agent,
        spawn=sight.spawn,
        account=held.account,
        scope=held.scope,
        since=_moment(held.since),
        resets_at=_moment(held.resets_at) if held.resets_at is not None else None,
        resumes_at=_moment(held.resume_at) if policy.resume and sight.is_kept else None,
        continues=held.continues,
        said=held.said,
        parked=list(sight.siblings),
        reason=f"{held.named} is reached, {until}; {_then(held, sight, policy)}",
    )


def _then(held: LimitHold, sight: AgentObservation, policy: LimitPolicy) -> str:
    if not sight.is_kept:
        return "it was only found, and is left to people"
    if not policy.resume:
        return "its policy leaves it to people"
    if held.continues:
        return f"it says that it goes on by itself; where it does not, it is resumed {policy.patience_s:g} s later"
    return f"it is resumed at {_moment(held.resume_at):%H:%M:%S %Z}"


def limit_lifted(held: LimitHold, sight: AgentObservation, how: How, why: str) -> LimitLifted:
    return LimitLifted(
        agent=sight.agent,
        spawn=sight.spawn,
        account=held.account,
        scope=held.scope,
        how=how,
        tries=held.tries,
        reason=f"{held.named} is over: {SAID[how]} ({why})",
    )


def limit_stuck(held: LimitHold, sight: AgentObservation) -> LimitStuck:
    asked = f"it was asked {held.tries} times to go on, and does not: {sight.reason}"
    return LimitStuck(
        agent=sight.agent,
        spawn=sight.spawn,
        account=held.account,
        tries=held.tries,
        reason=f"{held.named} should be over; {asked}",
    )


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
