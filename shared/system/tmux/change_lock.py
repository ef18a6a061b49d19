"""Keeps Muster's processes from changing a tmux server while one of them connects to it.

tmux (measured with 3.3a, fixed only in 2026) crashes if a session is created, ended or renamed, or a client detaches,
while a control client is attaching: it notifies a client that is not set up yet, and every session is lost. Attaching
takes a few milliseconds, longer on a busy machine. So connecting waits until no change is under way, and lets none
begin. Changes that people make by hand are not covered.
"""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

PATIENCE_S = 2.0
"""After this it goes on without the lock: a fleet must not wait forever."""
PAUSE_S = 0.001


class ChangeLock:
    """A lock that changes of sessions share, and that connecting holds alone.

    It is on the directory of tmux's sockets, so it leaves no file behind. The kernel releases it with its process.
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
        # A pause between changes lets waiting processes connect.
        time.sleep(max(0.0, self._changed_at + 2 * PAUSE_S - time.monotonic()))
        with self._held(fcntl.LOCK_SH):
            yield
        self._changed_at = time.monotonic()

    @contextmanager
    def _held(self, kind: int) -> Iterator[None]:
        try:
            descriptor = os.open(self._directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            yield  # without the directory there is no server yet
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
    """The directory of the socket with this name, or with this path if it has a slash."""
    if "/" in socket:
        return Path(socket).absolute().parent
    return Path(os.environ.get("TMUX_TMPDIR") or "/tmp") / f"tmux-{os.getuid()}"  # noqa: S108  as tmux itself does
