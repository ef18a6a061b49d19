"""Ending the programs of a session. tmux only hangs up, and some agents (Gemini CLI) ignore that.

This ends the processes of the session's own terminal. What an agent has started in a process session of its own, so
that it outlives the agent, is left alone.
"""

import os
from collections.abc import Iterable, Sequence
from contextlib import suppress

import psutil

from shared.system.processes import Processes
from shared.system.tmux import Pane, Tmux

HANGUP_WITHIN_S, TERM_WITHIN_S, KILL_WITHIN_S = 0.5, 3.0, 0.5
"""How long processes have to end after each signal."""


def end_sessions(tmux: Tmux, panes: Sequence[Pane]) -> None:
    """End agents' sessions (of a person's session only the agent's pane), and wait until their programs have ended."""
    alive = [pane.pid for pane in panes if not pane.dead]
    table = Processes.look() if alive else Processes(())  # once: a look at all processes for each agent is quadratic
    processes = [process for pid in alive for process in of_terminal(pid, table)]
    tmux.kill_all([(pane.target, pane.spawn) for pane in panes])
    end_processes(processes)


def end_left_over(sessions: Iterable[tuple[int, str]]) -> bool:
    """End the programs of sessions that are gone, all at once, if they still run; True if one did.

    By pid and spawn id: that proves whose a program is.
    """
    left = [pid for pid, spawn in sessions if _is_of(pid, spawn)]
    table = Processes.look() if left else Processes(())
    end_processes([process for pid in left for process in of_terminal(pid, table)])
    return bool(left)


def _is_of(pid: int, spawn: str) -> bool:
    with suppress(psutil.Error):
        return psutil.Process(pid).environ().get("MUSTER_SPAWN") == spawn
    return False


def of_terminal(pid: int, table: Processes) -> list[psutil.Process]:
    """A process and those below it that share its terminal."""
    session = _session_of(pid)
    found = []
    for each in table.below(pid):
        with suppress(psutil.Error):
            if session is not None and _session_of(each.pid) == session:
                found.append(psutil.Process(each.pid))
    return found


def _session_of(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def end_processes(processes: Iterable[psutil.Process]) -> None:
    _, alive = psutil.wait_procs(list(processes), timeout=HANGUP_WITHIN_S)
    for end, within_s in (("terminate", TERM_WITHIN_S), ("kill", KILL_WITHIN_S)):
        for process in alive:
            with suppress(psutil.Error):
                getattr(process, end)()
        _, alive = psutil.wait_procs(alive, timeout=within_s)
