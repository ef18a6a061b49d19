"""From repaints to lines: what scrolled away, what a program shows now, and which lines were not printed yet.

A line is final when it scrolled off the main screen, or moved up and out of a program that scrolls by itself, as Codex
and opencode do. What changes in place (spinners, timers, input boxes) is not.
"""

import re
from collections import Counter, deque
from collections.abc import Sequence

from services.cli.terminal.emulator import TerminalScreen

LEAST_MATCHES, LEAST_MATCHING_SHARE = 2, 0.7
"""So many lines, and this share of them, must be found again further up for a screen to have scrolled."""
LEAST_LOST_LINES, LEAST_LOST_SHARE = 8, 0.5
"""So many lines, and this share of them, must be gone for a page to have been replaced."""
EARLY_LINES_AT_MOST = 200
SIDE_GAP = re.compile(r"(?:^|\S) {6,}(?=\S)")
SIDE_COLUMN_AT_LEAST, SIDE_ROWS_AT_LEAST = 100, 3
"""Text that begins so far to the right, behind a gap, in so many rows is a column beside the text."""


class LineReading:
    """Takes what a program wrote, from the beginning or from anywhere, and gives the lines."""

    def __init__(self, rows: int = 50) -> None:
        self._screen = TerminalScreen(rows)
        self._screen.on_frame = self._compare
        self._screen.on_forget = self._forget
        self._gone: list[str] = []
        self._frame: list[str] | None = None
        self._returned: list[str] = []
        """Lines that scrolled back in, and will go by again."""
        self._early: dict[str, None] = {}
        """Lines of replaced pages that were taken at once, and may go by again."""
        self.rewrites = 0
        """How often the program began to write all of its lines again."""

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
            self._returned[:0] = came  # a person scrolled back, or a dialog closed
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
        self._early = dict(list(self._early.items())[-EARLY_LINES_AT_MOST:])


def moved_out(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The lines that scrolled out at the top between two pictures of a screen. Headers and footers may stay."""
    top, bottom = _changed(before, after)
    old, new = before[top:bottom], after[top:bottom]
    for count in range(1, len(old) - LEAST_MATCHES + 1):
        pairs = [(a, b) for a, b in zip(old[count:], new, strict=False) if a]
        same = sum(a == b for a, b in pairs)
        if same >= LEAST_MATCHES and same >= LEAST_MATCHING_SHARE * len(pairs):
            return list(old[:count])
    return []


def turned_over(before: Sequence[str], after: Sequence[str]) -> list[str]:
    """The lines of a page that was replaced at once, as when much is written between two repaints."""
    top, bottom = _changed(before, after)
    old, new = before[top:bottom], after[top:bottom]
    stay = set(new)
    lost = [bool(a) and a not in stay and not b.startswith(a) for a, b in zip(old, new, strict=True)]
    if sum(lost) < LEAST_LOST_LINES or sum(lost) < LEAST_LOST_SHARE * sum(map(bool, old)):
        return []
    return [line for line, is_lost in zip(old, lost, strict=True) if is_lost or not line]


def _changed(before: Sequence[str], after: Sequence[str]) -> tuple[int, int]:
    """Between which rows two pictures differ."""
    rows = [row for row, (old, new) in enumerate(zip(before, after, strict=False)) if old != new]
    return (rows[0], rows[-1] + 1) if len(rows) > LEAST_MATCHES else (0, 0)


def without_side(lines: list[str]) -> list[str]:
    """The lines without a column at the right that does not scroll with the text."""
    gaps = (gap.end() for line in lines for gap in SIDE_GAP.finditer(line))
    begins = Counter(column for column in gaps if column >= SIDE_COLUMN_AT_LEAST)
    column, rows = begins.most_common(1)[0] if begins else (0, 0)
    return [line[:column].rstrip() for line in lines] if rows >= SIDE_ROWS_AT_LEAST else lines


def tidy(lines: Sequence[str]) -> list[str]:
    """At most one empty line in a row."""
    return [line for line, before in zip(lines, ["", *lines], strict=False) if line or before]


GIVEN_LINES_AT_MOST = 5000
SPINS = re.compile(r"^\s*[·•*✢✳✶✻✽◐◑◒◓⬝■\u2800-\u28ff]+\s.*(?:…|\besc\b|\b\d+s\b)")
CHANGES = re.compile(r"\d+|^\W+")


class UnseenLines:
    """Gives each line once, when two looks in a row find it unchanged. A look comes every half second or so.

    Left out are the next states of a spinner (it looks alike and is in the same row), and lines without letters.
    """

    def __init__(self) -> None:
        self._ahead: Counter[str] = Counter()
        """Lines that were given while they were on the screen, and have not scrolled away yet."""
        self._given: deque[str] = deque(maxlen=GIVEN_LINES_AT_MOST)
        self._last: list[str] = []
        self._rewrites = 0

    def begin(self, reading: LineReading) -> list[str]:
        """All lines so far."""
        gone, screen = reading.take(), reading.now()
        self._rewrites = reading.rewrites
        self._given.extend(filter(None, [*gone, *screen]))
        self._ahead.update(filter(None, screen))
        self._last = screen
        return [*gone, *screen]

    def look(self, reading: LineReading) -> list[str]:
        """The lines that are new since the last look."""
        gone, screen = reading.take(), reading.now()
        if reading.rewrites != self._rewrites:
            self._rewrites = reading.rewrites
            self._ahead = Counter(self._given)  # all of them scroll by again
        fresh = [line for line in gone if self._is_new(line)]
        fresh += self._settled(screen)
        self._last = screen
        self._given.extend(filter(None, fresh))
        if len(self._ahead) > GIVEN_LINES_AT_MOST:
            self._ahead = Counter(dict(list((+self._ahead).items())[-GIVEN_LINES_AT_MOST // 2 :]))
        return fresh

    def _is_new(self, line: str) -> bool:
        if self._ahead[line] > 0:
            self._ahead[line] -= 1
            return False
        return not line or _has_letters(line)

    def _settled(self, screen: list[str]) -> list[str]:
        before = set(self._last)
        seen: Counter[str] = Counter()
        fresh: list[str] = []
        gap = False
        for row, line in enumerate(screen):
            gap = gap or not line
            seen[line] += 1
            if not _has_letters(line) or seen[line] <= self._ahead[line]:
                continue
            if row < len(self._last) and self._ahead[self._last[row]] > 0 and _is_next(self._last[row], line):
                self._ahead[line] += 1
            elif line in before:
                self._ahead[line] += 1
                fresh += ["", line] if gap else [line]
                gap = False
        return fresh


def _is_next(before: str, after: str) -> bool:
    return bool(SPINS.match(before) and SPINS.match(after)) and CHANGES.sub("", before) == CHANGES.sub("", after)


def _has_letters(line: str) -> bool:
    return any(letter.isalnum() for letter in line)
