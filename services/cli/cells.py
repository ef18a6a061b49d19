"""Texts measured in the cells of a terminal: a wide letter takes two, an accent none, a colour none."""

import re
import unicodedata
from functools import lru_cache

COLOUR = re.compile(r"\x1b\[\d+m")
ELLIPSIS, PLAIN_AGAIN = "…", "\x1b[0m"


def width(text: str) -> int:
    """How many columns a text takes."""
    bare = COLOUR.sub("", text)
    return len(bare) if bare.isascii() else sum(map(_cells, bare))


def cut(text: str, columns: int) -> str:
    """The text if it fits, else its beginning with an ellipsis. What was coloured ends coloured no more."""
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
