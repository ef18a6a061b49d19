"""The styles of a captured screen: what is faint, and what colour it has.

A screen is text as tmux captures it with styles. What is read is the text without them, and beside it a second text of
the same length that tells of each character how it looks: a place in one is the same place in the other.
"""

import colorsys
import re
from collections.abc import Iterator
from functools import lru_cache

from shared.fleet.signs import Style

SGR = re.compile(r"\x1b\[([0-9;:]*)m")
OTHER_ESCAPE = re.compile(
    r"\x1b(?!\[[0-9;:]*m)(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-?]*[ -/]*[@-~]|[()*+][A-Z0-9]|.)|[\x0e\x0f]",
    re.DOTALL,
)
FAINT = "\x00"
"""Stands for a faint character while a screen is read."""
PLAIN = "."
"""Stands for a character without a colour: white, black, or as the terminal has it."""
LETTERS = {each: str(place) for place, each in enumerate(Style)}
BASIC = (None, Style.RED, Style.GREEN, Style.YELLOW, Style.BLUE, Style.PURPLE, Style.BLUE, None)
"""The eight of every terminal; cyan is a blue."""
HUES = ((20, Style.RED), (70, Style.YELLOW), (165, Style.GREEN), (260, Style.BLUE), (325, Style.PURPLE))
"""Up to how many degrees a hue has which name; beyond them it is red again."""
COLOURED, DARK, LIGHT = 0.2, 0.2, 0.8
"""A saturation from which on something is coloured, and the values between which the rest is grey."""
CUBE = (0, 95, 135, 175, 215, 255)
"""The steps of the 256 colours."""


def unstyle(screen: str) -> tuple[str, str]:
    """A screen without styles, twice: as it reads, and with every faint character replaced by a mark."""
    texts, codes = pieces(screen)
    styles = [(False, False)]
    for each in codes:
        styles.append(_style(each, *styles[-1]))
    marked = [
        re.sub(r"\S", FAINT, text) if text and _is_faint(texts, styles, at) else text for at, text in enumerate(texts)
    ]
    return _trim("".join(texts)), _trim("".join(marked))


def colours(screen: str) -> str | None:
    """A letter for the colour of each character of the unstyled screen; None when it has no colours at all."""
    texts, codes = pieces(screen)
    found = [None, *codes]
    letters = [PLAIN]
    for each in codes:
        letters.append(_letter(each, letters[-1]))
    if not any(_sets_colour(each) for each in found if each):
        return None
    return _trim("".join([re.sub(r"\S", letter, text) for letter, text in zip(letters, texts, strict=True)]))


def pieces(screen: str) -> tuple[list[str], list[str]]:
    pieces = SGR.split(OTHER_ESCAPE.sub("", screen.replace("\xa0", " ")))
    return pieces[::2], pieces[1::2]


def _trim(text: str) -> str:
    return "\n".join([line.rstrip() for line in text.split("\n")]).rstrip("\n")


# --- faint ---


def _is_faint(texts: list[str], styles: list[tuple[bool, bool]], at: int) -> bool:
    """Whether a piece is; the cursor, a reversed cell, is what follows it: it may stand on a hint."""
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
    """Each word of a style; with it, where it is a colour, that colour's numbers: `5, n` or `2, r, g, b`."""
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
