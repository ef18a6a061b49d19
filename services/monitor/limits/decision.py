"""What is done about an agent whose usage limit is reached. Pure.

The agent is held until the limit lifts. Then it is asked once to go on, if it does not by itself. That it goes on is
told once, whatever the cause. A banner stays on the screen after its limit, so the time at which it was said is
remembered.
"""

from dataclasses import dataclass, replace

from services.monitor.limits.claims import LimitClaim
from services.monitor.limits.hold import How, LimitHold, limit_hit, limit_lifted, limit_stuck, resume_at
from services.monitor.policies.policy import (
    IDLE,
    REPLY_LOST_AFTER_S,
    AgentObservation,
    PolicyOutcome,
    send,
    stable_id,
)
from shared.contract.commands import Reply
from shared.contract.states import Activity
from shared.fleet.policies import LimitPolicy
from shared.runtime.moments import Moment

GOING_ON = (Activity.WORKING, Activity.NEEDS_APPROVAL)
LIFTED_AFTER_WORK_S = 6.0
"""An agent that has worked for this long after its limit is not refused any more."""
TAKES_UP_WITHIN_S = 60.0
"""An agent that does not go on this soon after its prompt arrived has not taken it up."""
RESET_MOVED_S = 120.0
"""A reset that is told again is another one only if it is this much later: a countdown is not exact."""
SOURCES_AGREE_AFTER_S = 1.5
"""By then all sources have said what they know: the banner, the exact time, whether the agent goes on by itself."""
SAME_LIMIT_WITHIN_S = 5.0
"""Statements this soon after the first one are about the same limit."""
LOOK_AGAIN_S = 1.0
EARLY_S = 90.0
"""An agent that goes on by itself may do so this much before the reset that was read."""
MIN_RETRY_S = 5.0
"""The shortest time between two tries."""
UNTYPED_RETRY_S, MAX_UNTYPED = 30.0, 20
"""How soon, and how often, a prompt that could not be typed is sent again."""
REFUSED_AGAIN_WITHIN_S = 600.0
"""An agent that is refused this soon after it went on did not really go on: some try for minutes before they say so."""
FAR_S = 900.0
"""A reset this far ahead is a new limit, not a failed try."""


@dataclass(frozen=True)
class LimitMemory:
    """The limit that holds one agent, and the last one that was over."""

    hold: LimitHold | None = None
    over_at: Moment = 0.0
    """Statements about a limit until then are about one that is over."""
    over_said: str = ""
    """Its words, until the agent is seen at work: on a screen that is read again they may seem new."""
    tries: int = 0
    """How often it had been asked to go on: if it is refused a little later, it has not gone on."""


def decide(
    memory: LimitMemory, observed: AgentObservation, policy: LimitPolicy, may_resume_at: float = 0.0
) -> PolicyOutcome[LimitMemory]:
    """`may_resume_at`: until then the other agents of the account come first."""
    hold = memory.hold
    if hold is None:
        return _hit(memory, observed, policy)
    if hold.conversation and observed.conversation and hold.conversation != observed.conversation:
        return _lift(hold, observed, "by_somebody", "it went on to another conversation")
    if hold.spawn != observed.spawn:
        return _in_new_session(memory, hold, observed, policy, may_resume_at)
    if observed.status in GOING_ON:
        return _goes_on(memory, hold, observed)
    if _ended_a_turn(hold, observed):
        return _lift(hold, observed, _how(hold, observed.since), "its turn is over, and was not refused")
    if observed.status is Activity.LIMITED and observed.claim is not None:
        known_reset = hold.resets_at
        hold = _with_exact_reset(hold, observed.claim, policy)
        hold = _with_claim(hold, observed.claim, observed.now, policy)
        if _is_later(hold.resets_at, known_reset):
            told = limit_hit(hold, observed, policy)
            return PolicyOutcome(replace(memory, hold=hold), events=(told,), look_at=hold.resume_at)
    return _resume(replace(memory, hold=hold), hold, observed, policy, may_resume_at)


def _ended_a_turn(hold: LimitHold, observed: AgentObservation) -> bool:
    """Whether it is idle after a turn that was seen, or that it can have had by now. A screen on which the banner is
    hidden for a moment is no turn."""
    if not observed.is_idle or observed.since <= max(hold.since, hold.asked_at):
        return False
    in_time = hold.resets_at is not None and observed.since > hold.resets_at - EARLY_S
    return bool(hold.worked or hold.sent_at or in_time)


# --- a limit is hit ---


