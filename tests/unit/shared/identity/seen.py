"""A look at processes that are not there: as they were recorded, or as a test wants them."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.processes import OpenFile, Process, Processes

SAMPLES = Path(__file__).parents[3] / "samples" / "identity"
RECORDED_AT = "/srv/app"


def ident(number: int) -> str:
    """The ids in the samples."""
    return f"{number:08x}-0000-4000-8000-{number:012x}"


@dataclass(frozen=True)
class Details:
    arguments: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    cwd: Path | None = None
    open_files: Sequence[OpenFile] = ()


class Seen(Processes):
    """What a process was started with is given, and not asked of the system."""

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

    def but(self, pid: int, **other: Any) -> "Seen":
        """The same, but for some details of one process."""
        changed = self.process(pid)
        details = {**self._details[changed].__dict__, **other}
        return Seen({**self._details, changed: Details(**details)})

    def and_also(self, process: Process, **details: Any) -> "Seen":
        return Seen({**self._details, process: Details(**details)})

    def without(self, *pids: int) -> "Seen":
        return Seen({process: details for process, details in self._details.items() if process.pid not in pids})


def moment(sample: str, name: str, room: Path) -> Seen:
    """The processes at one moment of a recording, as if it had happened in that room: `home` and `ws` are in it."""
    states = json.loads((SAMPLES / sample / "states.json").read_text().replace(RECORDED_AT, str(room)))
    home, works = room / "home", room / "ws"
    return Seen(
        {
            Process(row["pid"], row["parent"], row["name"], row["started"], row["pid"] * 7): Details(
                row["arguments"],
                {"HOME": str(home)},
                works,
                [OpenFile(Path(path), position) for path, position, *_ in row["open_files"]],
            )
            for row in states[name]
        }
    )


def put(path: Path, text: str, written: float | None = None) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    if written is not None:
        os.utime(path, (written, written))
    return path
