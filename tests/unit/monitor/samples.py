"""Panes, records, processes and verdicts for the monitor's tests: what matters is said, the rest is as it mostly is."""

import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from services.monitor.verdict import Verdict, WeighedEvidence
from shared.agents.evidence import Evidence, EvidenceSource
from shared.contract.states import Activity
from shared.runtime.memory import Memory
from shared.runtime.turn import Turn
from shared.system.processes import Process, Processes
from shared.system.tmux import Pane
from tests.fakes.processes import FakeProcesses, process_tree
from tests.fakes.records import START, make_pane, make_record

NOW = START.timestamp()
record = make_record
GONE = Process(2**22 + 7, 1, "agent", NOW - 100, 1)
"""A process with a number that none can have."""


def here() -> Process:
    """A process that is surely there."""
    found = Processes.look().get(os.getpid())
    assert found is not None
    return found


def pane(agent: str = "builder", spawn: str | None = "s1", **changes: Any) -> Pane:
    known = {"pid": GONE.pid, "path": "", "created": int(NOW) - 1_000, "activity": int(NOW) - 100}
    return make_pane(agent, spawn, **{**known, **changes})


def verdict(says: Activity, at: float = NOW, source: EvidenceSource = EvidenceSource.SCREEN, **more: Any) -> Verdict:
    winner = Evidence(source, says, at, f"it shows {says.value}", **more)
    return Verdict(
        says, winner, (WeighedEvidence(winner, believed=True, because="the first in order that says anything"),)
    )


def turn(memory: Mapping[str, Any] | None = None, now: float = NOW) -> Turn:
    when = datetime.fromtimestamp(now, UTC)
    return Turn("monitor", when, poll=False, events=[], commands=[], memory=Memory(memory or {}))


def tree(*rows: tuple[int, int, float, Sequence[str]]) -> FakeProcesses:
    """Rows of pid, parent, start and command line."""
    return process_tree(((pid, parent, words) for pid, parent, _, words in rows), {pid: at for pid, _, at, _ in rows})
