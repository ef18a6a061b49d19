"""The search for an agent's program: seldom while all is well, soon when it is gone."""

import pytest

from services.monitor.evidence.program import SEARCH_AGAIN_MAX_S, AgentProgram
from shared.fleet import Backend
from shared.system.processes import Process
from tests.unit.monitor.samples import pane, tree

CLAUDE = Backend(binary="claude")
START = 60_000.0


def test_a_program_that_was_replaced_is_found_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also when only its live file was wanted, which is searched once a minute."""
    processes = tree((5, 1, 1.0, ["sh"]), (6, 5, 2.0, ["claude"]))
    program = AgentProgram("claude", lambda: processes)
    living = {6}

    def lives(process: Process) -> bool:
        return process.pid in living

    monkeypatch.setattr(program, "lives", lives)
    now = START
    while now < START + 65.0:
        program.find(CLAUDE, pane(pid=5), now)
        now += 1.0
    assert program.is_there
    processes, living = tree((5, 1, 1.0, ["sh"]), (7, 5, 70.0, ["claude"])), {7}
    assert program.find(CLAUDE, pane(pid=5), now + SEARCH_AGAIN_MAX_S)
    assert program.process == processes.get(7)
