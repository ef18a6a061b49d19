"""What of a running program's output a follower has not been shown yet."""

import re
from collections import Counter, deque

from shared.terminal.reading import Reading

REMEMBERED = 5000
SPINS = re.compile(r"^\s*[·•*✢✳✶✻✽◐◑◒◓⬝■\u2800-\u28ff]+\s.*(?:…|\besc\b|\b\d+s\b)")
CHANGES = re.compile(r"\d+|^\W+")


class Fresh:
    """Looked at every half second or so, it gives each line once, as soon as two looks find it unchanged.

    The next state of a spinner, by its look and by the row it stands in, is not given; nor are frames and rules, which
    hold no letters.
    """

    def __init__(self) -> None:
        self._ahead: Counter[str] = Counter()
        """What was given while it stood on the screen, and is still to go by."""
        self._given: deque[str] = deque(maxlen=REMEMBERED)
        self._last: list[str] = []
        self._rewrites = 0

    def begin(self, reading: Reading) -> list[str]:
        """Give everything that there is."""
        gone, screen = reading.take(), reading.now()
        self._rewrites = reading.rewrites
        self._given.extend(filter(None, [*gone, *screen]))
        self._ahead.update(filter(None, screen))
        self._last = screen
        return [*gone, *screen]

    def look(self, reading: Reading) -> list[str]:
        gone, screen = reading.take(), reading.now()
        if reading.rewrites != self._rewrites:
            self._rewrites = reading.rewrites
            self._ahead = Counter(self._given)  # all of it goes by again
        fresh = [line for line in gone if self._is_new(line)]
        fresh += self._settled(screen)
        self._last = screen
        self._given.extend(filter(None, fresh))
        if len(self._ahead) > REMEMBERED:
            self._ahead = Counter(dict(list((+self._ahead).items())[-REMEMBERED // 2 :]))
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
