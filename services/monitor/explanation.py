"""A verdict in full, for `muster explain` and for programs. Pure."""

from datetime import UTC, datetime
from typing import Any

from services.monitor.health.checks import report
from services.monitor.reports import told_of
from services.monitor.subject import Subject
from services.monitor.verdict import Verdict, WeighedEvidence
from shared.runtime.turn import Turn


def explanation(turn: Turn, subject: Subject, verdict: Verdict, plans: list[str]) -> dict[str, Any]:
    told = told_of(turn, subject.agent, subject.spawn)
    now = turn.now.timestamp()
    return {
        "agent": subject.agent,
        "spawn": subject.spawn,
        "backend": subject.backend,
        "version": subject.version,
        "status": verdict.status.value,
        "since": _time(told.since if told is not None else now),
        "reason": verdict.reason,
        "decided_by": verdict.winner.source.value if verdict.winner is not None else "",
        "evidence": [_piece(each, now) for each in verdict.heard],
        "plans": plans,
        "subagents": {name: says.value for name, says in subject.hooked.subagents.items()},
        "health": report(turn, subject.agent, subject.spawn),
    }


def _piece(heard: WeighedEvidence, now: float) -> dict[str, Any]:
    evidence = heard.evidence
    return {
        "source": evidence.source.value,
        "says": evidence.says.value,
        "at": _time(evidence.at),
        "age_s": round(evidence.age(now), 1),
        "why": evidence.why,
        "rule": evidence.rule,
        "weak": evidence.weak,
        "believed": heard.believed,
        "because": heard.because,
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
