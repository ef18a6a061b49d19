"""The styles of a screen that tmux captured with escape sequences: faint characters, colours, backgrounds.

A screen is split into its plain text and a second text of the same length with one mark per character, so that an
offset means the same in both. Text that an agent only quotes has the background of its surroundings.
"""

import colorsys
import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from shared.fleet.screen_rules import Style


@lru_cache(maxsize=4096)
def width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def columns(text: str) -> int:
    return len(text) if text.isascii() else sum(map(width, text))


def fitting(row: str, room: int) -> int:
    """How many characters of a row fit into so many columns."""
    if row.isascii():
        return room
    for place, character in enumerate(row):
        room -= width(character)
        if room < 0:
            return place
    return len(row)


SGR = re.compile(r"\x1b\[([0-9;:]*)m")
OTHER_ESCAPE = re.compile(
    r"\x1b(?!\[[0-9;:]*m)(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-?]*[ -/]*[@-~]|[()*+][A-Z0-9]|.)|[\x0e\x0f]",
    re.DOTALL,
)
OTHER = re.compile(r"[\x0e\x0f\x1b]")
FAINT = "\x00"
"""The mark of a faint character."""
PLAIN = "."
"""The mark of a character without colour: white, black, or the terminal's default."""
LETTERS = {each: str(place) for place, each in enumerate(Style)}
BASIC = (None, Style.RED, Style.GREEN, Style.YELLOW, Style.BLUE, Style.PURPLE, Style.BLUE, None)
"""The eight basic colours; cyan counts as blue."""
HUES = ((20, Style.RED), (70, Style.YELLOW), (165, Style.GREEN), (260, Style.BLUE), (325, Style.PURPLE))
"""The upper limit of each hue in degrees; above the last it is red again."""
COLOURED, DARK, LIGHT = 0.2, 0.2, 0.8
"""The saturation from which on a colour counts, and the values between which the rest is grey."""
CUBE = (0, 95, 135, 175, 215, 255)
"""The levels of the 256 colours."""


def unstyle(screen: str) -> tuple[str, str]:
    """The plain text of a screen, and the same with every faint character replaced by a mark."""
    found = pieces(screen)
    return plain(found), marked(found)


Pieces = tuple[list[str], list[str]]
"""The texts of a screen, and the escape sequences between them."""


def plain(found: Pieces) -> str:
    """The plain text."""
    return _trim("".join(found[0]))


def marked(found: Pieces) -> str:
    """The same with every faint character replaced by a mark."""
    texts, codes = found
    styles = [(False, False)]
    for each in codes:
        styles.append(_style(each, *styles[-1]))
    with_marks = [
        re.sub(r"\S", FAINT, text) if text and _is_faint(texts, styles, at) else text for at, text in enumerate(texts)
    ]
    return _trim("".join(with_marks))


def colours(screen: str) -> str | None:
    """The colour mark of each character of the unstyled screen; None if it has no colours at all."""
    texts, codes = pieces(screen)
    found = [None, *codes]
    letters = [PLAIN]
    for each in codes:
        letters.append(_letter(each, letters[-1]))
    if not any(_sets_colour(each) for each in found if each):
        return None
    return _trim("".join([re.sub(r"\S", letter, text) for letter, text in zip(letters, texts, strict=True)]))


def pieces(screen: str) -> Pieces:
    screen = screen.replace("\xa0", " ")
    found = SGR.split(screen)
    if OTHER.search("".join(found[::2])):  # rare, and takes as long again to find
        found = SGR.split(OTHER_ESCAPE.sub("", screen))
    return found[::2], found[1::2]


def _trim(text: str) -> str:
    return "\n".join([line.rstrip() for line in text.split("\n")]).rstrip("\n")


# --- faint ---


def _is_faint(texts: list[str], styles: list[tuple[bool, bool]], at: int) -> bool:
    """Whether a piece is faint. The cursor, a reversed cell, counts as what follows it: it may be on a hint."""
    faint, reverse = styles[at]
    if reverse and len(texts[at]) == 1:
        return next((styles[after][0] for after in range(at + 1, len(texts)) if texts[after]), False)
    return faint


@lru_cache(maxsize=4096)
def _style(codes: str, faint: bool, reverse: bool) -> tuple[bool, bool]:
    for word, _ in words(codes):
        match word:
            case "2":
                faint = True
            case "7":
                reverse = True
            case "22":
                faint = False
            case "27":
                reverse = False
            case "" | "0":
                faint = reverse = False
    return faint, reverse


