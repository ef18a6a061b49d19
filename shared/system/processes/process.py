"""One process: its names, arguments, environment and open files.

The list is read from one small file per process on Linux, by psutil elsewhere. Details of a process that has ended, or
that belongs to another user, are empty; nothing here raises for them.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import NamedTuple, TypeVar

import psutil

from shared.system.clock import CLOCK_HISTORY

STAT_BYTES = 4096
CHILDREN_BYTES = 1 << 20
GONE = b"ZX"
"""The states of a process that has ended and is still listed."""


@dataclass(frozen=True)
class Process:
    """A process as it was listed. `pid` and `ticks` identify it; without these, `pid` and `started` do."""

    pid: int
    parent: int
    name: str
    started: float
    """Seconds since 1970, by the clock as it was then. The kernel's own value is up to a second off."""
    ticks: int | None = None
    """When it started, in Linux's own unit (field 22 of its `stat`): exact, and some agents store it."""


def all_processes() -> Iterator[Process]:
    """All processes that run now; zombies are left out."""
    for pid in psutil.pids():
        if (process := process_of(pid)) is not None:
            yield process


def is_there(process: Process) -> bool:
    """Whether it still runs, though maybe another program."""
    now = process_of(process.pid)
    if now is None or now.ticks is not None:
        return now is not None and now.ticks == process.ticks  # whatever was done to the clock meanwhile
    return now.started == process.started


def process_of(pid: int) -> Process | None:
    """The process with this number; None if there is none, or only a zombie."""
    return _by_stat(pid) if psutil.LINUX else _by_psutil(pid)


def _by_stat(pid: int) -> Process | None:
    """`pid (name) state parent …`, and the start as the 22nd word. A name may hold blanks and parentheses."""
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except OSError:
        return None
    try:
        line = os.read(file, STAT_BYTES)
    except OSError:
        return None
    finally:
        os.close(file)
    try:
        head, _, rest = line.rpartition(b") ")
        name = head.partition(b" (")[2].decode("utf-8", "replace")
        state, parent, *more = rest.split(None, 20)
        ticks = int(more[17])
        started = round(CLOCK_HISTORY.known.shown_at(ticks / _per_second()), 2)
        return None if state in GONE else Process(pid, int(parent), name, started, ticks)
    except (ValueError, IndexError):
        return None


def children_of(pid: int) -> list[int] | None:
    """The children of a process, whichever of its threads started them; None where the system does not list them."""
    found = bytearray()
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):  # noqa: PTH208 - much quicker, and there are many
            file = os.open(f"/proc/{pid}/task/{thread}/children", os.O_RDONLY)
            try:
                while part := os.read(file, CHILDREN_BYTES):
                    found += part
            finally:
                os.close(file)
    except OSError:
        return None
    return [int(word) for word in found.split()]


@cache
def _per_second() -> int:
    return os.sysconf("SC_CLK_TCK")


def _by_psutil(pid: int) -> Process | None:
    with suppress(psutil.Error, OSError):
        about = psutil.Process(pid)
        with about.oneshot():
            if about.status() != psutil.STATUS_ZOMBIE:
                return Process(pid, about.ppid(), about.name(), about.create_time())
    return None


RUNS_SCRIPTS = ("python", "pypy", "node", "bun", "deno", "ruby", "perl", "bash", "dash", "sh", "zsh", "fish", "ksh")
STARTS_OTHERS = ("env", "npx", "npm", "pnpm", "yarn", "uv", "uvx", "pipx", "tmux", "screen", "sudo", "doas", "ssh")
KEEPS_OTHERS = ("timeout", "nohup", "nice", "script", "docker", "podman", "login", "busybox", "mosh", "setsid", "su")
GENERAL = frozenset((*RUNS_SCRIPTS, *STARTS_OTHERS, *KEEPS_OTHERS))
"""Programs whose name does not say what runs in them."""


def is_general(program: str) -> bool:
    """Whether a program is an interpreter, a shell or a launcher, also with a version: `python3.11`."""
    return program.rstrip("0123456789.-") in GENERAL


def called(arguments: Sequence[str]) -> Iterator[str]:
    """The names of a program and, if it is an interpreter, of the script that it runs."""
    if not arguments:
        return
    program = PurePath(arguments[0].lstrip("-")).name  # that of a login shell begins with a dash
    yield program
    if program.rstrip("0123456789.-") not in RUNS_SCRIPTS:
        return
    words = iter(arguments[1:])
    for word in words:
        if word == "-m":
            yield next(words, "")
            return
        if word in ("-c", "-e", "--eval", "-p", "--print"):
            return
        if not word.startswith("-"):
            yield PurePath(word).name
            return


T = TypeVar("T")


class OpenFile(NamedTuple):
    """An open file of a process, and its position there: the end of its last write, if it only writes."""

    path: Path
    position: int | None = None


def arguments_of(process: Process) -> Sequence[str]:
    return _ask(process, psutil.Process.cmdline, [])


def environment_of(process: Process) -> Mapping[str, str]:
    """The variables that it was started with."""
    return _ask(process, psutil.Process.environ, {})


def cwd_of(process: Process) -> Path | None:
    found = _ask(process, psutil.Process.cwd, "")
    return Path(found) if found else None


def opened_by(process: Process, *suffixes: str) -> list[OpenFile]:
    """The regular files that it has open, each as often as it does; with suffixes, only files whose names end so."""

    def wanted(path: str) -> bool:
        return path.endswith(suffixes) if suffixes else True

    return _ask(process, lambda about: list(_open_files(about, wanted)), [])


def _open_files(about: psutil.Process, wanted: Callable[[str], bool]) -> Iterator[OpenFile]:
    if not psutil.LINUX:
        yield from (OpenFile(Path(file.path)) for file in about.open_files() if wanted(file.path))
        return
    # psutil makes several system calls for every file, and an agent may have a hundred.
    with os.scandir(f"/proc/{about.pid}/fd") as entries:
        for entry in entries:
            with suppress(OSError):
                path = os.readlink(entry.path)  # noqa: PTH115 - much quicker, and there are many
                if path.startswith("/") and wanted(path) and Path(path).is_file():
                    yield OpenFile(Path(path), _position(about.pid, entry.name))


def _position(pid: int, number: str) -> int | None:
    """From the kernel's `fdinfo`, which begins with `pos:` and a number."""
    words = Path(f"/proc/{pid}/fdinfo/{number}").read_text().split()
    return int(words[1]) if words[:1] == ["pos:"] and words[1].isdigit() else None


def _ask(process: Process, question: Callable[[psutil.Process], T], otherwise: T) -> T:
    """A detail of this very process, not of another that got its pid."""
    try:
        answer = question(psutil.Process(process.pid))
    except (psutil.Error, OSError, ValueError):
        return otherwise
    return answer if is_there(process) else otherwise
