"""Files: private ones that are replaced whole, and files of others that are watched for changes."""

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
    """Make the directory with mode 0700, or tighten it when it is there already."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_uid != os.geteuid():
        raise MusterError(f"{path} belongs to another user; remove it, or run as the user who owns it")
    path.chmod(0o700)


def write(path: Path, text: str) -> None:
    """Replace the file by this text, with mode 0600, so that a crash leaves the old or the new one."""
    # mkstemp gives 0600 from the first moment on, whatever the umask.
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


EVERY_S = 1.0
Stamp = tuple[int, ...]


def stamp_of(path: Path) -> Stamp:
    """What a file is known by; () while there is none."""
    try:
        status = path.stat()
    except OSError:
        return ()
    # The time of the last change of any kind can't be set by whoever copies a file with its times.
    return (status.st_ino, status.st_mtime_ns, status.st_ctime_ns, status.st_size)


def watch(path: Path, changed: Callable[[], None], seen: Stamp | None = None) -> None:
    """Call back from a thread of its own, soon after the file was changed. It ends with the process."""
    known = stamp_of(path) if seen is None else seen
    threading.Thread(target=_watch, args=(path, changed, known), name=f"watches-{path.name}", daemon=True).start()


def _watch(path: Path, changed: Callable[[], None], seen: Stamp) -> None:
    # One question a second to the file system; what tells of changes by itself is different on every system.
    while True:
        time.sleep(EVERY_S)
        if (stamp := stamp_of(path)) != seen:
            seen = stamp
            changed()


TICK_NS = 50_000_000
"""Longer than the tick of any file system's clock: within one, a file may change again and keep its time."""


class FileState(NamedTuple):
    device: int
    inode: int
    size: int
    changed_ns: int

    @property
    def is_settled(self) -> bool:
        """Whether a later change would show. A file that was written just now is looked into once more."""
        return abs(time.time_ns() - self.changed_ns) > TICK_NS


def state_of(path: Path) -> FileState | None:
    """None if there is no such file, or it is none of those that are read."""
    try:
        found = os.stat(path)  # noqa: PTH116 - half the cost of Path.stat, twice a second for every agent
    except (OSError, ValueError):
        return None
    return state_in(found) if stat.S_ISREG(found.st_mode) else None


def state_in(found: os.stat_result) -> FileState:
    return FileState(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
