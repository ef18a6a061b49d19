"""Processes that do not exist, with given details."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from shared.system.processes import OpenFile, Process, Processes


@dataclass(frozen=True)
class Details:
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    open_files: Sequence[OpenFile] = ()


class FakeProcesses(Processes):
    def __init__(self, details: Mapping[Process, Details]) -> None:
        super().__init__(details)
        self._details = details

    def arguments(self, process: Process) -> Sequence[str]:
        return self._details[process].arguments

    def environment(self, process: Process) -> Mapping[str, str]:
        return self._details[process].environment

    def cwd(self, process: Process) -> Path | None:
        return self._details[process].cwd

    def open_files(self, process: Process, *suffixes: str) -> list[OpenFile]:
        held = self._details[process].open_files
        return [file for file in held if not suffixes or file.path.name.endswith(suffixes)]

    def process(self, pid: int) -> Process:
        found = self.get(pid)
        assert found is not None
        return found

    def but(self, pid: int, **other: Any) -> "FakeProcesses":
        """The same with other details of one process."""
        changed = self.process(pid)
        return FakeProcesses({**self._details, changed: replace(self._details[changed], **other)})

    def and_also(self, process: Process, **details: Any) -> "FakeProcesses":
        return FakeProcesses({**self._details, process: Details(**details)})

    def without(self, *pids: int) -> "FakeProcesses":
        return FakeProcesses(
            {process: details for process, details in self._details.items() if process.pid not in pids}
        )


Row = tuple[int, int, Sequence[str]]


def process_tree(
    rows: Iterable[Row], started: Mapping[int, float] | None = None, *, hidden: bool = False
) -> FakeProcesses:
    """Rows of pid, parent and command line; the kernel's name is that of the program.

    Each is younger than the row before unless it is said when it `started`. The command lines of `hidden` ones are not
    ours to see.
    """
    found = {}
    for place, (pid, parent, words) in enumerate(rows):
        began = (started or {}).get(pid, float(place))
        process = Process(pid, parent, Path(words[0]).name[:15], began, ticks=int(100 * began))
        found[process] = Details(() if hidden else words)
    return FakeProcesses(found)
