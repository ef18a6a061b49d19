"""Adds hooks to the text of a user's settings and removes them again. Pure.

JSON is read with the position of every value; comments and trailing commas are allowed. Additions can be recognised by
their format: an added object or array has a line break after its opening bracket, a value in an existing empty one has
none before it, and a document added to a blank file is followed by a space. So removal restores the text byte for byte,
unless somebody reformatted it; then everything else in it stays.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from json.decoder import scanstring  # type: ignore[attr-defined]
from typing import Any

from shared.errors import MusterError

_BETWEEN = re.compile(r"(?:[\s\ufeff]|//[^\n]*|/\*[\s\S]*?\*/)*")
_SCALAR = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


class BadJson(ValueError):
    """Not JSON; the message names the line."""


@dataclass(frozen=True)
class JsonNode:
    """A value, and its span in the text."""

    start: int
    end: int
    value: Any = None
    """The value of a string, number, boolean or null."""
    members: "tuple[JsonMember, ...] | None" = None
    """The members of an object."""
    items: "tuple[JsonNode, ...] | None" = None
    """The items of an array."""

    def member(self, key: str) -> "JsonMember | None":
        """The member with this key; the last one counts."""
        return next((each for each in reversed(self.members or ()) if each.key == key), None)


@dataclass(frozen=True)
class JsonMember:
    key: str
    start: int
    """The start of its key."""
    node: JsonNode


def parse(text: str) -> JsonNode:
    """The value in a text. Raises BadJson."""
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


def _value(text: str, place: int) -> JsonNode:
    match text[place : place + 1]:
        case "{":
            return _object(text, place)
        case "[":
            return _array(text, place)
        case '"':
            value, end = _string(text, place)
            return JsonNode(place, end, value)
    if found := _SCALAR.match(text, place):
        return JsonNode(place, found.end(), json.loads(found[0]))
    raise _bad(text, place, "a value was expected")


def _object(text: str, start: int) -> JsonNode:
    members: list[JsonMember] = []
    place = _skip(text, start + 1)
    while text[place : place + 1] != "}":
        if text[place : place + 1] != '"':
            raise _bad(text, place, "a key in double quotes or } was expected")
        key, end = _string(text, place)
        colon = _skip(text, end)
        if text[colon : colon + 1] != ":":
            raise _bad(text, colon, "a : was expected")
        node = _value(text, _skip(text, colon + 1))
        members.append(JsonMember(key, place, node))
        place = _next(text, node.end, "}")
    return JsonNode(start, place + 1, members=tuple(members))


def _array(text: str, start: int) -> JsonNode:
    items: list[JsonNode] = []
    place = _skip(text, start + 1)
    while text[place : place + 1] != "]":
        items.append(_value(text, place))
        place = _next(text, items[-1].end, "]")
    return JsonNode(start, place + 1, items=tuple(items))


def _next(text: str, end: int, closing: str) -> int:
    """The start of the next member, or the closing bracket."""
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


Ours = Callable[[str], bool]
"""Whether a command is to be removed."""


_WAS_BLANK = " "


class BadSettings(MusterError):
    """A text that is no agent's settings; it is not changed."""


def is_blank(text: str) -> bool:
    return not text.strip("\ufeff \t\r\n")


def commands_in(text: str) -> dict[str, list[str]]:
    """The commands of every event, in order."""
    root = _root(text)
    return {
        event.key: [command for group in event.node.items or () for _, command in _handlers(group)]
        for event in _events(text, root)
    }


def added(text: str | None, entries: Mapping[str, dict[str, Any]]) -> str:
    """The text with one more entry for each of these events. None or a blank text becomes a document."""
    if text is None or is_blank(text):
        made = _rendered({"hooks": {event: [entry] for event, entry in entries.items()}}, "\n", "  ")
        return made + "\n" if text is None else text + made + _WAS_BLANK
    for event, entry in entries.items():
        text = _with_entry(text, event, entry)
    return text


def taken_out(text: str, ours: Ours) -> str | None:
    """The text without the commands that are `ours`; None if only the document that was made for them is left."""
    while True:
        found = None if is_blank(text) else next(_places(text, _root(text), ours), None)
        if found is None:
            return text
        rest = _without(text, *found)
        if rest is None:
            return None
        text = rest


# --- adding ---


def _with_entry(text: str, event: str, entry: dict[str, Any]) -> str:
    root = _root(text)
    list(_events(text, root))  # raises BadSettings
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = _indent(text, root)
    hooks = root.member("hooks")
    if hooks is None:
        return _put(text, root, "hooks", {event: [entry]}, newline, unit, 1)
    there = hooks.node.member(event)
    if there is None:
        return _put(text, hooks.node, event, [entry], newline, unit, 2)
    return _put(text, there.node, None, entry, newline, unit, 3)


