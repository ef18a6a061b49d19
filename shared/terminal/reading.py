"""From repaints to lines: what has gone by, and what a program shows now.

A line has gone by when it scrolled off the main screen, or was seen to move up and out of a program that scrolls by
itself, as Codex and opencode do. What changes in place (spinners, timers, input boxes) has not.
"""

import re
from collections import Counter
from collections.abc import Sequence

from shared.terminal.screen import Screen

LEAST_MATCHES = 2
SAME_ENOUGH = 0.7
LEAST_LOST = 8
LOST_ENOUGH = 0.5
REMEMBERED = 200
SIDE_COLUMN = re.compile(r"(?:^|\S) {6,}(?=\S)")
SIDE_BEGINS, SIDE_ROWS = 100, 3


class Reading:
    """Give it what a program wrote, from the beginning or from anywhere; take the lines."""

    def __init__(self, rows: int = 50) -> None:
        self._screen = Screen(rows)
        self._screen.on_frame = self._compare
        self._screen.on_forget = self._forget
        self._gone: list[str] = []
        self._frame: list[str] | None = None
        self._returned: list[str] = []
        self._early: dict[str, None] = {}
        self.rewrites = 0
        """How often the program began to write again all that had gone by."""

    def feed(self, data: bytes) -> None:
        self._screen.feed(data)

    def take(self) -> list[str]:
        """The lines that went by since they were last taken."""
        self._collect()
        taken, self._gone = self._gone, []
        return taken

    def now(self) -> list[str]:
        """What is on the screen, without empty lines at its ends."""
        lines = self._lines()
        shown = [row for row, line in enumerate(lines) if line]
        return lines[shown[0] : shown[-1] + 1] if shown else []

    def _lines(self) -> list[str]:
        lines = self._screen.lines()
        return without_side(lines) if self._screen.alternate else lines

    def _collect(self) -> None:
        self._gone += self._screen.gone
        self._screen.gone.clear()

    def _forget(self) -> None:
        self._screen.gone.clear()
        self._gone.clear()
        self.rewrites += 1

    def _compare(self) -> None:
        """A repaint is complete: see what moved up and out."""
        self._collect()
        before, self._frame = self._frame, self._lines() if self._screen.alternate else None
        if before is None or self._frame is None or before == self._frame:
            return
        if went := moved_out(before, self._frame):
            self._went(went)
        elif came := moved_out(self._frame, before):
            self._returned[:0] = came  # somebody scrolled back, or a dialog closed: they will go by again
        else:
            self._turned(turned_over(before, self._frame))

    def _went(self, lines: Sequence[str]) -> None:
        for line in lines:
            if self._returned and self._returned[0] == line:
                self._returned.pop(0)
                continue
            self._returned.clear()
            if line in self._early:
                del self._early[line]
            else:
                self._gone.append(line)

    def _turned(self, lines: Sequence[str]) -> None:
        """Take a page's lines now. It may come back, and they go by once more."""
        fresh = [line for line in lines if line not in self._early]
        self._gone += fresh
        self._early |= dict.fromkeys(filter(None, fresh))
        self._early = dict(list(self._early.items())[-REMEMBERED:])


def moved_out(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The lines that scrolled out of the part of a screen that moved up, from two pictures of it; none if none did.

    Headers and footers stay where they are.
    """
    top, bottom = _changed(before, after)
    old, new = before[top:bottom], after[top:bottom]
    for count in range(1, len(old) - LEAST_MATCHES + 1):
        pairs = [(a, b) for a, b in zip(old[count:], new, strict=False) if a]
        same = sum(a == b for a, b in pairs)
        if same >= LEAST_MATCHES and same >= SAME_ENOUGH * len(pairs):
            return list(old[:count])
    return []


def turned_over(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The lines of a page that gave way to another at once, as when much is written between two repaints."""
    top, bottom = _changed(before, after)
    old, new = before[top:bottom], after[top:bottom]
    stay = set(new)
    lost = [bool(a) and a not in stay and not b.startswith(a) for a, b in zip(old, new, strict=True)]
    if sum(lost) < LEAST_LOST or sum(lost) < LOST_ENOUGH * sum(map(bool, old)):
        return []
    return [line for line, is_lost in zip(old, lost, strict=True) if is_lost or not line]


def _changed(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """Between which rows two pictures differ."""
    rows = [row for row, (old, new) in enumerate(zip(before, after, strict=False)) if old != new]
    return (rows[0], rows[-1] + 1) if len(rows) > LEAST_MATCHES else (0, 0)


def without_side(lines: list[str]) -> list[str]:
    """Leave out a column at the right that stands beside the text and does not move with it."""
    begins = Counter(gap.end() for line in lines for gap in SIDE_COLUMN.finditer(line) if gap.end() >= SIDE_BEGINS)
    column, rows = begins.most_common(1)[0] if begins else (0, 0)
    return [line[:column].rstrip() for line in lines] if rows >= SIDE_ROWS else lines


def tidy(lines: Sequence[str]) -> list[str]:
    """At most one empty line in a row."""
    return [line for line, before in zip(lines, ["", *lines], strict=False) if line or before]
