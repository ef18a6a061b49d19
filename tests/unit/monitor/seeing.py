"""Panes, records, processes and verdicts for the monitor's tests: what matters is said, the rest is as it mostly is."""

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from registry import AgentRecord
from services.monitor.evidence import Evidence, Source
from services.monitor.fusion import Heard, Verdict
from shared.processes import Process, Processes
from shared.states import Activity, Desired, Status
from shared.tmux import Pane
from shared.turn import Turn

START = datetime(2030, 1, 1, tzinfo=UTC)
NOW = START.timestamp()
GONE = Process(2**22 + 7, 1, "agent", NOW - 100, 1)
"""A process with a number that none can have."""


def here() -> Process:
    """A process that is surely there."""
    found = Processes.look().get(os.getpid())
    assert found is not None
    return found


def pane(agent: str = "builder", spawn: str | None = "s1", **changes: Any) -> Pane:
    known: dict[str, Any] = {
        "session": agent,
        "session_id": "$1",
        "pane_id": "%1",
        "pid": GONE.pid,
        "command": "",
        "dead": False,
        "dead_status": None,
        "path": "",
        "title": "",
        "created": int(NOW) - 1_000,
        "activity": int(NOW) - 100,
        "agent": agent,
        "spawn": spawn,
        "fleet": "f",
    }
    return Pane(**{**known, **changes})


def record(status: Status = Status.RUNNING, **changes: Any) -> AgentRecord:
    known: dict[str, Any] = {
        "since": START,
        "reason": "asked for by somebody",
        "desired": Desired.RUNNING,
        "backend": "demo",
        "workspace": "/work",
        "spawn": "s1",
    }
    return AgentRecord(status=status, **{**known, **changes})


def verdict(says: Activity, at: float = NOW, source: Source = Source.SCREEN, **more: Any) -> Verdict:
    winner = Evidence(source, says, at, f"it shows {says.value}", **more)
    return Verdict(says, winner, (Heard(winner, believed=True, because="the first in order that says anything"),))


def turn(memory: Mapping[str, Any] | None = None, now: float = NOW) -> Turn:
    when = datetime.fromtimestamp(now, UTC)
    return Turn("monitor", when, poll=False, heard=[], asked=[], memory=memory if memory is not None else {})


class Tree(Processes):
    """Rows of pid, parent, start and command line."""

    def __init__(self, *rows: tuple[int, int, float, Sequence[str]]) -> None:
        super().__init__(Process(pid, parent, Path(words[0]).name, at) for pid, parent, at, words in rows)
        self._words = {pid: words for pid, _, _, words in rows}

    def arguments(self, process: Process) -> Sequence[str]:
        return self._words[process.pid]
