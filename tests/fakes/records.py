"""Records and panes of agents, with usual values for what a test does not give."""

from datetime import UTC, datetime
from typing import Any

from registry import AgentRecord
from registry.memory import OUTDATED, RECORDS, OutdatedEntry
from shared.contract.states import Desired, Status
from shared.system.tmux import Pane

START = datetime(2030, 1, 1, tzinfo=UTC)


def make_record(status: Status = Status.RUNNING, **changes: Any) -> AgentRecord:
    known: dict[str, Any] = {
        "since": START,
        "reason": "asked for by somebody",
        "desired": Desired.RUNNING,
        "backend": "demo",
        "workspace": "/work",
        "spawn": "s1",
    }
    return AgentRecord(status=status, **{**known, **changes})


def rows_of(agent: str, record: AgentRecord | None, written: AgentRecord | None) -> dict[str, Any]:
    """What the registrar remembers of an agent, by key: its record, and what the file was last written with."""
    return {
        RECORDS.key(agent): RECORDS.dump(record) if record is not None else None,
        OUTDATED.key(agent): OUTDATED.dump(OutdatedEntry(written)) if written != record else None,
    }


def make_pane(agent: str | None = "builder", spawn: str | None = "s1", **changes: Any) -> Pane:
    """A pane in a session of the agent's name, alive, and without a log."""
    known: dict[str, Any] = {
        "session": agent or "theirs",
        "session_id": "$1",
        "pane_id": "%1",
        "pid": 7,
        "command": "",
        "dead": False,
        "dead_status": None,
        "path": "/work",
        "title": "",
        "created": 1,
        "activity": 1,
        "agent": agent,
        "spawn": spawn,
        "fleet": "f",
    }
    return Pane(**{**known, **changes})
