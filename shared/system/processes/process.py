"""One process: how the system lists it, what it is called, what it was started with and what it holds open.

The list takes one small file per process on Linux, psutil elsewhere. Details of a process that has ended, or that
belongs to another user, are empty; nothing here raises for them.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePath
from typing import NamedTuple, TypeVar

import psutil

STAT_BYTES = 4096
GONE = b"ZX"
"""The states of a process that has ended and is still listed."""


@dataclass(frozen=True)
class Process:
    """A process as it was seen. `pid` and `started` together are never those of another one."""

    pid: int
    parent: int
    name: str
    started: float
    """Seconds since 1970."""
    ticks: int | None = None
    """When it started as Linux counts it, field 22 of its `stat`: exact, and what some agents write down."""


def all_processes() -> Iterator[Process]:
    """All that run at this moment; what has ended and is still listed does not."""
    for pid in psutil.pids():
        if (process := _seen(pid)) is not None:
            yield process


def is_there(process: Process) -> bool:
    """Whether it still runs. It may run another program by now."""
    now = _seen(process.pid)
    return now is not None and (now.ticks, now.started) == (process.ticks, process.started)


def _seen(pid: int) -> Process | None:
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
        return None if state in GONE else Process(pid, int(parent), name, _boot() + ticks / _per_second(), ticks)
    except (ValueError, IndexError):
        return None


@cache
def _boot() -> float:
    """When the machine started, by the clock as it is now: the kernel's own word for it is up to a second off.

    Asked once, so that a process has the same start in every look though the clock may be put right.
    """
    try:
        return round(time.time() - time.clock_gettime(time.CLOCK_BOOTTIME), 2)
    except (OSError, AttributeError):
        return psutil.boot_time()


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
"""Programs whose name says nothing of what runs in them."""


def is_general(program: str) -> bool:
    """Whether a program is an interpreter, a shell or a starter of others: `python3.11` is, too."""
    return program.rstrip("0123456789.-") in GENERAL


def called(arguments: Sequence[str]) -> Iterator[str]:
    """The names of a program and of the script that it runs. A word after any other program is only its argument."""
    if not arguments:
        return
    program = PurePath(arguments[0].lstrip("-")).name  # a login shell's begins with a dash
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
