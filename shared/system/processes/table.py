"""All processes of this machine at one moment: their tree, and their details as far as somebody asks.

Processes that Muster starts can be marked by a variable, so that a service that was killed finds and ends them later.
"""

import os
import signal
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from shared.system.processes.process import (
    OpenFile,
    Process,
    all_processes,
    arguments_of,
    called,
    cwd_of,
    environment_of,
    opened_by,
)


class Processes:
    """One look: all that ran at one moment. Details are read once, when somebody first asks for them."""

    def __init__(self, seen: Iterable[Process]) -> None:
        self._seen = {process.pid: process for process in seen}
        self._children: dict[int, list[Process]] = {}
        for process in self._seen.values():
            self._children.setdefault(process.parent, []).append(process)
        self._arguments: dict[int, Sequence[str]] = {}
        self._environments: dict[int, Mapping[str, str]] = {}

    @classmethod
    def look(cls) -> "Processes":
        return cls(all_processes())

    def __iter__(self) -> Iterator[Process]:
        return iter(self._seen.values())

    def get(self, pid: int) -> Process | None:
        return self._seen.get(pid)

    def below(self, pid: int) -> list[Process]:
        """The process and all below it, parents first; nothing if it is gone."""
        top = self._seen.get(pid)
        found = [top] if top is not None else []
        known = {pid}
        for parent in found:  # which grows as it goes
            for child in self._children.get(parent.pid, ()):
                # One that is older than its parent was the child of an earlier process of that number.
                if child.pid not in known and child.started >= parent.started:
                    known.add(child.pid)
                    found.append(child)
        return found

    def names(self, process: Process) -> set[str]:
        """What may be called its name: the kernel's for it, its program's, and its script's if it runs one."""
        return {process.name, *called(self.arguments(process))}

    def arguments(self, process: Process) -> Sequence[str]:
        """Its command line; nothing if it is gone or not ours to see."""
        if process.pid not in self._arguments:
            self._arguments[process.pid] = arguments_of(process)
        return self._arguments[process.pid]

    def environment(self, process: Process) -> Mapping[str, str]:
        """The variables that it was started with."""
        if process.pid not in self._environments:
            self._environments[process.pid] = environment_of(process)
        return self._environments[process.pid]

    def cwd(self, process: Process) -> Path | None:
        return cwd_of(process)

    def open_files(self, process: Process, *suffixes: str) -> list[OpenFile]:
        """The files that it holds open, or those of them whose names end so."""
        return opened_by(process, *suffixes)


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
