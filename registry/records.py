"""One agent session as it is recorded, and how events change it."""

from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict

from shared.events import (
    AgentAdopted,
    AgentDeleted,
    AgentExited,
    AgentGaveUp,
    AgentRestarted,
    AgentResumed,
    AgentSpawned,
    AgentState,
    AgentStopped,
    Envelope,
    PaneDead,
    SessionMissing,
)
from shared.ids import Id
from shared.states import Desired, Status


class AgentRecord(BaseModel):
    """What `registry.yaml` says of one agent. Keys it does not know are people's, and stay in the file."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    status: Status
    since: AwareDatetime
    reason: str
    desired: Desired
    backend: Id
    workspace: str
    session: str | None = None
    pane: str | None = None
    pid: int | None = None
    spawn: Id | None = None
    conversation: str | None = None
    drifts: list[str] = []

    def state(self, agent: str) -> AgentState:
        return AgentState(agent=agent, **self.model_dump())


def fold(record: AgentRecord | None, envelope: Envelope[Any]) -> AgentRecord | None:
    """The record after an event. Pure, and the same when an event comes twice.

    An event about an earlier session of the agent changes nothing: the spawn id tells.
    """
    event, at = envelope.data, envelope.time
    match event:
        case AgentSpawned() | AgentRestarted() | AgentResumed() | AgentAdopted():
            return AgentRecord(
                status=Status.RUNNING,
                since=at,
                reason=getattr(event, "reason", event.kind),
                desired=Desired.RUNNING,
                backend=event.backend,
                workspace=event.workspace,
                session=event.session,
                pane=event.pane,
                pid=event.pid,
                spawn=event.spawn,
                conversation=event.conversation,
            )
        case AgentDeleted() if record is not None and event.spawn in (None, record.spawn):
            return None
        case AgentStopped() if record is not None and event.spawn in (None, record.spawn):
            wanted = record.desired if event.for_now else Desired.STOPPED
            return _ended(record, Status.STOPPED, envelope, event.reason, desired=wanted)
        case AgentExited() if record is not None and event.spawn == record.spawn:
            return _ended(record, Status.EXITED, envelope, f"its program ended with status {event.exit_status}")
        case AgentGaveUp() if record is not None:
            return _ended(record, Status.GAVE_UP, envelope, event.reason)
        case SessionMissing() if record is not None and event.spawn == record.spawn:
            if record.status is not Status.RUNNING:
                return record
            reason = "auto-detected: its tmux session is gone"
            return _ended(record, Status.TERMINATED, envelope, reason, drifts=["missing"])
        case PaneDead() if record is not None and event.spawn == record.spawn:
            if record.status is not Status.RUNNING:
                return record
            reason = f"auto-detected: its program ended with status {event.exit_status}"
            return _ended(record, Status.EXITED, envelope, reason, drifts=["pane_dead"])
        case _:
            return record


def _ended(record: AgentRecord, status: Status, envelope: Envelope[Any], reason: str, **more: Any) -> AgentRecord:
    changes = {"status": status, "since": envelope.time, "reason": reason, "pane": None, "pid": None, **more}
    return record.model_copy(update=changes)
