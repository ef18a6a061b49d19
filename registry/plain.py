"""Reads entries that are written in simple lines, as ours are, fifty times as fast as a YAML parser.

Only a subset of YAML is taken in which a line can be read in one way alone: `key: value` with a plain scalar, a quoted
string on one line or a short list in brackets, and comments. For anything else the answer is None: the parser reads it.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from registry.characters import has_odd
from registry.nodes import Node, Tree
from registry.scalars import BODY, WORD

_ID = r"[0-9][A-Za-z0-9_.-]*"
_UNQUOTED = r"[^'\t\r\n]"
_SINGLE = rf"'{_UNQUOTED}*(?:''{_UNQUOTED}*)*'"
_ESCAPED = r'\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
_UNESCAPED = r'[^"\\\t\r\n]'
_DOUBLE = rf'"{_UNESCAPED}*(?:(?:{_ESCAPED}){_UNESCAPED}*)*"'
_ITEM = rf"(?:[A-Za-z_/][A-Za-z0-9_./@+=-]*|{_ID}|{_SINGLE}|{_DOUBLE})"
_LIST = rf"\[ *(?:{_ITEM}(?: *, *{_ITEM})*)? *\]"
_KEY = r"[A-Za-z_][A-Za-z0-9_-]*"
_NAME = rf"{_KEY}|{_ID}|{_SINGLE}|{_DOUBLE}"
_REST = r"(?: +#[^\r\n]*| *)\r?(?:\n|\Z)"

_HEAD = re.compile(rf"( *)({_NAME}):{_REST}")
_LINE = re.compile(
    rf"( *)({_KEY}): +({WORD}|{_SINGLE}|[-+]?[0-9]{BODY}|{_LIST}|{_DOUBLE}){_REST}"
    r"| *(?:#[^\r\n]*)?\r?(?:\n|\Z)|([^\n]+\n?)"
)
"""Any line: each match begins where the last one ended, so that nothing is passed over."""
_ITEMS = re.compile(_ITEM)

_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})\Z")
_NUMBER = re.compile(
    r"(?:[-+]?0b[01_]+|[-+]?0o?[0-7_]+|[-+]?[0-9_]+|[-+]?0x[0-9a-fA-F_]+"
    r"|[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+)\Z"
)
_DATE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]| +)[0-9]{1,2}:[0-9]{2}:[0-9]{2}"
)
_NAMES_OF_VALUES: dict[str, Any] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL"), None),
}


class Unsure(Exception):
    """This may be read in another way than it looks."""


class Line(NamedTuple):
    """One `key: value` of a text, and where it stands."""

    indent: int
    key: str
    raw: str
    key_start: int
    value_start: int


def read_entry(text: str) -> tuple[str, dict[str, Any]] | None:
    """The name and the fields of an entry with a line for each."""
    head = _HEAD.match(text)
    if head is None or has_odd(text):
        return None
    fields = _fields(text, head.end(), len(head[1]))
    return (name_of(head[2]), fields) if fields else None


def read_line(text: str) -> tuple[str, Any] | None:
    """The key and the value of a top-level `key: value`, with nothing around it but comments."""
    if has_odd(text):
        return None
    fields = _fields(text, 0, -1)
    return next(iter(fields.items())) if fields and len(fields) == 1 and _LINE.match(text, 0) else None


def _fields(text: str, begin: int, parent: int) -> dict[str, Any] | None:
    fields: dict[str, Any] = {}
    indent = ""
    for spaces, key, raw, other in _LINE.findall(text, begin):
        if key:
            if not fields:
                indent = spaces
                if len(indent) <= parent:
                    return None
            if spaces != indent or key in fields or key in _NAMES_OF_VALUES:
                return None
            try:
                fields[key] = value_of(raw)
            except Unsure:
                return None
        elif other:
            return None
    return fields


def value_of(raw: str) -> Any:
    """What one of the scalars or lists above stands for. Raises Unsure."""
    first = raw[0]
    if first == "'":
        return raw[1:-1].replace("''", "'")
    if first == '"':
        return json.loads(raw)
    if first == "[":
        return [value_of(item) for item in _ITEMS.findall(raw)]
    if first in "-+0123456789":
        if _INT.match(raw):
            return int(raw)
        if first in "-+" or _NUMBER.match(raw) or _DATE.match(raw):
            raise Unsure
    return _NAMES_OF_VALUES.get(raw, raw)


def name_of(raw: str) -> str:
    """The name of an entry, which is text whatever it looks like."""
    return str(value_of(raw)) if raw[0] in "'\"" else raw


def tree_of_entry(text: str) -> Tree | None:
    """An entry with the places of its parts, as a parser would give them."""
    read = read_entry(text)
    head = _HEAD.match(text)
    if read is None or head is None:
        return None
    name, fields = read
    key = _scalar(head[2], head.start(2), name)
    value = _mapping(list(_lines(text, head.end())), fields)
    return Tree(_one(key, value), {name: fields})


def tree_of_line(text: str) -> Tree | None:
    """A top-level `key: value` with the places of its parts."""
    read = read_line(text)
    if read is None:
        return None
    return Tree(_mapping(list(_lines(text, 0)), dict([read])), dict([read]))


def _lines(text: str, begin: int) -> Iterator[Line]:
    for found in _LINE.finditer(text, begin):
        if found[2]:
            yield Line(len(found[1]), found[2], found[3], found.start(2), found.start(3))


def _mapping(lines: list[Line], fields: dict[str, Any]) -> Node:
    pairs = []
    for line in lines:
        key = _scalar(line.key, line.key_start, line.key)
        end = line.value_start + len(line.raw)
        if line.raw[0] == "[":
            value = Node("list", line.value_start, end, end, flow=True, tag="tag:yaml.org,2002:seq")
        else:
            value = _scalar(line.raw, line.value_start, fields[line.key])
        pairs.append((key, value))
    return Node("map", pairs[0][0].start, pairs[-1][1].end, pairs[-1][1].end, pairs=pairs, tag="tag:yaml.org,2002:map")


def _scalar(raw: str, start: int, value: Any) -> Node:
    end = start + len(raw)
    style = raw[0] if raw[0] in "'\"" else ""
    tag = "str" if isinstance(value, str) else "null" if value is None else "int"
    text = value if isinstance(value, str) else raw
    return Node("scalar", start, end, end, style=style, text=text, tag=f"tag:yaml.org,2002:{tag}")


def _one(key: Node, value: Node) -> Node:
    return Node("map", key.start, value.end, value.after, pairs=[(key, value)], tag="tag:yaml.org,2002:map")
