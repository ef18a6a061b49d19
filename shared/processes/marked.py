"""Processes that were marked when they were started, so that whoever comes after a crash can end them."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from shared.processes.details import environment_of
from shared.processes.look import Processes


def end_marked(variable: str, directory: Path, named: str = "") -> None:
    """End all that has a variable which names this directory, or one in it.

    Where a name is given, only programs whose names begin so, each with its group: what such a program left running for
    others (a shared ssh connection, say) stays.
    """
    for process in Processes.look():
        if process.pid == os.getpid() or not process.name.startswith(named):
            continue
        marked = environment_of(process).get(variable, "")
        if marked == str(directory) or marked.startswith(f"{directory}/"):
            with suppress(ProcessLookupError, PermissionError):
                _end(process.pid, with_group=bool(named))


def _end(pid: int, *, with_group: bool) -> None:
    if with_group and os.getpgid(pid) == pid:
        os.killpg(pid, signal.SIGKILL)
    else:
        os.kill(pid, signal.SIGKILL)
