"""One look at the processes of this machine: their tree, and their details as far as somebody asks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from shared.processes.details import OpenFile, arguments_of, cwd_of, environment_of, opened_by
from shared.processes.names import called
from shared.processes.process import Process, all_processes


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
