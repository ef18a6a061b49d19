"""Which agent program runs in the process tree below a pane, and its version."""

import json
import re
from collections.abc import Mapping
from pathlib import Path, PurePath

from shared.fleet import Backend
from shared.system.processes.process import Process, arguments_of, is_general
from shared.system.processes.table import Processes


def agent_in(processes: Processes, backends: Mapping[str, Backend], pid: int) -> tuple[str, Process] | None:
    """The backend whose program runs below a pane's process, and the topmost process of that program.

    What an agent has started does not count: it may run another agent. None if no backend fits, if several do, or if
    two agents run side by side.
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
    """The topmost process below a pane's that runs this backend's program."""
    called = recognised_by(backend.model_copy(update={"like": None}))
    return next((process for process in processes.below(pid) if called & processes.names(process)), None)


def recognised_by(backend: Backend) -> set[str]:
    """The process names of this agent; empty if others have them too."""
    if backend.like is not None:
        return set()
    if backend.process:
        return {name for name in backend.process if name and "{" not in name}
    binary = PurePath(backend.binary).name
    return set() if not binary or "{" in binary or is_general(binary) else {binary}


VERSION = re.compile(r"\d+\.\d+\.\d+")
MOST_FOLDERS_UP = 6
"""How deep a program may be in its package."""
GENERAL = frozenset({"node", "bun", "deno", "npm"})
AT_MOST_BYTES = 1 << 20


def version_of(process: Process) -> str | None:
    """The version of the npm package whose program or script it runs; None if that is unknown."""
    try:
        program = Path(f"/proc/{process.pid}/exe").readlink()
    except OSError:
        program = Path()
    scripts = [Path(word) for word in arguments_of(process)[:3] if word.startswith("/")]
    found = (_version_in(path) for path in (program, *scripts))
    return next((version for version in found if version is not None), None)


def _version_in(path: Path) -> str | None:
    try:
        path = path.resolve()
    except OSError:
        return None
    if VERSION.fullmatch(path.name):  # Claude's own installer: `versions/2.1.197`
        return path.name
    for folder in list(path.parents)[:MOST_FOLDERS_UP]:
        try:
            with (folder / "package.json").open("rb") as file:
                about = json.loads(file.read(AT_MOST_BYTES))
        except (OSError, ValueError, RecursionError):
            continue
        if isinstance(about, dict) and isinstance(about.get("version"), str) and about.get("name") not in GENERAL:
            return str(about["version"])
    return None
