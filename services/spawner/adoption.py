"""Which backend runs in a session that somebody else started: told by its processes."""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import PurePath

import psutil

from shared.fleet import Backend
from shared.tmux import Pane


def backend_of(backends: Mapping[str, Backend], pane: Pane) -> str | None:
    """The backend whose program runs in the pane; None if no name or several fit."""
    names = set(program_names(pane))
    fits = [name for name, backend in backends.items() if backend.like is None and names & processes_of(backend)]
    return fits[0] if len(fits) == 1 else None


def processes_of(backend: Backend) -> set[str]:
    """What the agent's process may be called. A general interpreter says nothing."""
    named = backend.process or [PurePath(backend.binary).name]
    return {name for name in named if name and "{" not in name}


def program_names(pane: Pane) -> Iterator[str]:
    """What runs in a pane: what tmux calls it, and the programs and scripts of the processes below it."""
    yield pane.command
    with suppress(psutil.Error):
        top = psutil.Process(pane.pid)
        for process in (top, *top.children(recursive=True)):
            with suppress(psutil.Error):
                yield process.name()
                yield from (PurePath(word).name for word in process.cmdline()[:2])
