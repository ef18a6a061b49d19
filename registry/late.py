"""Editors that save into a file that was swapped out while they had it open.

`cat > registry.yaml`, or an editor that writes in place, holds on to the old file: what it writes after our exchange
would be lost without a word. So the last files that were swapped out stay open for a while, and are looked at.
One that still has another name, by a hard link, is somebody's copy: what is written there concerns nobody else.
"""

import os
import time
from dataclasses import dataclass

from registry.disk import Stamp, content_of, stamp_of
from registry.faults import SwappedOut

KEPT_AT_MOST = 32
"""Writes come in bursts: with a few milliseconds between them, these are still more than an editor needs to save."""
KEPT_FOR_S = 60.0
QUIET_FOR_S = 0.3
"""So long nothing must have been written, for a save to count as finished."""


@dataclass(slots=True, eq=False)
class _Old:
    descriptor: int
    stamp: Stamp
    since: float
    overtaken: bool = False
    """Whether somebody else has edited the file in its place since."""

    @property
    def was_written(self) -> bool:
        """Whether somebody wrote into it since we looked."""
        return stamp_of(os.fstat(self.descriptor)) != self.stamp


@dataclass(frozen=True, slots=True)
class Save:
    """What somebody wrote into an old file."""

    data: bytes
    overtaken: bool


class OldFiles:
    """The files that were swapped out last."""

    def __init__(self) -> None:
        self._kept: list[_Old] = []

    def keep(self, out: SwappedOut) -> None:
        """Watch a file that was just swapped out; it is closed in the end."""
        self._kept.append(_Old(out.descriptor, out.stamp, time.monotonic()))
        too_many = max(0, len(self._kept) - KEPT_AT_MOST)
        for old in [each for each in self._kept if not each.was_written][:too_many]:
            self._drop(old)

    def overtake(self) -> None:
        """Somebody edited the file itself: an old state that is saved now is not simply newer."""
        for old in self._kept:
            old.overtaken = True

    def late_save(self) -> Save | None:
        """The newest finished save into an old file, told once."""
        for old in [each for each in self._kept if time.monotonic() - each.since > KEPT_FOR_S]:
            self._drop(old)
        for old in reversed(self._kept):
            status = os.fstat(old.descriptor)
            if status.st_nlink:  # a hard link: it is somebody's copy, and what is written to it is not lost
                old.stamp = stamp_of(status)
                continue
            quiet = time.time_ns() - status.st_mtime_ns > QUIET_FOR_S * 1e9
            if not old.was_written or not quiet or not status.st_size:
                continue  # an empty file is one that is still being written
            old.stamp = stamp_of(status)
            for other in self._kept:
                other.overtaken |= other is not old
            return Save(content_of(old.descriptor), old.overtaken)
        return None

    def close(self) -> None:
        while self._kept:
            self._drop(self._kept[0])

    def _drop(self, old: _Old) -> None:
        self._kept.remove(old)
        os.close(old.descriptor)

    def __del__(self) -> None:
        self.close()
