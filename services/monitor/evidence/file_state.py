"""What one `stat` tells of a file: enough to know that nothing was written since."""

import os
import stat
import time
from pathlib import Path
from typing import NamedTuple

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
