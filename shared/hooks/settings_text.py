"""Putting hooks into the text of a user's settings, and taking them out again. Pure.

What is added is marked by how it is written: an object or array that was added begins with a line break behind its
bracket; what is put into one that was there and empty does not. Behind a document in a text that was there and blank
is a space. So what is taken out later is what was added, and the
text is as it was, byte for byte, as long as nobody has written it anew; then at least all else in it is.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from shared.errors import MusterError
from shared.hooks.json_text import BadJson, Member, Node, line_of, parse

Ours = Callable[[str], bool]
"""Whether a command is one to take out."""


_WAS_BLANK = " "


class BadSettings(MusterError):
    """A text that is not what an agent's settings look like, so that nothing is changed in it."""


def is_blank(text: str) -> bool:
    return not text.strip("\ufeff \t\r\n")


def commands_in(text: str) -> dict[str, list[str]]:
    """The commands of every event, in their order."""
    root = _root(text)
    return {
        event.key: [command for group in event.node.items or () for _, command in _handlers(group)]
        for event in _events(text, root)
    }


def added(text: str | None, entries: Mapping[str, dict[str, Any]]) -> str:
    """The text with one more entry under each of these events. None, or a blank one, becomes a document."""
    if text is None or is_blank(text):
        made = _rendered({"hooks": {event: [entry] for event, entry in entries.items()}}, "\n", "  ")
        return made + "\n" if text is None else text + made + _WAS_BLANK
    for event, entry in entries.items():
        text = _with_entry(text, event, entry)
    return text


def taken_out(text: str, ours: Ours) -> str | None:
    """The text without the commands that are ours; None when a document is left that was only made for them."""
    while True:
        found = None if is_blank(text) else next(_places(text, _root(text), ours), None)
        if found is None:
            return text
        rest = _without(text, *found)
        if rest is None:
            return None
        text = rest


# --- putting in ---


def _with_entry(text: str, event: str, entry: dict[str, Any]) -> str:
    root = _root(text)
    list(_events(text, root))  # raises for what is not as it should be
    newline = "\r\n" if "\r\n" in text else "\n"
    unit = _indent(text, root)
    hooks = root.member("hooks")
    if hooks is None:
        return _put(text, root, "hooks", {event: [entry]}, newline, unit, 1)
    there = hooks.node.member(event)
    if there is None:
        return _put(text, hooks.node, event, [entry], newline, unit, 2)
    return _put(text, there.node, None, entry, newline, unit, 3)


def _put(text: str, into: Node, key: str | None, value: Any, newline: str, unit: str, depth: int) -> str:
    """Put a value behind the last one of an object or array."""
    margin = newline + unit * depth
    named = f"{json.dumps(key)}: " if key is not None else ""
    written = named + _rendered(value, margin, unit)
    there = [each.node for each in into.members or ()] or list(into.items or ())
    if not there:
        return text[: into.start + 1] + written + text[into.start + 1 :]
    return text[: there[-1].end] + "," + margin + written + text[there[-1].end :]


def _rendered(value: Any, margin: str, unit: str) -> str:
    return json.dumps(value, indent=unit, ensure_ascii=False).replace("\n", margin)


def _indent(text: str, root: Node) -> str:
    """How the members of the document are set in."""
    if not root.members:
        return "  "
    before = text[: root.members[0].start]
    margin = before[len(before.rstrip(" \t")) :]
    return margin if margin and before.rstrip(" \t").endswith("\n") else "  "


# --- taking out ---


def _places(text: str, root: Node, ours: Ours) -> Iterator[tuple[list[Node], Node]]:
    """What to take out, and the containers around it, the innermost first."""
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


def _without(text: str, around: list[Node], node: Node) -> str | None:
    """The text without a value, and without what would be left empty of what was added for it."""
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


def _named(around: list[Node], container: Node) -> tuple[int, int]:
    """From where to where a container goes, its key included."""
    for outer in around:
        for member in outer.members or ():
            if member.node.start == container.start:
                return member.start, member.node.end
    return container.start, container.end


def _cut(text: str, entries: list[tuple[int, int]], place: int) -> str:
    """Cut out one of several values, with the comma that parts it from its neighbour and the gap before it."""
    start, end = entries[place]
    if place > 0:
        comma = _comma(text, entries[place - 1][1])
        gap = len(text[:start].rstrip())
        return text[:comma] + text[comma + 1 : max(gap, comma + 1)] + text[end:]
    comma = _comma(text, end)
    after = text[comma + 1 :]
    return text[:start] + after.lstrip()


def _comma(text: str, place: int) -> int:
    """The first comma from a place on that is in no comment."""
    while text[place] != ",":
        if text.startswith("//", place):
            place = text.index("\n", place)
        elif text.startswith("/*", place):
            place = text.index("*/", place) + 1
        place += 1
    return place


# --- reading ---


def _root(text: str) -> Node:
    try:
        root = parse(text)
    except BadJson as fault:
        raise BadSettings(str(fault)) from fault
    if root.members is None:
        raise BadSettings(f"line {line_of(text, root.start)}: it is not an object")
    return root


def _events(text: str, root: Node) -> Iterator[Member]:
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


def _handlers(group: Node) -> Iterator[tuple[Node, str]]:
    listed = group.member("hooks")
    for handler in (listed.node.items or ()) if listed else ():
        command = handler.member("command")
        yield handler, str(command.node.value) if command else ""
