"""What is done about one agent whose usage limit is reached: it is held until that lifts, and then brought to go on,
once, if it does not by itself. Pure.

Whoever brings it to go on, it is told once that it does. A banner outlives its limit: what was told of one is
remembered by the time at which it was said.
"""

from dataclasses import dataclass, replace

from services.monitor.limits.claims import LimitClaim
from services.monitor.limits.hold import LOST_AFTER_S, How, LimitHold, limit_hit, limit_lifted, limit_stuck, resume_at
from services.monitor.policies.policy import IDLE, AgentObservation, PolicyOutcome, errand_id, send
from shared.contract.commands import Reply
from shared.contract.states import Activity
from shared.fleet.policies import LimitPolicy

GOING_ON = (Activity.WORKING, Activity.NEEDS_APPROVAL)
WORKS_FOR_S = 6.0
"""An agent that has worked for so long after its limit is not refused any more."""
TAKES_UP_WITHIN_S = 60.0
"""An agent that has its prompt and does not go on by then has not taken it up."""
MOVES_S = 120.0
"""A reset that is told anew is another one only if it is so much later: a countdown is not exact."""
TOLD_AFTER_S = 1.5
"""By then all sources have said what they know of it: the banner, the moment, whether it goes on by itself."""
SAME_S = 5.0
"""What is said so soon after the first word of it is said of the same limit."""
LOOKS_AGAIN_S = 1.0
EARLY_S = 90.0
"""Who goes on by itself may do so a little before the time that was read."""
AT_LEAST_S = 5.0
"""Between two tries."""
REFUSED_AGAIN_S, REFUSALS = 30.0, 20
"""A prompt that could not be typed is tried again so soon, so often."""
AGAIN_WITHIN_S = 600.0
"""Who is refused so soon after it went on did not really: some try for minutes before they say so."""
FAR_S = 900.0
"""A limit that is told anew for so long is real: what was tried before does not count."""


@dataclass(frozen=True)
class LimitMemory:
    """What is remembered of an agent's limits."""

    held: LimitHold | None = None
    over_at: float = 0.0
    """What was said of a limit until then is over."""
    over_said: str = ""
    """And what that was, until it is seen at work: on a screen that is looked at anew, it may seem to be said now."""
    tries: int = 0
    """How often it was asked to go on before that: who is refused a little later has not gone on."""


def decide(
    limits: LimitMemory, sight: AgentObservation, policy: LimitPolicy, may_resume_at: float = 0.0
) -> PolicyOutcome[LimitMemory]:
    """`may_resume_at`: until then the account's other agents come first."""
    held = limits.held.clamped(sight.now) if limits.held is not None else None
    limits = replace(limits, held=held, over_at=min(limits.over_at, sight.now))
    if held is None:
        return _hit(limits, sight, policy)
    if held.conversation and sight.conversation and held.conversation != sight.conversation:
        return _lift(held, sight, "by_somebody", "it went on to another conversation")
    if held.spawn != sight.spawn:
        return _in_new_session(limits, held, sight, policy, may_resume_at)
    if sight.status in GOING_ON:
        return _goes_on(limits, held, sight)
    if _ended_a_turn(held, sight):
        return _lift(held, sight, _how(held, sight.since), "its turn is over, and was not refused")
    if sight.status is Activity.LIMITED and sight.claim is not None:
        anew = _told_anew(_sharper(held, sight.claim, policy), sight.claim, sight.now, policy)
        if anew.resets_at is not None and anew.resets_at > (held.resets_at or 0.0) + MOVES_S:
            told = limit_hit(anew, sight, policy)
            return PolicyOutcome(replace(limits, held=anew), tells=(told,), look_at=anew.resume_at)
        held = anew
    return _resume(replace(limits, held=held), held, sight, policy, may_resume_at)


def _ended_a_turn(held: LimitHold, sight: AgentObservation) -> bool:
    """Whether it is idle after a turn: one that was seen, or one that it can have had by now. A screen on which the
    banner is out of sight for a moment is no turn."""
    if not sight.is_idle or sight.since <= max(held.since, held.asked_at):
        return False
    in_time = held.resets_at is not None and sight.since > held.resets_at - EARLY_S
    return bool(held.worked or held.sent_at or in_time)


# --- a limit is hit ---


