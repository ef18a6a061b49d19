"""Files that people edit: what one is known by, and a call soon after it changed."""

import threading
import time
from collections.abc import Callable
from pathlib import Path

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