def _hit(memory: LimitMemory, observed: AgentObservation, policy: LimitPolicy) -> PolicyOutcome[LimitMemory]:
    claim = observed.claim
    if observed.status in GOING_ON and memory.over_said:
        return PolicyOutcome(replace(memory, over_said=""))
    if claim is None or observed.status is not Activity.LIMITED or claim.at <= memory.over_at:
        return PolicyOutcome(memory)
    if not claim.by_file and claim.said == memory.over_said:
        return PolicyOutcome(memory)
    if 0 <= observed.now - claim.at < SOURCES_AGREE_AFTER_S:
        return PolicyOutcome(memory, look_at=claim.at + SOURCES_AGREE_AFTER_S)
    hold = LimitHold(
        account=observed.account,
        model=claim.model,
        scope=claim.scope,
        spawn=observed.spawn,
        conversation=observed.conversation,
        since=claim.at,
        resets_at=claim.resets_at,
        exact_to_s=claim.exact_to_s,
        resume_at=resume_at(claim.resets_at, claim.exact_to_s, claim.at, policy),
        continues=claim.continues,
        said=claim.said,
    )
    if memory.tries and observed.now - memory.over_at < REFUSED_AGAIN_WITHIN_S:
        hold = _after_refusal(replace(hold, tries=memory.tries), claim, observed.now, policy)
    after = LimitMemory(hold, memory.over_at)
    return PolicyOutcome(after, events=(limit_hit(hold, observed, policy),), look_at=hold.resume_at)


# --- it says that it is limited while it is held ---


def _with_exact_reset(hold: LimitHold, claim: LimitClaim, policy: LimitPolicy) -> LimitHold:
    """The same limit, if a file now gives the second of a reset that was only known to the minute."""
    if hold.resets_at is None or claim.resets_at is None or hold.tries or claim.exact_to_s >= hold.exact_to_s:
        return hold
    is_same = hold.resets_at <= claim.resets_at <= hold.resets_at + hold.exact_to_s
    return _with_reset(hold, claim, policy) if is_same else hold


def _with_claim(hold: LimitHold, claim: LimitClaim, now: float, policy: LimitPolicy) -> LimitHold:
    """It is still limited, or again. What it says now counts where it says more than was known."""
    refused_again = bool(hold.tries) and claim.at > max(hold.asked_at, hold.since)
    # A screen is dated when it was first seen: after a restart of the monitor, the same words are the same limit.
    said_again = claim.by_file and claim.at > hold.since + SAME_LIMIT_WITHIN_S
    is_news = hold.resets_at is None or claim.said != hold.said or said_again
    resets_later = is_news and _is_later(claim.resets_at, hold.resets_at)
    hold = replace(hold, continues=claim.continues, worked=False)  # it may have worked since, but it was refused
    if not (refused_again or resets_later):
        return replace(hold, scope=hold.scope or claim.scope, model=hold.model or claim.model)
    hold = replace(hold, since=claim.at, said=claim.said or hold.said, stuck=False)
    if resets_later:
        hold = replace(_with_reset(hold, claim, policy), scope=claim.scope or hold.scope, model=claim.model)
    return _after_refusal(hold, claim, now, policy) if refused_again else hold


def _with_reset(hold: LimitHold, claim: LimitClaim, policy: LimitPolicy) -> LimitHold:
    until = resume_at(claim.resets_at, claim.exact_to_s, claim.at, policy)
    return replace(hold, resets_at=claim.resets_at, exact_to_s=claim.exact_to_s, resume_at=until)


def _is_later(reset: float | None, known: float | None) -> bool:
    return reset is not None and reset > (known or 0.0) + RESET_MOVED_S


def _after_refusal(hold: LimitHold, claim: LimitClaim, now: float, policy: LimitPolicy) -> LimitHold:
    """It was asked to go on, and refused. A reset far ahead is a new limit, not a failed try."""
    is_far = claim.resets_at is not None and claim.resets_at > now + FAR_S
    until = resume_at(claim.resets_at, claim.exact_to_s, claim.at, policy) if claim.resets_at is not None else 0.0
    next_try = max(until, _next_try(hold, now, policy))
    return replace(hold, tries=0 if is_far else hold.tries, command="", sent_at=0.0, resume_at=next_try)


def _next_try(hold: LimitHold, now: float, policy: LimitPolicy) -> float:
    """The time between tries doubles."""
    first_s = policy.unknown_s if hold.resets_at is None else max(policy.slack_s, MIN_RETRY_S)
    return now + first_s * 2.0 ** max(0, hold.tries - 1)


# --- it is over ---


def _goes_on(memory: LimitMemory, hold: LimitHold, observed: AgentObservation) -> PolicyOutcome[LimitMemory]:
    """It works. A refusal comes at once, so the limit is over when it has worked for a while."""
    over_at = observed.since + LIFTED_AFTER_WORK_S
    if hold.continues and hold.resets_at is not None and observed.since > hold.resets_at - EARLY_S:
        over_at = max(over_at, hold.resets_at + LIFTED_AFTER_WORK_S)  # it may be about to try again
    if observed.since <= hold.since or observed.now < over_at:
        seen = replace(memory, hold=replace(hold, worked=hold.worked or observed.since > hold.since))
        return PolicyOutcome(seen, look_at=max(over_at, observed.now + LOOK_AGAIN_S))
    return _lift(hold, observed, _how(hold, observed.since), observed.reason)


