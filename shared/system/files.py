"""Private files, which are replaced as a whole, and watching files for changes."""

import os
import stat
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from shared.errors import MusterError


def make_directory(path: Path) -> None:
    """Make a directory with mode 0700, or give an existing one this mode."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_uid != os.geteuid():
        raise MusterError(f"{path} belongs to another user; remove it, or run as the user who owns it")
    path.chmod(0o700)


def write(path: Path, text: str) -> None:
    """Replace a file atomically by this text, with mode 0600."""
    # mkstemp creates it with mode 0600, whatever the umask.
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    temporary = Path(name)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


CHECKED_EVERY_S = 1.0
FileSignature = tuple[int, ...]


def signature_of(path: Path) -> FileSignature:
    """Values that change when the file does; () while there is none."""
    try:
        status = path.stat()
    except OSError:
        return ()
    # With ctime, since a copy can preserve the other times.
    return (status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size)


def watch(path: Path, changed: Callable[[], None], seen: FileSignature | None = None) -> None:
    """Call `changed` from a new thread about a second after each change of the file, until the process ends."""
    known = signature_of(path) if seen is None else seen
    threading.Thread(target=_watch, args=(path, changed, known), name=f"watches-{path.name}", daemon=True).start()


def _watch(path: Path, changed: Callable[[], None], seen: FileSignature) -> None:
    # Polling, since notifications differ on every system.
    while True:
        time.sleep(CHECKED_EVERY_S)
        if (stamp := signature_of(path)) != seen:
            seen = stamp
            changed()


TICK_NS = 50_000_000
"""Longer than the clock tick of any file system: within a tick, a file may change again and keep its time."""


class FileState(NamedTuple):
    """A file's identity, size and time; cheaper than `signature_of`."""

    device: int
    inode: int
    size: int
    changed_ns: int

    @property
    def is_settled(self) -> bool:
        """Whether any later change would give another state. If not, the file must be read once more."""
        return abs(time.time_ns() - self.changed_ns) > TICK_NS


def state_of(path: Path) -> FileState | None:
    """The state of a regular file; None for anything else."""
    try:
        found = os.stat(path)  # noqa: PTH116 - half the cost of Path.stat, twice a second for every agent
    except (OSError, ValueError):
        return None
    return state_in(found) if stat.S_ISREG(found.st_mode) else None


def state_in(found: os.stat_result) -> FileState:
    return FileState(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
