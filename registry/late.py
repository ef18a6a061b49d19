"""Editors that save into a file that was swapped out while they had it open.

`cat > registry.yaml`, or an editor that writes in place, holds on to the old file: what it writes after our exchange
would be lost without a word. So the last files that were swapped out stay open for a while, and are looked at.
"""

import os
import time
from collections import deque
from dataclasses import dataclass

from registry.disk import Stamp, content_of, stamp_of
from registry.faults import SwappedOut

KEPT_AT_MOST = 4
KEPT_FOR_S = 60.0
QUIET_FOR_S = 0.3
"""So long nothing must have been written, for a save to count as finished."""


@dataclass(slots=True)
class _Old:
    descriptor: int
    stamp: Stamp
    since: float
    overtaken: bool = False
    """Whether somebody else has edited the file in its place since."""


@dataclass(frozen=True, slots=True)
class Save:
    """What somebody wrote into an old file."""

    data: bytes
    overtaken: bool


class OldFiles:
    """The files that were swapped out last."""

    def __init__(self) -> None:
        self._kept: deque[_Old] = deque()

    def keep(self, out: SwappedOut) -> None:
        """Watch a file that was just swapped out; it is closed in the end."""
        self._kept.append(_Old(out.descriptor, out.stamp, time.monotonic()))
        while len(self._kept) > KEPT_AT_MOST:
            os.close(self._kept.popleft().descriptor)

    def overtake(self) -> None:
        """Somebody edited the file itself: an old state that is saved now is not simply newer."""
        for old in self._kept:
            old.overtaken = True

    def late_save(self) -> Save | None:
        """The newest finished save into an old file, told once."""
        while self._kept and time.monotonic() - self._kept[0].since > KEPT_FOR_S:
            os.close(self._kept.popleft().descriptor)
        for old in reversed(self._kept):
            status = os.fstat(old.descriptor)
            now = stamp_of(status)
            quiet = time.time_ns() - status.st_mtime_ns > QUIET_FOR_S * 1e9
            if now == old.stamp or not quiet or not status.st_size:
                continue  # an empty file is one that is still being written
            old.stamp = now
            return Save(content_of(old.descriptor), old.overtaken)
        return None

    def close(self) -> None:
        while self._kept:
            os.close(self._kept.pop().descriptor)

    def __del__(self) -> None:
        self.close()
