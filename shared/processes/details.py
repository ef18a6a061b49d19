"""What one process was started with, and what it holds open. Nothing here raises for one that is gone or not ours."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, TypeVar

import psutil

from shared.processes.process import Process, is_there

T = TypeVar("T")


class OpenFile(NamedTuple):
    """A file that a process holds open, and where in it the process is: after what it wrote last, if it only writes."""

    path: Path
    position: int | None = None


def arguments_of(process: Process) -> Sequence[str]:
    return _ask(process, psutil.Process.cmdline, [])


def environment_of(process: Process) -> Mapping[str, str]:
    """The variables that it was started with; none if it is gone or not ours to see."""
    return _ask(process, psutil.Process.environ, {})


def cwd_of(process: Process) -> Path | None:
    found = _ask(process, psutil.Process.cwd, "")
    return Path(found) if found else None


def open_files_of(process: Process) -> list[Path]:
    """The regular files that it holds open, each as often as it does."""
    return [file.path for file in opened_by(process)]


def opened_by(process: Process, *suffixes: str) -> list[OpenFile]:
    """The same with the position in each; only those whose names end so, if endings are given: it costs less."""

    def wanted(path: str) -> bool:
        return path.endswith(suffixes) if suffixes else True

    return _ask(process, lambda about: list(_open_files(about, wanted)), [])


def _open_files(about: psutil.Process, wanted: Callable[[str], bool]) -> Iterator[OpenFile]:
    if not psutil.LINUX:
        yield from (OpenFile(Path(file.path)) for file in about.open_files() if wanted(file.path))
        return
    # psutil asks several questions about every file, and an agent may hold a hundred.
    with os.scandir(f"/proc/{about.pid}/fd") as entries:
        for entry in entries:
            with suppress(OSError):
                path = os.readlink(entry.path)  # noqa: PTH115 - much quicker, and there are many
                if path.startswith("/") and wanted(path) and Path(path).is_file():
                    yield OpenFile(Path(path), _position(about.pid, entry.name))


def _position(pid: int, number: str) -> int | None:
    """`pos:` and a number begin what the kernel tells of an open file."""
    words = Path(f"/proc/{pid}/fdinfo/{number}").read_text().split()
    return int(words[1]) if words[:1] == ["pos:"] and words[1].isdigit() else None


def _ask(process: Process, question: Callable[[psutil.Process], T], otherwise: T) -> T:
    """An answer that is surely about this process: its number may be another's by now."""
    try:
        answer = question(psutil.Process(process.pid))
    except (psutil.Error, OSError, ValueError):
        return otherwise
    return answer if is_there(process) else otherwise