def _hit(limits: LimitMemory, sight: AgentObservation, policy: LimitPolicy) -> PolicyOutcome[LimitMemory]:
    claim = sight.claim
    if sight.status in GOING_ON and limits.over_said:
        return PolicyOutcome(replace(limits, over_said=""))
    if claim is None or sight.status is not Activity.LIMITED or claim.at <= limits.over_at:
        return PolicyOutcome(limits)
    if not claim.by_file and claim.said == limits.over_said:
        return PolicyOutcome(limits)
    if 0 <= sight.now - claim.at < TOLD_AFTER_S:
        return PolicyOutcome(limits, look_at=claim.at + TOLD_AFTER_S)
    held = LimitHold(
        account=sight.account,
        model=claim.model,
        scope=claim.scope,
        spawn=sight.spawn,
        conversation=sight.conversation,
        since=claim.at,
        resets_at=claim.resets_at,
        exact_to_s=claim.exact_to_s,
        resume_at=resume_at(claim.resets_at, claim.exact_to_s, claim.at, policy),
        continues=claim.continues,
        said=claim.said,
    )
    if limits.tries and sight.now - limits.over_at < AGAIN_WITHIN_S:
        held = _after_refusal(replace(held, tries=limits.tries), claim, sight.now, policy)
    after = LimitMemory(held, limits.over_at)
    return PolicyOutcome(after, tells=(limit_hit(held, sight, policy),), look_at=held.resume_at)


def _sharper(held: LimitHold, claim: LimitClaim, policy: LimitPolicy) -> LimitHold:
    """The same limit, where a file tells the very second of what was only known to the minute."""
    if held.resets_at is None or claim.resets_at is None or held.tries or claim.exact_to_s >= held.exact_to_s:
        return held
    if not held.resets_at <= claim.resets_at <= held.resets_at + held.exact_to_s:
        return held
    until = resume_at(claim.resets_at, claim.exact_to_s, claim.at, policy)
    return replace(held, resets_at=claim.resets_at, exact_to_s=claim.exact_to_s, resume_at=until)


def _told_anew(held: LimitHold, claim: LimitClaim, now: float, policy: LimitPolicy) -> LimitHold:
    """It is limited still, or again. What it says now counts where that is more than was known."""
    again = bool(held.tries) and claim.at > max(held.asked_at, held.since)
    # A screen is only known since it was first seen: after a restart, the same words are the same limit.
    is_anew = claim.by_file and claim.at > held.since + SAME_S
    is_news = held.resets_at is None or claim.said != held.said or is_anew
    later = claim.resets_at is not None and claim.resets_at > (held.resets_at or 0.0) + MOVES_S and is_news
    # Whatever it worked on since, it was refused.
    held = replace(held, continues=claim.continues, worked=False)
    if not (again or later):
        return replace(held, scope=held.scope or claim.scope, model=held.model or claim.model)
    moved = replace(held, since=claim.at, said=claim.said or held.said, stuck=False)
    if later:
        until = resume_at(claim.resets_at, claim.exact_to_s, claim.at, policy)
        moved = replace(moved, resets_at=claim.resets_at, exact_to_s=claim.exact_to_s, resume_at=until)
        moved = replace(moved, scope=claim.scope or held.scope, model=claim.model)
    return _after_refusal(moved, claim, now, policy) if again else moved


def _after_refusal(held: LimitHold, claim: LimitClaim, now: float, policy: LimitPolicy) -> LimitHold:
    """It was asked to go on, and refused. A limit that is told for long from now on is real, and no failed try."""
    is_far = claim.resets_at is not None and claim.resets_at > now + FAR_S
    until = resume_at(claim.resets_at, claim.exact_to_s, claim.at, policy) if claim.resets_at is not None else 0.0
    next_try = max(until, _next_try(held, now, policy))
    return replace(held, tries=0 if is_far else held.tries, asked="", sent_at=0.0, resume_at=next_try)


def _next_try(held: LimitHold, now: float, policy: LimitPolicy) -> float:
    """Longer each time."""
    first_s = policy.unknown_s if held.resets_at is None else max(policy.slack_s, AT_LEAST_S)
    return now + first_s * 2.0 ** max(0, held.tries - 1)


# --- it is over ---


def _goes_on(limits: LimitMemory, held: LimitHold, sight: AgentObservation) -> PolicyOutcome[LimitMemory]:
    """It works. Who is refused again is so at once: it is over when it has worked for a while."""
    over_at = sight.since + WORKS_FOR_S
    if held.continues and held.resets_at is not None and sight.since > held.resets_at - EARLY_S:
        over_at = max(over_at, held.resets_at + WORKS_FOR_S)  # it may only be about to try again
    if sight.since <= held.since or sight.now < over_at:
        seen = replace(limits, held=replace(held, worked=held.worked or sight.since > held.since))
        return PolicyOutcome(seen, look_at=max(over_at, sight.now + LOOKS_AGAIN_S))
    return _lift(held, sight, _how(held, sight.since), sight.reason)


