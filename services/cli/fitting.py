"""Tables that fit a terminal: long cells give way first, then whole columns, the least telling one first. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from services.cli.cells import cut, pad, width

GAP = "  "


@dataclass(frozen=True)
class Column:
    title: str
    least: int = 0
    """It may be cut to so many cells; 0: not at all."""
    worth: int | None = None
    """Which of the columns goes first where there is no room: the one of least worth. None: it stays."""
    when_empty: bool = True
    """Whether it is there when no row has anything in it."""


Row = Sequence[str]


def fitted(columns: Sequence[Column], rows: Sequence[Row], room: int | None = None) -> list[str]:
    """The table's lines, its head first, each of them within the room (None: as long as it takes)."""
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
    """How wide each column is; None where they do not fit. The widest that may give way does so."""
    sizes = list(natural)
    excess = sum(sizes) + len(GAP) * (len(sizes) - 1) - room if room is not None else 0
    while excess > 0:
        able = [place for place, each in enumerate(columns) if each.least and sizes[place] > each.least]
        if not able:
            return None
        sizes[max(able, key=lambda place: sizes[place])] -= 1
        excess -= 1
    return sizes
