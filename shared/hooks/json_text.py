"""JSON as a person wrote it, with the place of everything in it: comments and commas too many are allowed. Pure."""

import json
import re
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

_BETWEEN = re.compile(r"(?:[\s\ufeff]|//[^\n]*|/\*[\s\S]*?\*/)*")
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


class BadJson(ValueError):
    """Not JSON; the message names the line."""


@dataclass(frozen=True)
class Node:
    """A value, from its first character up to the one behind its last."""

    start: int
    end: int
    value: Any = None
    """Of a string, a number, a truth or null."""
    members: "tuple[Member, ...] | None" = None
    """Of an object."""
    items: "tuple[Node, ...] | None" = None
    """Of an array."""

    def member(self, key: str) -> "Member | None":
        """The one that counts, if there are several."""
        return next((each for each in reversed(self.members or ()) if each.key == key), None)


@dataclass(frozen=True)
class Member:
    key: str
    start: int
    """Where its key begins."""
    node: Node


def parse(text: str) -> Node:
    """The one value that a text holds. Raises BadJson."""
    try:
        node = _value(text, _skip(text, 0))
        if (rest := _skip(text, node.end)) < len(text):
            raise _bad(text, rest, "something follows the end")
    except RecursionError:
        raise BadJson("it is nested too deep") from None
    return node


def line_of(text: str, place: int) -> int:
    return text.count("\n", 0, place) + 1


def _skip(text: str, place: int) -> int:
    found = _BETWEEN.match(text, place)
    return found.end() if found else place


def _value(text: str, place: int) -> Node:
    match text[place : place + 1]:
        case "{":
            return _object(text, place)
        case "[":
            return _array(text, place)
        case '"':
            value, end = _string(text, place)
            return Node(place, end, value)
    if found := _SCALAR.match(text, place):
        return Node(place, found.end(), json.loads(found[0]))
    raise _bad(text, place, "a value was expected")


def _object(text: str, start: int) -> Node:
    members: list[Member] = []
    place = _skip(text, start + 1)
    while text[place : place + 1] != "}":
        if text[place : place + 1] != '"':
            raise _bad(text, place, "a key in double quotes or } was expected")
        key, end = _string(text, place)
        colon = _skip(text, end)
        if text[colon : colon + 1] != ":":
            raise _bad(text, colon, "a : was expected")
        node = _value(text, _skip(text, colon + 1))
        members.append(Member(key, place, node))
        place = _next(text, node.end, "}")
    return Node(start, place + 1, members=tuple(members))


def _array(text: str, start: int) -> Node:
    items: list[Node] = []
    place = _skip(text, start + 1)
    while text[place : place + 1] != "]":
        items.append(_value(text, place))
        place = _next(text, items[-1].end, "]")
    return Node(start, place + 1, items=tuple(items))


def _next(text: str, end: int, closing: str) -> int:
    """Where the next member is, or the end of all."""
    place = _skip(text, end)
    match text[place : place + 1]:
        case ",":
            return _skip(text, place + 1)
        case each if each == closing:
            return place
    raise _bad(text, place, f"a comma or {closing} was expected")


def _string(text: str, place: int) -> tuple[str, int]:
    try:
        value, end = scanstring(text, place + 1, True)
    except json.JSONDecodeError as error:
        raise _bad(text, error.pos, error.msg.lower()) from None
    return str(value), int(end)


def _bad(text: str, place: int, what: str) -> BadJson:
    return BadJson(f"line {line_of(text, place)}: {what}")
