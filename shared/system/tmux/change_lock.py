"""Keeps Muster's own processes from changing a tmux server in the moment in which one of them connects to it.

tmux (measured with 3.3a, mended only in 2026) dies of a session that is created, ended or renamed, or of a client that
leaves, while a control client is still introducing itself: it writes the news to a client that is not set up yet,
and every session is lost. An introduction takes a few milliseconds, longer on a busy machine. So whoever connects
waits until no change is under way and lets none begin. What people do by hand at that very moment is beyond this.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Past this the risk is taken: a fleet that waits for ever helps nobody.
PATIENCE_S = 2.0
PAUSE_S = 0.001


class ChangeLock:
    """A lock that is shared by those who change sessions and held alone by one who connects.

    The kernel drops it with its holder. It is on the directory of tmux's sockets, so that it leaves no file behind.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._changed_at = 0.0

    @contextmanager
    def connecting(self) -> Iterator[None]:
        with self._held(fcntl.LOCK_EX):
            yield

    @contextmanager
    def changing(self) -> Iterator[None]:
        # Change after change would leave no gap for those who wait to connect.
        time.sleep(max(0.0, self._changed_at + 2 * PAUSE_S - time.monotonic()))
        with self._held(fcntl.LOCK_SH):
            yield
        self._changed_at = time.monotonic()

    @contextmanager
    def _held(self, kind: int) -> Iterator[None]:
        try:
            descriptor = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            yield  # no directory, so there is no server yet, and none to spare
            return
        try:
            _lock(descriptor, kind)
            yield
        finally:
            os.close(descriptor)


def _lock(descriptor: int, kind: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        try:
            return fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(PAUSE_S)


def directory_of(socket: str) -> Path:
    """Where tmux keeps the socket of this name, or of this path if it has a slash."""
    if "/" in socket:
        return Path(socket).absolute().parent
    return Path(os.environ.get("TMUX_TMPDIR") or "/tmp") / f"tmux-{os.getuid()}"  # noqa: S108  as tmux itself does
