"""How many columns of a terminal a text takes: wide characters take two, marks none."""

import unicodedata
from functools import lru_cache


@lru_cache(maxsize=4096)
def width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def columns(text: str) -> int:
    return len(text) if text.isascii() else sum(map(width, text))


def fitting(row: str, room: int) -> int:
    """How many characters of a row are within so many columns."""
    if row.isascii():
        return room
    for place, character in enumerate(row):
        room -= width(character)
        if room < 0:
            return place
    return len(row)
