"""One process per job: a file lock that the kernel releases when its process ends.

The file holds the pid for messages; only the lock says whether the process lives. The file is never deleted: if it were
deleted while another process waits for its lock, there could be two holders.
"""

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from shared.errors import MusterError, Retryable

TRIES = 20
PAUSE_S = 0.01
"""Several tries: `holder` itself takes the lock for microseconds, and a new holder needs as long to write its pid."""


class AlreadyRunning(MusterError):
    """Another living process holds the lock."""

    def __init__(self, pid: int, what: str = "process") -> None:
        self.pid = pid
        super().__init__(f"another {what} (pid {pid}) already runs for this fleet")


@dataclass(frozen=True)
class LockHandle:
    """A lock that this process holds, until `release` or its end."""

    path: Path
    descriptor: int

    def survive_exec(self) -> None:
        """Keep the lock when another program replaces this process by `exec`."""
        os.set_inheritable(self.descriptor, True)

    def release(self) -> None:
        with contextlib.suppress(OSError):  # on a disk that became read-only the pid stays: only the lock counts
            os.ftruncate(self.descriptor, 0)
        os.close(self.descriptor)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def hold(path: Path, what: str = "process") -> LockHandle:
    """Take the lock and write this process's pid, or raise AlreadyRunning. `what` names the job in the message."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    for _ in _tries():
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if _lock(descriptor, fcntl.LOCK_EX) and _is_still(path, descriptor):
                os.pwrite(descriptor, pid_line := f"{os.getpid()}\n".encode(), 0)
                os.ftruncate(descriptor, len(pid_line))
                return LockHandle(path, descriptor)
        except OSError:  # the disk is full: a lock without a pid would hold others up
            os.close(descriptor)
            raise
        os.close(descriptor)
    raise AlreadyRunning(_recorded(path) or 0, what)


def holder(path: Path) -> int | None:
    """The pid of the process that holds the lock; None if none does."""
    for _ in _tries():
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return None
        try:
            # A shared lock, so that two callers of `holder` don't take each other for one.
            if _lock(descriptor, fcntl.LOCK_SH):
                return None
        finally:
            os.close(descriptor)
        pid = _recorded(path)
        if pid is not None and _lives(pid):
            return pid
    if (pid := _recorded(path)) is not None:
        return pid  # alive, but in another process namespace
    raise Retryable(f"{path} is locked by a process that has not written its pid; look again in a moment")


def _tries() -> Iterator[None]:
    for attempt in range(TRIES):
        if attempt:
            time.sleep(PAUSE_S)
        yield


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether the path still names the locked file: it may have been deleted between open and lock."""
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    return False


def _recorded(path: Path) -> int | None:
    with contextlib.suppress(FileNotFoundError, ValueError):
        return int(path.read_text())
    return None


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
