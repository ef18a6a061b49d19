"""The answer to `muster explain`: a verdict with all its evidence, and what the policies plan for the agent. Pure."""

from collections.abc import Iterator
from datetime import UTC, datetime, tzinfo
from typing import Any

from services.monitor.health.checks import last_check
from services.monitor.limits.hold import LimitHold
from services.monitor.policies.memory import PolicyMemory
from services.monitor.policies.wake import due_at
from services.monitor.reports import last_report
from services.monitor.subject import Subject
from services.monitor.verdict import Verdict, WeighedEvidence
from shared.fleet import Agent
from shared.fleet.policies import LimitPolicy
from shared.runtime.turn import Turn


def explanation(turn: Turn, subject: Subject, verdict: Verdict, plans: list[str]) -> dict[str, Any]:
    reported = last_report(turn, subject.agent, subject.spawn)
    now = turn.now.timestamp()
    return {
        "agent": subject.agent,
        "spawn": subject.spawn,
        "backend": subject.backend,
        "version": subject.version,
        "status": verdict.status.value,
        "since": _time(reported.since if reported is not None else now),
        "reason": verdict.reason,
        "decided_by": verdict.winner.source.value if verdict.winner is not None else "",
        "evidence": [_piece(each, now) for each in verdict.weighed],
        "plans": plans,
        "subagents": {name: says.value for name, says in subject.hooks.subagents.items()},
        "health": last_check(turn, subject.agent, subject.spawn),
    }


def _piece(weighed: WeighedEvidence, now: float) -> dict[str, Any]:
    evidence = weighed.evidence
    return {
        "source": evidence.source.value,
        "says": evidence.says.value,
        "at": _time(evidence.at),
        "age_s": round(evidence.age(now), 1),
        "why": evidence.why,
        "rule": evidence.rule,
        "weak": evidence.weak,
        "believed": weighed.believed,
        "because": weighed.because,
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()


# --- plans ---


def plans(memory: PolicyMemory, declared: Agent | None, why_held: str, now: float, zone: tzinfo) -> Iterator[str]:
    """What the policies wait for, and what is done then. `why_held`: the limit that holds the agent, if one does."""
    hold = memory.limits.hold
    if hold is not None:
        yield _limit(hold, declared.watch.limits if declared is not None else LimitPolicy(resume=False), zone)
    elif why_held:
        yield f"it is left alone: {why_held}"
    if memory.trouble.is_held:
        yield "it is held until a person has mended that"
    stall = memory.stall
    if stall.stalled:
        yield f"it counts as stalled since {_local(stall.acted_at, zone)}; steps taken: {stall.step}"
    if declared is not None and declared.wake is not None and memory.wake.last:
        due = max(now, due_at(memory.wake, declared.wake, zone))
        yield f"it is woken next at {_local(due, zone)}, once it is idle"


def _limit(hold: LimitHold, policy: LimitPolicy, zone: tzinfo) -> str:
    reset = f", which resets at {_local(hold.resets_at, zone)}" if hold.resets_at is not None else ""
    if hold.stuck:
        then = f"it was asked {hold.tries} times to go on, and a person is needed"
    elif not policy.resume:
        then = "it is left to people"
    elif hold.command:
        then = "it has just been asked to go on"
    elif hold.continues:
        then = f"it says that it continues by itself, and is resumed {policy.patience_s:g} s later if it does not"
    else:
        then = f"it is resumed at {_local(hold.resume_at, zone)}"
    return f"it is held by {hold.named} of the account {hold.account!r}{reset}: {then}"


def _local(seconds: float, zone: tzinfo) -> str:
    return f"{datetime.fromtimestamp(seconds, zone):%Y-%m-%d %H:%M:%S %Z}"
