"""Which column each agent was in over the last day, in short slices of time. Pure.

A slice has the letter of the column that took most of it; columns that a person should not overlook count for more.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from shared.contract.states import CardColumn
from shared.runtime.memory import MemoryTable

SLICE_S = 120
SLICES = 24 * 3600 // SLICE_S
NOTHING_KNOWN = "."
LETTERS: Mapping[CardColumn, str] = {
    CardColumn.NEEDS_YOU: "n",
    CardColumn.TROUBLE: "t",
    CardColumn.LIMITED: "l",
    CardColumn.WORKING: "w",
    CardColumn.WAITING: "i",
    CardColumn.STARTING: "s",
    CardColumn.DONE: "d",
    CardColumn.STOPPED: "x",
}
WEIGHTS: Mapping[CardColumn, float] = {
    CardColumn.NEEDS_YOU: 5.0,
    CardColumn.TROUBLE: 5.0,
    CardColumn.LIMITED: 2.0,
    CardColumn.WORKING: 1.5,
}


@dataclass(frozen=True)
class AgentDay:
    """The finished slices of one agent, oldest first, and how long it was where in the slice that is under way."""

    end: int
    """The number of the slice that is under way, counted from 1970."""
    letters: str = ""
    spent: dict[CardColumn, float] = field(default_factory=dict)
    at: float = 0.0
    """Up to when `spent` counts."""

    def until(self, now: float, column: CardColumn) -> "AgentDay":
        """The day, if the agent has been in this column since `at`. A clock that was set back adds nothing."""
        day = self
        current = int(now // SLICE_S)
        if current < day.end:
            return self._back_to(current, now)
        if current - day.end > SLICES:
            return AgentDay(current, at=now)
        while day.end < current:
            boundary = float((day.end + 1) * SLICE_S)
            filled = day._spend(column, boundary)
            letters = (filled.letters + filled.letter)[-SLICES:]
            day = AgentDay(day.end + 1, letters, at=boundary)
        return day._spend(column, now)

    def after_absence(self, now: float) -> "AgentDay":
        """The day, if nobody looked since `at`."""
        current = int(now // SLICE_S)
        if current == self.end:
            return replace(self, at=now)
        if current < self.end:
            return self._back_to(current, now)
        if current - self.end > SLICES:
            return AgentDay(current, at=now)
        letters = self.letters + self.letter + NOTHING_KNOWN * (current - self.end - 1)
        return AgentDay(current, letters[-SLICES:], at=now)

    def _back_to(self, current: int, now: float) -> "AgentDay":
        """The day after the clock was set back: without the slices that are to come again."""
        return AgentDay(current, self.letters[: current - self.end], at=now)

    def _spend(self, column: CardColumn, until: float) -> "AgentDay":
        spent = {**self.spent, column: self.spent.get(column, 0.0) + max(0.0, until - self.at)}
        return replace(self, spent=spent, at=max(self.at, until))

    @property
    def letter(self) -> str:
        """The letter of the slice that is under way."""
        if not any(self.spent.values()):
            return NOTHING_KNOWN
        return LETTERS[max(self.spent, key=lambda column: self.spent[column] * WEIGHTS.get(column, 1.0))]


DAYS = MemoryTable("day:", AgentDay)


def new_day(now: float) -> AgentDay:
    return AgentDay(int(now // SLICE_S), at=now)


def day_document(days: Mapping[str, AgentDay], now: float) -> dict[str, object]:
    """The last 24 hours as the page draws them: a letter for each slice, the one under way last."""
    end = int(now // SLICE_S)
    rows = {}
    for agent, day in days.items():
        letters = day.letters + day.letter + NOTHING_KNOWN * max(0, end - day.end)
        rows[agent] = letters[-SLICES:].rjust(SLICES, NOTHING_KNOWN)
    return {
        "start": (end - SLICES + 1) * SLICE_S,
        "bucket_s": SLICE_S,
        "columns": "".join(LETTERS[column] for column in CardColumn),
        "agents": rows,
    }
