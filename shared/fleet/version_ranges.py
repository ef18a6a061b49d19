"""Ranges of program versions: `>=2.1.300`, or `>=2.1, <2.2`. Versions are dotted numbers. Pure."""

import operator
import re
from collections.abc import Callable
from functools import lru_cache

Number = tuple[int, ...]
Compare = Callable[[Number, Number], bool]

COMPARES: dict[str, Compare] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
CONDITION = re.compile(r"\s*(<=|>=|==|!=|<|>)\s*(\d{1,9}(?:\.\d{1,9}){0,5})\s*")
VERSION = re.compile(r"\d{1,9}(?:\.\d{1,9}){0,5}")


class BadRange(ValueError):
    def __init__(self, part: str) -> None:
        shown = part.strip()[:40] or "nothing"
        super().__init__(
            f"not a range of versions: {shown!r}; write conditions such as >=2.1.300, separated by commas; "
            f"allowed are: {', '.join(COMPARES)}"
        )


def matches(wanted: str, version: str | None) -> bool:
    """Whether a version is in a range. An empty range has all versions; an unknown version is in all ranges.

    The first dotted number of a version counts: `2.1.325 (Claude Code)` is 2.1.325. Raises BadRange.
    """
    conditions = parse(wanted)
    found = VERSION.search(version or "")
    if found is None:
        return True
    number = _number(found[0])
    return all(compare(*_as_long(number, other)) for compare, other in conditions)


@lru_cache(maxsize=256)
def parse(wanted: str) -> tuple[tuple[Compare, Number], ...]:
    """The conditions of a range. Raises BadRange."""
    if not wanted.strip():
        return ()
    found = []
    for part in wanted.split(","):
        condition = CONDITION.fullmatch(part)
        if condition is None:
            raise BadRange(part)
        found.append((COMPARES[condition[1]], _number(condition[2])))
    return tuple(found)


def _number(text: str) -> Number:
    return tuple(map(int, text.split(".")))


def _as_long(one: Number, other: Number) -> tuple[Number, Number]:
    """2.1 is 2.1.0."""
    length = max(len(one), len(other))
    return one + (0,) * (length - len(one)), other + (0,) * (length - len(other))
