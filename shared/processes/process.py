"""A process as it was seen, and the look that sees all of them: one small file a process on Linux, else psutil."""

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

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
