"""Reports what each agent is doing: every change of status once, and every question to a person once.

What was reported last is remembered, so a restarted monitor reports nothing twice.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from registry import AgentRecord
from services.monitor.verdict import Verdict
from shared.agents.evidence import EvidenceSource
from shared.contract.events.activity import ApprovalNeeded, StatusChanged
from shared.contract.states import Activity, AnswerOption
from shared.fleet import Backend
from shared.fleet.backend import Dialog
from shared.runtime.memory import MemoryTable
from shared.runtime.moments import Moment
from shared.runtime.turn import Turn
from shared.screen import read_screen
from shared.screen.signs import fingerprint

DIALOG_WITHIN_S = 1.5
"""How long a question waits for its dialog to be on the screen. Then it is reported without."""
RECORDED_WITHIN_S = 10.0
"""A record that does not have the reported status by then has lost it: it is reported again, once."""


@dataclass(frozen=True)
class ReportedActivity:
    """What was last reported of one agent."""

    spawn: str
    status: Activity
    since: Moment
    at: Moment = 0.0
    """When the status was reported."""
    asked: str = ""
    """The fingerprint of the dialog that was reported last."""
    asked_at: Moment = 0.0
    hook_at: Moment = 0.0
    """When the hook of that question was called, if one was."""
    again: bool = False
    """Whether the status was reported a second time, since the record had lost it."""


REPORTS = MemoryTable("report:", ReportedActivity)


@dataclass(frozen=True)
class ApprovalQuestion:
    """What an agent asks a person now."""

    since: float
    why: str
    hook_at: float | None = None
    """When a hook told of it, if one did."""
    dialog: str = ""
    fingerprint: str = ""
    shown_since: float = 0.0
    """Since when this dialog is on the screen."""
    can: tuple[str, ...] = ()
    """The commands that answer it."""
    options: tuple[tuple[str, str], ...] = ()
    """The key and the text of each row, if it is a choice."""

    def is_news(self, reported: ReportedActivity, now: float, *, still_asks: bool) -> bool:
        """Whether it is another question than the last one. `still_asks`: the agent was asking before this turn too.

        A dialog that is painted again, or seen for the first time after a restart, is no other question.
        """
        if not 0 < reported.asked_at <= now:
            return True
        if self.hook_at is not None and self.hook_at > reported.hook_at:
            return True
        if self.fingerprint:
            return self.fingerprint != reported.asked or (not still_asks and self.shown_since > reported.asked_at)
        return self.hook_at is None and self.since > reported.asked_at


def question_in(verdict: Verdict, backend: Backend, screen: str) -> ApprovalQuestion | None:
    """What the agent asks, by the verdict and its screen; None where it asks nothing."""
    winner = verdict.winner
    if verdict.status is not Activity.NEEDS_APPROVAL or winner is None:
        return None
    reading = read_screen(backend, screen)
    asking = {
        each.evidence.source: each.evidence.at
        for each in verdict.weighed
        if each.evidence.says is Activity.NEEDS_APPROVAL
    }
    return ApprovalQuestion(
        since=winner.at,
        why=winner.why,
        hook_at=asking.get(EvidenceSource.HOOKS),
        dialog=reading.dialog_text,
        fingerprint=fingerprint(reading),
        shown_since=asking.get(EvidenceSource.SCREEN, 0.0),
        can=_answers_to(reading.dialog),
        options=reading.options,
    )


def _answers_to(dialog: Dialog | None) -> tuple[str, ...]:
    keys = {"approve": dialog.approve, "deny": dialog.deny} if dialog is not None else {}
    return tuple(verb for verb, pressed in keys.items() if pressed)


def last_report(turn: Turn, agent: str, spawn: str) -> ReportedActivity | None:
    """What was last reported of this session."""
    reported = turn.memory.find(REPORTS, agent)
    return reported if reported is not None and reported.spawn == spawn else None


def report(
    turn: Turn,
    agent: str,
    spawn: str,
    verdict: Verdict,
    question: ApprovalQuestion | None = None,
    subagents: Mapping[str, Activity] | None = None,
    record: AgentRecord | None = None,
) -> None:
    """Report what is new about an agent that runs."""
    before, now = last_report(turn, agent, spawn), turn.now.timestamp()
    still_asks = before is not None and before.status is Activity.NEEDS_APPROVAL
    reported = before
    if reported is None or reported.status is not verdict.status or _is_lost(record, reported, now):
        reported = _report_status(turn, agent, spawn, verdict, dict(subagents or {}), before)
    if question is not None and question.is_news(reported, now, still_asks=still_asks):
        reported = _report_question(turn, agent, question, reported)
    turn.memory.put(REPORTS, reported, agent)


def _report_status(
    turn: Turn,
    agent: str,
    spawn: str,
    verdict: Verdict,
    subagents: dict[str, Activity],
    before: ReportedActivity | None,
) -> ReportedActivity:
    winner, now = verdict.winner, turn.now.timestamp()
    since = _since(verdict, before, now)
    turn.emit(
        StatusChanged(
            agent=agent,
            spawn=spawn,
            status=verdict.status,
            was=before.status if before is not None else None,
            since=_time(since),
            reason=verdict.reason,
            decided_by=winner.source.value if winner is not None else "",
            rule=winner.rule if winner is not None else "",
            subagents=subagents,
        )
    )
    if before is None:
        return ReportedActivity(spawn, verdict.status, since, at=now)
    return replace(before, status=verdict.status, since=since, at=now, again=before.status is verdict.status)


def _report_question(
    turn: Turn, agent: str, question: ApprovalQuestion, reported: ReportedActivity
) -> ReportedActivity:
    now = turn.now.timestamp()
    if not question.dialog and 0 <= now - question.since < DIALOG_WITHIN_S:
        turn.look_again_at(_time(question.since + DIALOG_WITHIN_S))
        return reported
    turn.emit(
        ApprovalNeeded(
            agent=agent,
            spawn=reported.spawn,
            since=_time(question.since),
            reason=question.why,
            dialog=question.dialog,
            fingerprint=question.fingerprint,
            can=list(question.can),
            options=[AnswerOption(key=key, text=text) for key, text in question.options],
        )
    )
    return replace(reported, asked=question.fingerprint, asked_at=now, hook_at=question.hook_at or reported.hook_at)


def _is_lost(record: AgentRecord | None, reported: ReportedActivity, now: float) -> bool:
    """Whether the record of this session still says something else than was reported long ago, or nothing."""
    is_its = record is not None and record.spawn == reported.spawn and record.is_running
    differs = record is not None and record.activity is not reported.status
    return is_its and differs and not reported.again and not 0 <= now - reported.at < RECORDED_WITHIN_S


def _since(verdict: Verdict, before: ReportedActivity | None, now: float) -> float:
    """When the status began, by what decided it. Evidence older than the last report means: so again, since now."""
    if before is not None and before.status is verdict.status:
        return min(before.since, now)
    at = verdict.winner.at if verdict.winner is not None else now
    return min(at, now) if before is None or at > before.since else now


def report_end(turn: Turn, agent: str, record: AgentRecord | None) -> None:
    """Report how a session that is gone ended, once its record says so; then forget it."""
    reported = turn.memory.find(REPORTS, agent)
    if reported is None:
        return
    own = record if record is not None and record.spawn == reported.spawn else None
    if own is not None and own.is_running:
        return  # the record will soon say how it ended
    over = (Activity.DONE, Activity.FAILED)
    if own is not None and own.activity in over and reported.status not in over:
        turn.emit(
            StatusChanged(
                agent=agent,
                spawn=reported.spawn,
                status=own.activity,
                was=reported.status,
                since=own.ended or turn.now,
                reason=own.reason,
                decided_by="processes",
            )
        )
    turn.memory.put(REPORTS, None, agent)


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