def _put(text: str, into: JsonNode, key: str | None, value: Any, newline: str, unit: str, depth: int) -> str:
    """Insert a value after the last one of an object or array."""
    margin = newline + unit * depth
    named = f"{json.dumps(key)}: " if key is not None else ""
    written = named + _rendered(value, margin, unit)
    there = [each.node for each in into.members or ()] or list(into.items or ())
    if not there:
        return text[: into.start + 1] + written + text[into.start + 1 :]
    return text[: there[-1].end] + "," + margin + written + text[there[-1].end :]


def _rendered(value: Any, margin: str, unit: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", margin)


def _indent(text: str, root: JsonNode) -> str:
    """The indentation of the document's members."""
    if not root.members:
        return "  "
    before = text[: root.members[0].start]
    margin = before[len(before.rstrip(" \t")) :]
    return margin if margin and before.rstrip(" \t").endswith("\n") else "  "


# --- removing ---


def _places(text: str, root: JsonNode, ours: Ours) -> Iterator[tuple[list[JsonNode], JsonNode]]:
    """The values to remove, with the containers around each, the innermost first."""
    hooks = root.member("hooks")
    for event in _events(text, root) if hooks else ():
        for group in event.node.items or ():
            handlers = list(_handlers(group))
            mine = [node for node, command in handlers if ours(command)]
            if mine and len(mine) == len(handlers):
                yield [event.node, hooks.node if hooks else root, root], group
            elif mine:
                listed = group.member("hooks")
                yield [listed.node if listed else group], mine[0]


def _without(text: str, around: list[JsonNode], node: JsonNode) -> str | None:
    """The text without a value, and without containers that were added for it and are empty now."""
    start, end = node.start, node.end
    for container in around:
        entries = [(each.start, each.node.end) for each in container.members or ()]
        entries = entries or [(each.start, each.end) for each in container.items or ()]
        if len(entries) > 1:
            return _cut(text, entries, entries.index((start, end)))
        before, after = text[container.start + 1 : start], text[end : container.end - 1].strip()
        if not before.startswith(("\n", "\r\n")) or before.strip() or after.strip(","):
            end += text[end : container.end].index(",") + 1 if after.startswith(",") else 0
            return text[:start] + text[end:]
        start, end = _named(around, container)
    if not is_blank(text[:start] + text[end:]):
        return text[:start] + "{}" + text[end:]
    return text[:start] if text[end:] == _WAS_BLANK else None


def _named(around: list[JsonNode], container: JsonNode) -> tuple[int, int]:
    """The span of a container with its key."""
    for outer in around:
        for member in outer.members or ():
            if member.node.start == container.start:
                return member.start, member.node.end
    return container.start, container.end


def _cut(text: str, entries: list[tuple[int, int]], place: int) -> str:
    """Remove one of several values, with one comma and the space before it."""
    start, end = entries[place]
    if place > 0:
        comma = _comma(text, entries[place - 1][1])
        gap = len(text[:start].rstrip())
        return text[:comma] + text[comma + 1 : max(gap, comma + 1)] + text[end:]
    comma = _comma(text, end)
    after = text[comma + 1 :]
    return text[:start] + after.lstrip()


def _comma(text: str, place: int) -> int:
    """The next comma that is not in a comment."""
    while text[place] != ",":
        if text.startswith("//", place):
            place = text.index("\n", place)
        elif text.startswith("/*", place):
            place = text.index("*/", place) + 1
        place += 1
    return place


# --- reading ---


def _root(text: str) -> JsonNode:
    try:
        root = parse(text)
    except BadJson as fault:
        raise BadSettings(str(fault)) from fault
    if root.members is None:
        raise BadSettings(f"line {line_of(text, root.start)}: it is not an object")
    return root


def _events(text: str, root: JsonNode) -> Iterator[JsonMember]:
    hooks = root.member("hooks")
    if hooks is None:
        return
    if hooks.node.members is None:
        raise BadSettings(f"line {line_of(text, hooks.start)}: `hooks` is not an object")
    for event in hooks.node.members:
        if event.node.items is not None:
            yield event
        elif event.key[:1].isupper():
            raise BadSettings(f"line {line_of(text, event.start)}: `hooks.{event.key}` is not a list")


def _handlers(group: JsonNode) -> Iterator[tuple[JsonNode, str]]:
    listed = group.member("hooks")
    for handler in (listed.node.items or ()) if listed else ():
        command = handler.member("command")
        yield handler, str(command.node.value) if command else ""
