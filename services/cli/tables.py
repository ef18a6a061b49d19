"""Tables that fit a terminal: long cells are cut first, then the least useful columns go. Pure.

Width is counted in terminal cells: a wide letter takes two, an accent none, a colour none.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

COLOUR = re.compile(r"\x1b\[\d+m")
ELLIPSIS, PLAIN_AGAIN = "…", "\x1b[0m"


def width(text: str) -> int:
    """How many columns a text takes."""
    bare = COLOUR.sub("", text)
    return len(bare) if bare.isascii() else sum(map(_cells, bare))


def cut(text: str, columns: int) -> str:
    """The text if it fits, else its beginning with an ellipsis. A colour does not reach beyond it."""
    if width(text) <= columns:
        return text
    if columns <= 0:
        return ""
    kept, left = [], columns - 1
    for piece in re.split(f"({COLOUR.pattern})", text):
        if COLOUR.fullmatch(piece):
            kept.append(piece)
            continue
        for letter in piece:
            left -= _cells(letter)
            if left < 0:
                return "".join(kept) + ELLIPSIS + (PLAIN_AGAIN if COLOUR.search(text) else "")
            kept.append(letter)
    return "".join(kept)


def pad(text: str, columns: int) -> str:
    return text + " " * (columns - width(text))


@lru_cache(maxsize=4096)
def _cells(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Mn", "Me", "Cf"):
        return 0
    return 1 + (unicodedata.east_asian_width(letter) in "WF")


GAP = "  "


@dataclass(frozen=True)
class Column:
    title: str
    least: int = 0
    """How many cells are left of it at least when it is cut; 0: it is never cut."""
    worth: int | None = None
    """Where there is no room, the column of the least worth is left out first. None: it stays."""
    when_empty: bool = True
    """Whether it is shown when no row has anything in it."""


Row = Sequence[str]


def table(head: Row, rows: Sequence[Row]) -> str:
    """A table of columns that are never cut."""
    return "\n".join(fitted([Column(title) for title in head], rows))


def fitted(columns: Sequence[Column], rows: Sequence[Row], room: int | None = None) -> list[str]:
    """The table's lines, its head first, each within so many cells (None: as long as it takes)."""
    shown = [place for place, each in enumerate(columns) if each.when_empty or any(row[place] for row in rows)]
    natural = [max(map(width, (each.title, *(row[place] for row in rows)))) for place, each in enumerate(columns)]
    sizes = _sizes([columns[place] for place in shown], [natural[place] for place in shown], room)
    while sizes is None:
        dispensable = [place for place in shown if columns[place].worth is not None]
        if not dispensable:
            sizes = [natural[place] for place in shown]
            break
        shown.remove(min(dispensable, key=lambda place: columns[place].worth or 0))
        sizes = _sizes([columns[place] for place in shown], [natural[place] for place in shown], room)
    lines = []
    for row in ([each.title for each in columns], *rows):
        cells = [pad(cut(row[place], size), size) for place, size in zip(shown, sizes, strict=True)]
        line = GAP.join(cells).rstrip()
        lines.append(line if room is None else cut(line, room))
    return lines


def _sizes(columns: Sequence[Column], natural: Sequence[int], room: int | None) -> list[int] | None:
    """How wide each column is; None if they do not fit. The widest one that may be cut is cut first."""
    sizes = list(natural)
    excess = sum(sizes) + len(GAP) * (len(sizes) - 1) - room if room is not None else 0
    while excess > 0:
        able = [place for place, each in enumerate(columns) if each.least and sizes[place] > each.least]
        if not able:
            return None
        sizes[max(able, key=lambda place: sizes[place])] -= 1
        excess -= 1
    return sizes
