"""What was told of each agent: a change once, and each time that it asks a person. It survives a restart."""

from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from registry import AgentRecord
from services.monitor.verdict import Verdict
from shared.contract.events.activity import ApprovalNeeded, StatusChanged
from shared.contract.states import Activity
from shared.runtime.turn import Turn

TOLD = "told:"
SHOWS_WITHIN_S = 1.5
"""Who asks is told when the dialog is on the screen, so that it can be told with it; after so long, in any case."""
RECORDS_WITHIN_S = 10.0
"""A record that does not know by then what was told has lost it: it is told again."""


@dataclass(frozen=True)
class ReportedActivity:
    spawn: str
    status: Activity
    since: float
    at: float = 0.0
    """When it was told."""
    asked: str = ""
    """The dialog that a person was told of last, by its fingerprint."""
    asked_at: float = 0.0
    hook_at: float = 0.0
    """When the hook told of it, if one did."""
    again: bool = False
    """Whether its status was told a second time, since the record had lost it."""

    @classmethod
    def read(cls, kept: dict[str, Any]) -> "ReportedActivity":
        known = {name: kept[name] for name in cls.__dataclass_fields__ if name in kept}
        return cls(**{**known, "status": Activity(kept["status"])})


@dataclass(frozen=True)
class ReportedQuestion:
    """What an agent asks a person now."""

    since: float
    why: str
    hook_at: float | None = None
    """When a hook told of it, if one did."""
    dialog: str = ""
    fingerprint: str = ""
    shown_since: float = 0.0
    """Since when this dialog is on the screen."""

    def is_news(self, told: ReportedActivity, now: float, *, still_asks: bool) -> bool:
        """Whether it is another question than the last one, with which it may still be asking. A dialog that is only
        painted anew, or seen for the first time after a restart, is not."""
        if not 0 < told.asked_at <= now:
            return True
        if self.hook_at is not None and self.hook_at > told.hook_at:
            return True
        if self.fingerprint:
            return self.fingerprint != told.asked or (not still_asks and self.shown_since > told.asked_at)
        return self.hook_at is None and self.since > told.asked_at


def told_of(turn: Turn, agent: str, spawn: str) -> ReportedActivity | None:
    """What was last told of this session."""
    kept = turn.recall(f"{TOLD}{agent}")
    told = ReportedActivity.read(kept) if kept is not None else None
    return told if told is not None and told.spawn == spawn else None


def tell(
    turn: Turn,
    agent: str,
    spawn: str,
    verdict: Verdict,
    question: ReportedQuestion | None,
    subagents: dict[str, Activity],
    record: AgentRecord | None = None,
) -> None:
    """Tell what is new about an agent."""
    before = told_of(turn, agent, spawn)
    now = turn.now.timestamp()
    told = before
    if before is None or before.status is not verdict.status:
        told = _tell_status(
            turn, agent, verdict, before or ReportedActivity(spawn, verdict.status, now), subagents, before
        )
    elif _is_lost(record, before, now):
        told = replace(_tell_status(turn, agent, verdict, before, subagents, before), again=True)
    still_asks = before is not None and before.status is Activity.NEEDS_APPROVAL
    if told is not None and question is not None and question.is_news(told, now, still_asks=still_asks):
        told = _tell_question(turn, agent, question, told)
    if told is not None and told != before:
        turn.remember(f"{TOLD}{agent}", asdict(told))


def _tell_status(
    turn: Turn,
    agent: str,
    verdict: Verdict,
    told: ReportedActivity,
    subagents: dict[str, Activity],
    before: ReportedActivity | None,
) -> ReportedActivity:
    winner, now = verdict.winner, turn.now.timestamp()
    since = _since(verdict, before, now)
    turn.emit(
        StatusChanged(
            agent=agent,
            spawn=told.spawn,
            status=verdict.status,
            was=before.status if before is not None else None,
            since=_time(since),
            reason=verdict.reason,
            decided_by=winner.source.value if winner is not None else "",
            rule=winner.rule if winner is not None else "",
            subagents=subagents,
        )
    )
    return replace(told, status=verdict.status, since=since, at=now, again=False)


def _tell_question(turn: Turn, agent: str, question: ReportedQuestion, told: ReportedActivity) -> ReportedActivity:
    now = turn.now.timestamp()
    if not question.dialog and 0 <= now - question.since < SHOWS_WITHIN_S:
        turn.look_again_at(_time(question.since + SHOWS_WITHIN_S))
        return told
    turn.emit(
        ApprovalNeeded(
            agent=agent,
            spawn=told.spawn,
            since=_time(question.since),
            reason=question.why,
            dialog=question.dialog,
            fingerprint=question.fingerprint,
        )
    )
    return replace(told, asked=question.fingerprint, asked_at=now, hook_at=question.hook_at or told.hook_at)


def _is_lost(record: AgentRecord | None, told: ReportedActivity, now: float) -> bool:
    """Whether the record of this session says something else than was told long ago, or nothing."""
    is_its = record is not None and record.spawn == told.spawn and record.is_running
    differs = record is not None and record.activity is not told.status
    return is_its and differs and not told.again and not 0 <= now - told.at < RECORDS_WITHIN_S


def _since(verdict: Verdict, before: ReportedActivity | None, now: float) -> float:
    """When it began, by what decided it; now, where that is older than what was told before: it is so again."""
    if before is not None and before.status is verdict.status:
        return min(before.since, now)
    at = verdict.winner.at if verdict.winner is not None else now
    return min(at, now) if before is None or at > before.since else now


def tell_end(turn: Turn, agent: str, record: AgentRecord | None) -> None:
    """Of a session that is gone: how it ended, once the record says so, and nothing any more after that."""
    kept = turn.recall(f"{TOLD}{agent}")
    if kept is None:
        return
    told = ReportedActivity.read(kept)
    if record is not None and record.spawn == told.spawn and record.is_running:
        return  # it will be told soon what became of it
    over = (Activity.DONE, Activity.FAILED)
    if record is not None and record.spawn == told.spawn and record.activity in over and told.status not in over:
        turn.emit(
            StatusChanged(
                agent=agent,
                spawn=told.spawn,
                status=record.activity,
                was=told.status,
                since=record.ended or turn.now,
                reason=record.reason,
                decided_by="processes",
            )
        )
    turn.remember(f"{TOLD}{agent}", None)


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
