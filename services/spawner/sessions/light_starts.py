"""Which programs of those that were just started are light: they soon leave the processors to others.

A light one gives its place in the line of starts back (`restarts.Stagger`), so that only heavy starts are spread out.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from shared.system.processes.process import children_of

LOOKED_AT_EVERY_S = 0.1
LIGHT_BELOW = 0.25
"""A light program wanted a processor for less than this share of the time."""
LOOKED_AT_FOR_S = 10.0


class RecentStarts:
    """`wanted` says for how many seconds a process has run or waited for a processor; None if it is gone."""

    def __init__(
        self, wanted: Callable[[int], float | None] | None = None, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._wanted = wanted or wanted_processor_s
        self._clock = clock
        self._seen: dict[int, tuple[float, float, float]] = {}
        """When each was started and last looked at, and what it had wanted by then."""

    def started(self, pid: int) -> None:
        now = self._clock()
        self._seen[pid] = (now, now, 0.0)

    def count_light(self) -> int:
        """How many were found to be light since the last call. Each counts once."""
        now, light = self._clock(), 0
        for pid, (began, at, before) in list(self._seen.items()):
            if now < at + LOOKED_AT_EVERY_S:
                continue
            wanted = self._wanted(pid)
            if wanted is None or now > began + LOOKED_AT_FOR_S:
                del self._seen[pid]
            elif wanted - before < LIGHT_BELOW * (now - at):
                del self._seen[pid]
                light += 1
            else:
                self._seen[pid] = (began, now, wanted)
        return light

    @property
    def are_watched(self) -> bool:
        return bool(self._seen)


def wanted_processor_s(pid: int) -> float | None:
    """Of its main thread, and of those of the processes that it started: it may be a wrapper. The wait for a processor
    counts: on a busy machine a heavy program does not look light."""
    own = _wanted_by(pid)
    if own is None:
        return None
    below = children_of(pid) or []
    for child in below:  # it grows meanwhile
        below += children_of(child) or []
    return own + sum(_wanted_by(child) or 0.0 for child in below)


def _wanted_by(pid: int) -> float | None:
    with suppress(OSError, ValueError, IndexError):
        ran, waited, *_ = Path(f"/proc/{pid}/schedstat").read_text().split()
        return (int(ran) + int(waited)) / 1e9
    return None
