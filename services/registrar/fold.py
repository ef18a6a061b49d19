"""How events change a record. Pure; an event that comes twice changes nothing the second time."""

from datetime import datetime
from typing import Any

from registry.records import ACTIVITY_FIELDS, LIMIT_FIELDS, AgentRecord, EndedSession
from shared.contract.envelope import Envelope
from shared.contract.events.activity import LimitHit, LimitLifted, StatusChanged
from shared.contract.events.drift import (
    DriftEvent,
    DriftResolved,
    Identified,
    Moved,
    PaneDead,
    SessionMissing,
    StaleId,
    Unregistered,
)
from shared.contract.events.lifecycle import (
    AgentAdopted,
    AgentDeleted,
    AgentExited,
    AgentGaveUp,
    AgentRestarted,
    AgentResumed,
    AgentSpawned,
    AgentStopped,
)
from shared.contract.states import Activity, Desired, Status

OUTLIVING_DRIFTS = frozenset(kind.name() for kind in DriftEvent.kinds() if kind.outlives_session)
EARLIER_CONVERSATIONS_AT_MOST = 20
"""An agent may begin a new conversation many times a day: the record keeps the last ones."""


def fold(record: AgentRecord | None, envelope: Envelope[Any]) -> AgentRecord | None:
    """The record after an event; None if the agent has none.

    An event about another session, by its spawn id, changes nothing. One without a spawn id is about the agent.
    """
    event = envelope.data
    if isinstance(event, AgentSpawned | AgentRestarted | AgentResumed | AgentAdopted):
        return _running(event, envelope.time, record)
    if isinstance(event, Unregistered):
        return _registered(event, envelope.time, record)
    if record is None or _is_of_another_session(record, event):
        return record
    if isinstance(event, AgentDeleted):
        return None
    return record.model_copy(update=_changes(record, event, envelope.time))


def _is_of_another_session(record: AgentRecord, event: Any) -> bool:
    spawn = getattr(event, "spawn", None)
    return spawn is not None and spawn != record.spawn


def _changes(record: AgentRecord, event: Any, at: datetime) -> dict[str, Any]:
    match event:
        case AgentStopped(for_now=for_now):
            wanted = record.desired if for_now else Desired.STOPPED
            return _ended(record, Status.STOPPED, at, event.reason) | {"desired": wanted}
        case AgentExited(exit_status=status):
            reason = f"its program ended with status {status}" if status is not None else "its program ended"
            return _ended(record, Status.EXITED, at, reason, exit_status=status)
        case AgentGaveUp():
            return _ended(record, Status.GAVE_UP, at, event.reason)
        case SessionMissing() if record.is_running:
            reason = "auto-detected: its tmux session is gone"
            return _ended(record, Status.TERMINATED, at, reason, drift=event.kind)
        case PaneDead(exit_status=status) if record.is_running:
            reason = f"auto-detected: its program ended with status {status}"
            return _ended(record, Status.EXITED, at, reason, drift=event.kind, exit_status=status)
        case StatusChanged() if record.is_running:
            return {
                "activity": event.status,
                "activity_since": event.since,
                "activity_reason": event.reason,
                "decided_by": event.decided_by,
            }
        case LimitHit():
            return {
                "limit": event.scope or "usage",
                "account": event.account,
                "limit_resets": event.resets_at,
                "resumes": event.resumes_at,
            }
        case LimitLifted():
            return dict.fromkeys(LIMIT_FIELDS)
        case DriftEvent():
            return _flagged(record, event)
        case _:
            return {}


def _flagged(record: AgentRecord, event: DriftEvent) -> dict[str, Any]:
    """What a drift changes that leaves the status as it is."""
    match event:
        case Identified(conversation=conversation, transcript=transcript):
            earlier = record.earlier
            if record.conversation not in (None, conversation):
                earlier = [*(each for each in earlier if each != record.conversation), record.conversation]
            return {
                "conversation": conversation,
                "transcript": transcript,
                "earlier": [each for each in earlier if each != conversation][-EARLIER_CONVERSATIONS_AT_MOST:],
                "drifts": _without(record.drifts, StaleId.name()),
            }
        case Moved(session=session, workspace=workspace):
            return {"session": session, "workspace": workspace}
        case DriftResolved(drift=drift):
            return {"drifts": _without(record.drifts, drift)}
        case _ if event.resolved_because:  # it stays open until it is resolved
            return {"drifts": [*_without(record.drifts, event.kind), event.kind]}
        case _:
            return {}