def _how(held: LimitHold, began: float) -> How:
    """Who brought it to go on, by when it began to."""
    if held.tries and began >= held.asked_at:
        return "resumed"
    in_time = held.resets_at is None or began >= held.resets_at - EARLY_S
    return "by_itself" if held.continues and in_time else "by_somebody"


def _lift(held: LimitHold, sight: AgentObservation, how: How, why: str) -> PolicyOutcome[LimitMemory]:
    tries = held.tries if how == "resumed" else 0
    after = LimitMemory(None, max(sight.now, held.since), held.said, tries)
    return PolicyOutcome(after, tells=(limit_lifted(held, sight, how, why),))


# --- bringing it to go on ---


def _in_new_session(
    limits: LimitMemory, held: LimitHold, sight: AgentObservation, policy: LimitPolicy, may_resume_at: float
) -> PolicyOutcome[LimitMemory]:
    """The session in which it was limited ended. Where another one took up its conversation, it waits still."""
    if sight.status in GOING_ON:
        return _goes_on(limits, held, sight)
    if sight.status is Activity.LIMITED:
        here = replace(limits, held=replace(held, spawn=sight.spawn))
        return decide(here, sight, policy, may_resume_at)
    if sight.status not in IDLE:
        return PolicyOutcome(limits)
    if held.sent_at and sight.since > held.asked_at:
        return _lift(held, sight, "resumed", "its turn is over, and was not refused")
    held = replace(held, continues=False)  # its program took that with it
    return _resume(replace(limits, held=held), held, sight, policy, may_resume_at)


def _resume(
    limits: LimitMemory, held: LimitHold, sight: AgentObservation, policy: LimitPolicy, may_resume_at: float
) -> PolicyOutcome[LimitMemory]:
    if held.stuck:
        return PolicyOutcome(limits)
    if held.asked:
        return _confirm(limits, held, sight, policy)
    due = held.resume_at + (policy.patience_s if held.continues else 0.0)
    if sight.now < due:
        return PolicyOutcome(limits, look_at=due)
    if not policy.resume or not sight.is_kept:
        return _lift(held, sight, "left", "the time that it named is over" if held.resets_at else "it was long enough")
    if sight.spawn == held.spawn and sight.status in IDLE and not sight.is_hint and not held.tries:
        return _lift(held, sight, "by_somebody", "it waits for a prompt, and is not limited any more")
    if held.tries >= policy.tries or held.refusals >= REFUSALS:
        return PolicyOutcome(replace(limits, held=replace(held, stuck=True)), tells=(limit_stuck(held, sight),))
    if sight.now < may_resume_at:
        return PolicyOutcome(limits, look_at=may_resume_at)
    if sight.status is not Activity.LIMITED and not sight.is_idle:
        return PolicyOutcome(limits, look_at=sight.now + LOOKS_AGAIN_S)
    errand = errand_id("limit", sight.agent, sight.spawn, held.since, held.tries, held.refusals)
    after = replace(held, tries=held.tries + 1, asked=errand, asked_at=sight.now, sent_at=0.0)
    command = send(sight, policy.prompt, errand)
    look_at = sight.now + LOOKS_AGAIN_S
    return PolicyOutcome(replace(limits, held=after), ((command, f"{held.named} has lifted"),), look_at=look_at)


def _confirm(
    limits: LimitMemory, held: LimitHold, sight: AgentObservation, policy: LimitPolicy
) -> PolicyOutcome[LimitMemory]:
    """Whether the prompt arrived, and whether the agent has taken it up."""
    reply = sight.answers.get(held.asked)
    if reply is not None and reply.ok and not held.sent_at:
        held = replace(held, sent_at=sight.now)
    elif reply is not None and not reply.ok:  # nothing was typed: that is no try
        later = sight.now + REFUSED_AGAIN_S
        held = replace(held, asked="", tries=held.tries - 1, refusals=held.refusals + 1, resume_at=later)
    elif _has_failed(held, reply, sight.now):
        held = replace(held, asked="", resume_at=_next_try(held, sight.now, policy))
    return PolicyOutcome(replace(limits, held=held), look_at=sight.now + LOOKS_AGAIN_S)


def _has_failed(held: LimitHold, reply: Reply | None, now: float) -> bool:
    """Whether the prompt was not taken up, or nothing was heard of it for so long that it is lost."""
    if reply is None:
        return not 0 <= now - held.asked_at < LOST_AFTER_S
    return not 0 <= now - held.sent_at < TAKES_UP_WITHIN_S
