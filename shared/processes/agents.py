"""Which agent runs in the tree below a pane."""

from collections.abc import Mapping
from pathlib import PurePath

from shared.fleet import Backend
from shared.processes.look import Processes
from shared.processes.names import is_general
from shared.processes.process import Process


def agent_in(processes: Processes, backends: Mapping[str, Backend], pid: int) -> tuple[str, Process] | None:
    """The backend whose program runs in the tree below a pane's process, and the topmost process that is it.

    What an agent has started counts for nothing: an agent may run another. None where no backend fits, or several do,
    or where two stand side by side.
    """
    known = {name: called for name, backend in backends.items() if (called := recognised_by(backend))}
    found: list[tuple[str, Process]] = []
    inside: set[int] = set()
    for process in processes.below(pid):
        if process.parent in inside and process.pid != pid:
            inside.add(process.pid)
            continue
        names = processes.names(process)
        if fits := [(name, process) for name, called in known.items() if called & names]:
            inside.add(process.pid)
            found += fits
    return found[0] if len(found) == 1 else None


def program_in(processes: Processes, backend: Backend, pid: int) -> Process | None:
    """The topmost process below a pane's that is this backend's program."""
    called = recognised_by(backend.model_copy(update={"like": None}))
    return next((process for process in processes.below(pid) if called & processes.names(process)), None)


def recognised_by(backend: Backend) -> set[str]:
    """The names by which a process is known to be this agent; none if they would fit others as well."""
    if backend.like is not None:
        return set()
    if backend.process:
        return {name for name in backend.process if name and "{" not in name}
    binary = PurePath(backend.binary).name
    return set() if not binary or "{" in binary or is_general(binary) else {binary}
