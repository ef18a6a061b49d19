"""Records and sights for the reconciler's tests, with what matters said and the rest as it mostly is."""

from datetime import UTC, datetime
from typing import Any

from registry import AgentRecord
from services.reconciler.sights import Examined, Sight
from shared.identity import Identity
from shared.states import Desired, Status
from shared.tmux import Pane

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def record(status: Status = Status.RUNNING, **changes: Any) -> AgentRecord:
    known: dict[str, Any] = {
        "since": NOW,
        "reason": "",
        "desired": Desired.RUNNING,
        "backend": "claude",
        "workspace": "/work",
        "session": "builder",
        "spawn": "s1",
    }
    return AgentRecord(status=status, **{**known, **changes})


def pane(spawn: str | None = "s1", *, session: str = "builder", dead: bool = False, **changes: Any) -> Pane:
    known: dict[str, Any] = {
        "session": session,
        "session_id": "$1",
        "pane_id": "%1",
        "pid": 7,
        "command": "claude",
        "dead": dead,
        "dead_status": None,
        "path": "/work",
        "title": "",
        "created": 1,
        "activity": 1,
        "agent": "builder",
        "spawn": spawn,
        "fleet": "f",
    }
    return Pane(**{**known, **changes})


def sight(found: Pane | None = None, identity: Identity | None = None, **changes: Any) -> Sight:
    return Sight(found or pane(), Examined(runs_its_backend=True, found="claude", identity=identity), **changes)