def _how(hold: LimitHold, began: float) -> How:
    """What made it go on, by when it began to."""
    if hold.tries and began >= hold.asked_at:
        return "resumed"
    in_time = hold.resets_at is None or began >= hold.resets_at - EARLY_S
    return "by_itself" if hold.continues and in_time else "by_somebody"


def _lift(hold: LimitHold, observed: AgentObservation, how: How, why: str) -> PolicyOutcome[LimitMemory]:
    tries = hold.tries if how == "resumed" else 0
    after = LimitMemory(None, max(observed.now, hold.since), hold.said, tries)
    return PolicyOutcome(after, events=(limit_lifted(hold, observed, how, why),))


# --- asking it to go on ---


def _in_new_session(
    memory: LimitMemory, hold: LimitHold, observed: AgentObservation, policy: LimitPolicy, may_resume_at: float
) -> PolicyOutcome[LimitMemory]:
    """The session that was limited ended, and a new one took up its conversation: it still waits."""
    if observed.status in GOING_ON:
        return _goes_on(memory, hold, observed)
    if observed.status is Activity.LIMITED:
        here = replace(memory, hold=replace(hold, spawn=observed.spawn))
        return decide(here, observed, policy, may_resume_at)
    if observed.status not in IDLE:
        return PolicyOutcome(memory)
    if hold.sent_at and observed.since > hold.asked_at:
        return _lift(hold, observed, "resumed", "its turn is over, and was not refused")
    hold = replace(hold, continues=False)  # only the program that ended would have gone on
    return _resume(replace(memory, hold=hold), hold, observed, policy, may_resume_at)


def _resume(
    memory: LimitMemory, hold: LimitHold, observed: AgentObservation, policy: LimitPolicy, may_resume_at: float
) -> PolicyOutcome[LimitMemory]:
    if hold.stuck:
        return PolicyOutcome(memory)
    if hold.command:
        return _confirm(memory, hold, observed, policy)
    due = hold.resume_at + (policy.patience_s if hold.continues else 0.0)
    if observed.now < due:
        return PolicyOutcome(memory, look_at=due)
    if not policy.resume or not observed.is_managed:
        why = "the time that it named is over" if hold.resets_at else "it was long enough"
        return _lift(hold, observed, "left", why)
    if observed.spawn == hold.spawn and observed.status in IDLE and not observed.is_weak and not hold.tries:
        return _lift(hold, observed, "by_somebody", "it waits for a prompt, and is not limited any more")
    if hold.tries >= policy.tries or hold.refusals >= MAX_UNTYPED:
        return PolicyOutcome(replace(memory, hold=replace(hold, stuck=True)), events=(limit_stuck(hold, observed),))
    if observed.now < may_resume_at:
        return PolicyOutcome(memory, look_at=may_resume_at)
    if observed.status is not Activity.LIMITED and not observed.is_idle:
        return PolicyOutcome(memory, look_at=observed.now + LOOK_AGAIN_S)
    command_id = stable_id("limit", observed.agent, observed.spawn, hold.since, hold.tries, hold.refusals)
    after = replace(hold, tries=hold.tries + 1, command=command_id, asked_at=observed.now, sent_at=0.0)
    command = send(observed, policy.prompt, command_id)
    look_at = observed.now + LOOK_AGAIN_S
    return PolicyOutcome(replace(memory, hold=after), ((command, f"{hold.named} has lifted"),), look_at=look_at)


def _confirm(
    memory: LimitMemory, hold: LimitHold, observed: AgentObservation, policy: LimitPolicy
) -> PolicyOutcome[LimitMemory]:
    """Check whether the prompt arrived, and whether the agent took it up."""
    reply = observed.replies.get(hold.command)
    if reply is not None and reply.ok and not hold.sent_at:
        hold = replace(hold, sent_at=observed.now)
    elif reply is not None and not reply.ok:  # nothing was typed, so this was no try
        later = observed.now + UNTYPED_RETRY_S
        hold = replace(hold, command="", tries=hold.tries - 1, refusals=hold.refusals + 1, resume_at=later)
    elif _has_failed(hold, reply, observed.now):
        hold = replace(hold, command="", resume_at=_next_try(hold, observed.now, policy))
    return PolicyOutcome(replace(memory, hold=hold), look_at=observed.now + LOOK_AGAIN_S)


def _has_failed(hold: LimitHold, reply: Reply | None, now: float) -> bool:
    """Whether the prompt was not taken up, or its reply is lost."""
    if reply is None:
        return not 0 <= now - hold.asked_at < REPLY_LOST_AFTER_S
    return not 0 <= now - hold.sent_at < TAKES_UP_WITHIN_S
