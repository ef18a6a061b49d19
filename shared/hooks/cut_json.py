"""An object in JSON whose end is missing: the hook program keeps the beginning of what is too long. Pure."""

import json
import re
from typing import Any

_BETWEEN = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder()


def whole_members(text: str) -> dict[str, Any]:
    """The members that are there whole; none, if it was never an object."""
    found: dict[str, Any] = {}
    place = _behind(text, 0, "{")
    while place is not None:
        try:
            key, end = _DECODER.raw_decode(text, place)
            colon = _behind(text, end, ":")
            if colon is None or not isinstance(key, str):
                break
            value, end = _DECODER.raw_decode(text, colon)
        except (ValueError, RecursionError):
            break
        place = _behind(text, end, ",")
        if place is not None:  # else it may go on: of 123 the first two digits are a number too
            found[key] = value
    return found


def _behind(text: str, place: int, mark: str) -> int | None:
    """Where the next value begins, if this mark comes before it."""
    at = _skip(text, place)
    return _skip(text, at + 1) if text.startswith(mark, at) else None


def _skip(text: str, place: int) -> int:
    found = _BETWEEN.match(text, place)
    return found.end() if found else place
