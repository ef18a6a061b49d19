"""Files that were replaced while an editor had them open.

`cat > registry.yaml`, or an editor that writes in place, keeps the old file open: what it writes after our exchange
would be lost. So the last replaced files stay open for a while, and their stamps are compared. A replaced file that
still has a name, by a hard link, is a person's copy: what is written to it is not meant for the registry.
"""

import os
import time
from dataclasses import dataclass
from pathlib import Path

from registry.disk import Stamp, SwappedOut, content_of, stamp_of
from shared.errors import MusterError

FILES_AT_MOST = 32
"""In a burst, writes follow each other within milliseconds. A save takes less time than so many of them."""
WATCHED_FOR_S = 60.0
QUIET_S = 0.3
"""A save is finished when nothing was written for this long."""


class LateSave(MusterError):
    """An editor saved an old state of the file after another edit; both are kept."""

    def __init__(self, path: Path, kept: Path) -> None:
        super().__init__(
            f"{path} was saved from an old state after another edit; that save is kept as {kept.name}: "
            "copy from it what you need, and delete it"
        )
        self.kept = kept


@dataclass(slots=True, eq=False)
class _Watched:
    descriptor: int
    stamp: Stamp
    since: float
    overtaken: bool = False
    """Whether a person has edited the registry itself since."""

    @property
    def was_written(self) -> bool:
        return stamp_of(os.fstat(self.descriptor)) != self.stamp


@dataclass(frozen=True, slots=True)
class SavedContent:
    """What an editor wrote into a replaced file."""

    data: bytes
    overtaken: bool


class ReplacedFiles:
    """The files that were replaced last."""

    def __init__(self) -> None:
        self._watched: list[_Watched] = []

    def watch(self, out: SwappedOut) -> None:
        """Watch a file that was just replaced. It is closed in the end."""
        self._watched.append(_Watched(out.descriptor, out.stamp, time.monotonic()))
        too_many = max(0, len(self._watched) - FILES_AT_MOST)
        for each in [each for each in self._watched if not each.was_written][:too_many]:
            self._drop(each)

    def overtake(self) -> None:
        """Note that a person edited the registry itself: an old state that is saved later must not replace that."""
        for each in self._watched:
            each.overtaken = True

    def saved(self) -> SavedContent | None:
        """The newest finished save into a replaced file; each is returned once."""
        for each in [each for each in self._watched if time.monotonic() - each.since > WATCHED_FOR_S]:
            self._drop(each)
        for each in reversed(self._watched):
            status = os.fstat(each.descriptor)
            if status.st_nlink:  # a person's copy
                each.stamp = stamp_of(status)
                continue
            is_quiet = time.time_ns() - status.st_mtime_ns > QUIET_S * 1e9
            if not each.was_written or not is_quiet or not status.st_size:  # an empty file is still being written
                continue
            each.stamp = stamp_of(status)
            for other in self._watched:
                other.overtaken |= other is not each
            return SavedContent(content_of(each.descriptor), each.overtaken)
        return None

    def close(self) -> None:
        while self._watched:
            self._drop(self._watched[0])

    def _drop(self, each: _Watched) -> None:
        self._watched.remove(each)
        os.close(each.descriptor)

    def __del__(self) -> None:
        self.close()