def _running(event: Any, at: datetime, record: AgentRecord | None) -> AgentRecord:
    same = record is not None and record.spawn == event.spawn
    return AgentRecord(
        **_activity(record, event.spawn),
        **_limit(record),
        **_seen_in_tmux(event),
        status=Status.RUNNING,
        since=at,
        reason=getattr(event, "reason", event.kind),
        desired=Desired.RUNNING,
        role=event.role,
        conversation=event.conversation or (record.conversation if same and record else None),
        transcript=_transcript(record, event.conversation),
        parent=event.parent,
        level=event.level,
        job=event.job,
        started=at,
    )


def _seen_in_tmux(event: Any) -> dict[str, Any]:
    names = ("backend", "workspace", "session", "pane", "pid", "spawn")
    return {**{name: getattr(event, name) for name in names}, "command": event.command or None}


def _activity(record: AgentRecord | None, spawn: str) -> dict[str, Any]:
    """The activity, if this session was recorded as running before."""
    same = record is not None and record.spawn == spawn and record.is_running
    return {name: getattr(record, name) for name in ACTIVITY_FIELDS} if same else {}


def _limit(record: AgentRecord | None) -> dict[str, Any]:
    """A usage limit holds the agent's next session too."""
    return {name: getattr(record, name) for name in LIMIT_FIELDS} if record is not None else {}


def _transcript(record: AgentRecord | None, conversation: str | None) -> str | None:
    """The transcript, if the conversation continues."""
    return record.transcript if record is not None and conversation and record.conversation == conversation else None


def _registered(event: Unregistered, at: datetime, record: AgentRecord | None) -> AgentRecord | None:
    """The record of a session of this fleet that was found in tmux. A person's session is recorded when it is adopted.

    If it is recorded as running already, the reconciler had read an older file.
    """
    known = record if record is not None and record.spawn == event.spawn else None
    if event.spawn is None or (known is not None and known.is_running):
        return record
    return AgentRecord(
        **_limit(record),
        **_seen_in_tmux(event),
        status=Status.RUNNING,
        since=at,
        reason="auto-detected: found running in tmux",
        desired=known.desired if known else Desired.RUNNING,
        role=record.role if record else "",
        conversation=event.conversation or (known.conversation if known else None),
        transcript=known.transcript if known else None,
        parent=record.parent if record else None,
        level=record.level if record else 1,
        job=known.job if known else None,
        started=known.started if known else at,
    )


def _ended(
    record: AgentRecord,
    status: Status,
    at: datetime,
    reason: str,
    *,
    drift: str | None = None,
    exit_status: int | None = None,
) -> dict[str, Any]:
    """What an end changes. Only drifts about the agent, and not about its session, stay open."""
    stays = [each for each in record.drifts if each in OUTLIVING_DRIFTS]
    how = {"exit_status": exit_status} if status is Status.EXITED else {}
    return {
        **how,
        **_last_activity(status, at, reason, exit_status),
        "status": status,
        "since": at,
        "reason": reason,
        "pane": None,
        "pid": None,
        "ended": record.ended if record.ended and not record.is_running else at,
        "drifts": [*stays, drift] if drift else stays,
    }


def _last_activity(status: Status, at: datetime, reason: str, exit_status: int | None) -> dict[str, Any]:
    """The activity of an agent whose program ended: done or failed, and none if it was stopped."""
    if status is Status.STOPPED:
        return {"activity": None, "activity_since": None, "activity_reason": "", "decided_by": ""}
    well = status is Status.EXITED and exit_status == 0
    said = Activity.DONE if well else Activity.FAILED
    return {"activity": said, "activity_since": at, "activity_reason": reason, "decided_by": "processes"}


def _without(drifts: list[str], kind: str) -> list[str]:
    return [each for each in drifts if each != kind]


def endings(agent: str, before: AgentRecord | None, after: AgentRecord | None, at: datetime) -> dict[str, EndedSession]:
    """The sessions whose end an event told, first or in more detail; by spawn id, for the history."""
    over = [after] if after is not None and after != before else []
    if before is not None and before.is_running and (after is None or after.spawn != before.spawn):
        # The next session began before any event told the end of this one.
        reason = "another session took its place" if after is not None else "its record was given up"
        over.append(before.model_copy(update=_ended(before, Status.TERMINATED, at, reason)))
    return {each.spawn: ended for each in over if each.spawn and (ended := each.ending(agent)) is not None}
