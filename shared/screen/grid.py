"""A captured screen as rows of text with styles, to be drawn again elsewhere. Pure.

A colour is a number from 0 to 15, the terminal's own colours, or `#rrggbb`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from shared.screen.styles import CUBE, columns, pieces, words

Colour = int | str
Style = tuple[tuple[str, Colour | bool], ...]
"""What differs from plain text, in a fixed order: `f` and `b` are colours, the rest is true."""

SWITCHES: Mapping[str, tuple[tuple[str, bool], ...]] = {
    "1": (("bold", True),),
    "2": (("dim", True),),
    "3": (("italic", True),),
    "4": (("underline", True),),
    "7": (("reverse", True),),
    "9": (("strike", True),),
    "22": (("bold", False), ("dim", False)),
    "23": (("italic", False),),
    "24": (("underline", False),),
    "27": (("reverse", False),),
    "29": (("strike", False),),
}
LONGEST_ROW = 1000


@dataclass(frozen=True)
class ScreenGrid:
    """Rows of pieces: a text and the number of its style."""

    styles: list[dict[str, Colour | bool]]
    rows: list[list[tuple[str, int]]]

    @property
    def width(self) -> int:
        """In columns of the terminal: some characters take two."""
        return max((sum(columns(text) for text, _ in row) for row in self.rows), default=0)


def grid(screen: str) -> ScreenGrid:
    """The rows of a styled screen."""
    texts, codes = pieces(screen)
    numbers: dict[Style, int] = {(): 0}
    rows: list[list[tuple[str, int]]] = [[]]
    style: Style = ()
    for text, code in zip(texts, [None, *codes], strict=True):
        if code is not None:
            style = _after(style, code)
        first, *others = text.split("\n")
        _add(rows[-1], first, numbers, style)
        for line in others:
            rows.append([])
            _add(rows[-1], line, numbers, style)
    return ScreenGrid([dict(each) for each in numbers], rows)


def _add(row: list[tuple[str, int]], text: str, numbers: dict[Style, int], style: Style) -> None:
    room = LONGEST_ROW - sum(len(known) for known, _ in row)
    if text and room > 0:
        row.append((text[:room], numbers.setdefault(style, len(numbers))))


@lru_cache(maxsize=4096)
def _after(style: Style, codes: str) -> Style:
    """The style after an escape sequence."""
    now: dict[str, Colour | bool] = dict(style)
    for word, numbers in words(codes):
        if word in ("", "0"):
            now.clear()
        elif word == "4" and numbers == [0]:  # `4:0`: the kind of underline that is none
            now.pop("underline", None)
        elif word in SWITCHES:
            now.update(SWITCHES[word])
        elif word in ("38", "48"):
            now["f" if word == "38" else "b"] = _of_numbers(numbers)
        elif word in ("39", "49"):
            now.pop("f" if word == "39" else "b", None)
        elif word.isdigit():
            _set_basic(now, int(word))
    return tuple(sorted((name, value) for name, value in now.items() if value is not False))


def _set_basic(now: dict[str, Colour | bool], code: int) -> None:
    for start, place, bright in ((30, "f", 0), (40, "b", 0), (90, "f", 8), (100, "b", 8)):
        if start <= code <= start + 7:
            now[place] = code - start + bright


def _of_numbers(numbers: list[int]) -> Colour | bool:
    """The colour of an extended code; False if it is none."""
    match numbers:
        case [5, number] if 0 <= number < 16:
            return number
        case [5, number] if number < 232:
            red, rest = divmod(number - 16, 36)
            green, blue = divmod(rest, 6)
            return _hex(CUBE[red], CUBE[green], CUBE[blue])
        case [5, number] if number < 256:
            return _hex(*[8 + 10 * (number - 232)] * 3)
        case [2, *_, red, green, blue]:
            return _hex(red, green, blue)
    return False


def _hex(*levels: int) -> str:
    return "#" + "".join(f"{min(max(level, 0), 255):02x}" for level in levels)
