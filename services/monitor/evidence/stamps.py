"""Times that agents, hooks, files and tmux stamped, on the present clock.

After the clock was set back, a later look could take a stamp from before that for one of today. So each is corrected
when it is first read; one that is read again unchanged keeps its place. Pure.
"""

from collections.abc import Hashable
from dataclasses import replace

from shared.system.clock import ClockHistory
from shared.system.tmux import Pane


class CorrectedStamps:
    """The stamps of one agent."""

    def __init__(self) -> None:
        self._clock, self._now = ClockHistory(), 0.0
        self._read: dict[Hashable, tuple[float, float]] = {}
        """Each stamp as it was last read, and where it is on the present clock."""

    def begin(self, clock: ClockHistory, now: float) -> None:
        """Begin a turn. If the clock was set since the last one, all stamps move with it."""
        if clock != self._clock:
            by = clock.offset - self._clock.offset
            self._read = {name: (stamp, moment + by) for name, (stamp, moment) in self._read.items()}
        self._clock, self._now = clock, now

    def moment(self, name: Hashable, stamp: float) -> float:
        """When that was, never later than now. `name`: what bears the stamp."""
        if not self._clock.has_jumped:
            return min(stamp, self._now)
        if name not in self._read or self._read[name][0] != stamp:
            self._read[name] = (stamp, self._clock.corrected(stamp, self._now))
        return min(self._read[name][1], self._now)

    def pane(self, pane: Pane) -> Pane:
        if not self._clock.has_jumped:
            return pane
        created, activity = (
            int(self.moment(*each)) for each in (("created", pane.created), ("activity", pane.activity))
        )
        return replace(pane, created=created, activity=activity)
