"""All processes of this machine at one moment, as a tree, with details on request.

Processes that Muster starts can be marked by a variable, so that a restarted service finds and ends them.
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
    children_of,
    cwd_of,
    environment_of,
    opened_by,
    process_of,
)


class Processes:
    """The processes that ran at one moment. Details are read on first use, and kept."""

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
        """The process and its descendants, parents first; [] if it is gone."""
        top = self._seen.get(pid)
        found = [top] if top is not None else []
        known = {pid}
        for parent in found:  # it grows meanwhile
            for child in self._children.get(parent.pid, ()):
                # A child that is older than its parent belongs to an earlier process with that pid.
                if child.pid not in known and not _is_older(child, parent):
                    known.add(child.pid)
                    found.append(child)
        return found

    def names(self, process: Process) -> set[str]:
        """Its possible names: the kernel's, its program's, and that of the script that it runs."""
        return {process.name, *called(self.arguments(process))}

    def arguments(self, process: Process) -> Sequence[str]:
        """Its command line."""
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
        """Its open files, or those whose names end so."""
        return opened_by(process, *suffixes)


class ProcessesOnDemand(Processes):
    """The same, read as far as it is asked for: what runs below a few processes, without all others.

    What is asked for later is of a later moment.
    """

    def __init__(self) -> None:
        super().__init__([])
        self._is_whole = False
        self._read: set[int] = set()
        """Processes whose children were read."""

    def __iter__(self) -> Iterator[Process]:
        self._read_all()
        return super().__iter__()

    def get(self, pid: int) -> Process | None:
        self._read_all()
        return super().get(pid)

    def below(self, pid: int) -> list[Process]:
        if not self._is_whole and not self._read_below(pid):
            self._read_all()
        return super().below(pid)

    def _read_all(self) -> None:
        if not self._is_whole:
            self._is_whole = True
            super().__init__(all_processes())

    def _read_below(self, pid: int) -> bool:
        """Read a process and its descendants; False if this system does not list children."""
        top = [pid] if pid not in self._read else []
        for parent in top:  # it grows meanwhile
            self._read.add(parent)
            if (process := process_of(parent)) is None:
                continue
            self._add(process)
            if (children := children_of(parent)) is None:
                return False
            top += [child for child in children if child not in self._read]
        return True

    def _add(self, process: Process) -> None:
        if process.pid not in self._seen:
            self._seen[process.pid] = process
            self._children.setdefault(process.parent, []).append(process)


def _is_older(one: Process, other: Process) -> bool:
    """By ticks, where they are known: the clock may have been set back between the two."""
    if one.ticks is None or other.ticks is None:
        return one.started < other.started
    return one.ticks < other.ticks


def end_marked(variable: str, directory: Path, named: str = "") -> None:
    """Kill all processes whose variable names this directory, or one in it.

    With `named`, only programs whose names begin so, each with its process group: what such a program left running for
    others, a shared ssh connection for example, stays.
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