# --- colours ---


@lru_cache(maxsize=4096)
def _letter(codes: str, before: str) -> str:
    letter = before
    for word, numbers in words(codes):
        if word in ("", "0", "39"):
            letter = PLAIN
        elif word == "38":
            letter = _named(_of_numbers(numbers))
        elif word == "90":
            letter = _named(Style.GREY)
        elif word.isdigit() and (30 <= int(word) <= 37 or 91 <= int(word) <= 97):
            letter = _named(BASIC[int(word) % 10])
    return letter


@lru_cache(maxsize=4096)
def _sets_colour(codes: str) -> bool:
    return any(word[:1] in ("3", "9") and len(word) == 2 and word != "39" for word, _ in words(codes))


def _named(colour: Style | None) -> str:
    return PLAIN if colour is None else LETTERS[colour]


def words(codes: str) -> Iterator[tuple[str, list[int]]]:
    """Each code of an escape sequence, and for a colour its numbers: `5, n` or `2, r, g, b`."""
    words = iter(codes.split(";"))
    for word in words:
        name, *inside = word.split(":")
        if inside:  # a colour, or a kind of underline
            given = [each for each in inside if each]
        elif name in ("38", "48", "58"):
            kind = next(words, "")
            given = [kind, *(next(words, "") for _ in range(1 if kind == "5" else 3))]
        else:
            given = []
        yield name if name in ("38", "48", "58") or not inside else "4", [int(each or 0) for each in given]


def _of_numbers(numbers: list[int]) -> Style | None:
    match numbers:
        case [5, number]:
            return _of_256(number)
        case [2, *_, red, green, blue]:
            return _of_rgb(red, green, blue)
    return None


def _of_256(number: int) -> Style | None:
    if number < 16:
        return Style.GREY if number == 8 else BASIC[number % 8]
    if number >= 232:
        return _of_rgb(*[8 + 10 * (number - 232)] * 3)
    red, rest = divmod(number - 16, 36)
    green, blue = divmod(rest, 6)
    return _of_rgb(CUBE[red % 6], CUBE[green], CUBE[blue])


def _of_rgb(red: int, green: int, blue: int) -> Style | None:
    hue, saturation, value = colorsys.rgb_to_hsv(red / 255, green / 255, blue / 255)
    if saturation < COLOURED or value < DARK:
        return Style.GREY if DARK <= value < LIGHT else None
    return next((colour for limit, colour in HUES if hue * 360 <= limit), Style.RED)


class Backgrounds:
    """The backgrounds of a screen: a letter for each column of each row."""

    def __init__(self, screen: str) -> None:
        self._rows = _rows(screen)

    def is_panel(self, row: int, start: int, end: int) -> bool:
        """Whether these columns have one background in the rows above, at and below, different from the row's first."""
        around = self._rows[row - 1 : row + 2] if row else []
        own = {each for line in around for each in line[start:end]}
        if len(around) != 3 or len(own) != 1 or any(len(line) < end for line in around):
            return False
        return not own & set(self._rows[row][:1])

    def at(self, row: int, start: int, end: int) -> set[str]:
        return set(self._rows[row][start:end]) if row < len(self._rows) else set()


def column(plain: str, place: int) -> int:
    """The column of an offset in its row."""
    return columns(plain[plain.rfind("\n", 0, place) + 1 : place])


def _rows(screen: str) -> list[str]:
    texts, codes = pieces(screen)
    state, letters = ("", False), {("", False): "a"}
    drawn = []
    for text, code in zip(texts, [None, *codes], strict=True):
        state = state if code is None else _after(code, *state)
        letter = letters.setdefault(state, chr(ord("a") + len(letters)))
        if text.isascii():
            drawn += ["\n" if each == "\n" else letter for each in text]
        else:
            drawn += ["\n" if each == "\n" else letter * width(each) for each in text]
    return "".join(drawn).split("\n")


@lru_cache(maxsize=4096)
def _after(codes: str, background: str, reverse: bool) -> tuple[str, bool]:
    for word, numbers in words(codes):
        if word in ("", "0"):
            background, reverse = "", False
        elif word == "48":
            background = str(numbers)
        elif word == "49":
            background = ""
        elif word in ("7", "27"):
            reverse = word == "7"
        elif word.isdigit() and (40 <= int(word) <= 47 or 100 <= int(word) <= 107):
            background = word
    return background, reverse
