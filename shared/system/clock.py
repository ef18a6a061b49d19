"""The wall clock, which people and NTP set, held against the time since the machine's start, which nobody sets.

A clock that jumps stamps two moments of one minute hours apart. `ClockHistory` knows each jump since the machine's
start, and says where on the present clock a moment is that was stamped before one. It is pure; `read_clock` reads.
A suspend is no jump: both clocks go on. After a restart of the machine nothing is known of earlier jumps.
"""

import time
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path

JUMPED_S = 3.0
"""A smaller step matters to no decision. NTP slews small corrections, which both clocks follow."""
JUMPS_KNOWN = 16
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True, slots=True)
class ClockReading:
    boot: str
    """Which start of the machine it is; empty where the system does not tell."""
    wall: float
    since_boot: float

    @property
    def offset(self) -> float:
        return self.wall - self.since_boot


def read_clock() -> ClockReading:
    return ClockReading(_boot_id(), time.time(), since_boot())


def since_boot() -> float:
    """Seconds since the machine's start, also over a suspend where the system counts those."""
    try:
        return time.clock_gettime(time.CLOCK_BOOTTIME)
    except (OSError, AttributeError):
        return time.monotonic()


@cache
def _boot_id() -> str:
    try:
        return BOOT_ID.read_text().strip()
    except OSError:
        return ""


@dataclass(frozen=True)
class ClockPeriod:
    """The time between two jumps. Moments are seconds since the machine's start."""

    offset: float
    """What the clock shows, less the time since the machine's start."""
    begins: float = 0.0
    """The earliest moment at which the jump before it can have been."""
    noticed: float = 0.0


@dataclass(frozen=True)
class ClockHistory:
    """The periods of one start of the machine, oldest first."""

    boot: str = ""
    periods: tuple[ClockPeriod, ...] = field(default=(ClockPeriod(0.0),))

    @classmethod
    def beginning(cls, now: ClockReading) -> "ClockHistory":
        return cls(now.boot, (ClockPeriod(round(now.offset, 2)),))

    @property
    def offset(self) -> float:
        return self.periods[-1].offset

    @property
    def has_jumped(self) -> bool:
        return len(self.periods) > 1

    def continued(self, now: ClockReading, last: float | None) -> "ClockHistory":
        """The same, or with the jump since `last`, the latest reading that showed none; None if that is not known."""
        if now.boot != self.boot:
            return self.beginning(now)
        by = now.offset - self.offset
        if abs(by) < JUMPED_S:
            return self
        if last is None:  # stamps that may be of either period count as the later one's
            last = now.since_boot if by > 0 else 0.0
        period = ClockPeriod(self.offset + round(by), last, now.since_boot)  # whole seconds: tmux has no others
        return replace(self, periods=(*self.periods, period)[-JUMPS_KNOWN:])

    def corrected(self, moment: float, now: float) -> float:
        """Where on the present clock a moment of the past is, by the latest period that can have stamped it."""
        ends = now
        for place in reversed(range(len(self.periods))):
            period = self.periods[place]
            begins = period.begins + period.offset if place else float("-inf")
            if begins <= moment <= ends:
                return moment + (self.offset - period.offset)
            ends = period.noticed + self.periods[place - 1].offset
        return min(moment, now)

    def shown_at(self, since_boot_s: float) -> float:
        """What the clock showed then: when the period of that moment began is known only to the latest."""
        offset = self.periods[0].offset
        for period in self.periods[1:]:
            if since_boot_s >= period.noticed:
                offset = period.offset
        return offset + since_boot_s


def jump_sentence(by: float) -> str:
    """What people read of a jump."""
    way = "back" if by < 0 else "forward"
    said = f"the clock of this machine was set {way} by {_length(abs(by))}"
    return f"{said}: what is remembered was moved with it, and agents are judged by the time that really passed"


def _length(seconds: float) -> str:
    for unit, length in (("d", 86_400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * length:
            return f"{seconds / length:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:.0f} s"


class SharedHistory:
    """The history that this process goes by: the runtime's, as its service has it in the journal."""

    def __init__(self) -> None:
        self._known: ClockHistory | None = None

    @property
    def known(self) -> ClockHistory:
        if self._known is None:
            self._known = ClockHistory.beginning(read_clock())
        return self._known

    def follow(self, history: ClockHistory) -> None:
        self._known = history


CLOCK_HISTORY = SharedHistory()
