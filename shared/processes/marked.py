"""Processes that were marked when they were started, so that whoever comes after a crash can end them."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from shared.processes.details import environment_of
from shared.processes.look import Processes


def end_marked(variable: str, directory: Path) -> None:
    """End all that has a variable which names this directory, or one in it."""
    for process in Processes.look():
        marked = environment_of(process).get(variable, "")
        if process.pid != os.getpid() and (marked == str(directory) or marked.startswith(f"{directory}/")):
            with suppress(ProcessLookupError):
                os.kill(process.pid, signal.SIGKILL)
