"""One entry of the registry as lines: read fast, and edited in place by position. Pure.

The reader takes a subset of YAML in which each line has one meaning: `key: value` with a scalar or a short list on one
line, and comments. The editor needs less: it finds the lines of each field by their indentation, and replaces the value
of the fields that change. It does not understand all of YAML: the caller reads an edited entry again before it is used.
"""

import re
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, Final, NamedTuple

from registry import yaml_text
from registry.yaml_text import ANY_VALUE, KEY, LINE_END, NAME, NAMED_VALUES, VALUE, Ambiguous, has_odd, write

STEP = 2
"""How many spaces deeper than its parent a new line is indented."""


class Gone:
    """The value of a field that an entry is to lose."""


GONE: Final = Gone()

Fields = Mapping[str, Any]


class NotEditable(Exception):
    """An entry or a field is written in a way that the line editor does not handle."""


# --- reading ---

_HEAD = re.compile(rf"( *)({NAME}):{LINE_END}")
_LINE = re.compile(rf"( *)({KEY}): +({VALUE}){LINE_END}| *(?:#[^\r\n]*)?\r?(?:\n|\Z)|([^\n]+\n?)")
"""Any line. Each match begins where the last one ended, so no character is skipped."""


def read_entry(text: str) -> tuple[str, dict[str, Any]] | None:
    """The name and the fields of an entry; None if a parser has to read it."""
    head = _HEAD.match(text)
    if head is None or has_odd(text):
        return None
    fields = _read_fields(text, head.end(), len(head[1]))
    return (yaml_text.read_name(head[2]), fields) if fields else None


def read_key(text: str) -> tuple[str, Any] | None:
    """A top-level key and its value; None if a parser has to read it."""
    if has_odd(text):
        return None
    fields = _read_fields(text, 0, -1)
    return next(iter(fields.items())) if fields and len(fields) == 1 else None


def _read_fields(text: str, begin: int, parent_indent: int) -> dict[str, Any] | None:
    fields: dict[str, Any] = {}
    indent = ""
    for spaces, key, raw, other in _LINE.findall(text, begin):
        if key:
            if not fields:
                indent = spaces
                if len(indent) <= parent_indent:
                    return None
            if spaces != indent or key in fields or key in NAMED_VALUES:
                return None
            try:
                fields[key] = yaml_text.read(raw)
            except Ambiguous:
                return None
        elif other:
            return None
    return fields


# --- where the fields are ---

FIELD = re.compile(rf" *({NAME}):(?=[ \r\n]|\Z)")
_ONE_LINE_VALUE = re.compile(rf" +({ANY_VALUE}){LINE_END}")
_NO_VALUE = re.compile(LINE_END)
_BLOCK_SCALAR = re.compile(rf"( +(?:[&!][^ \r\n]* +)*[|>]([-+0-9]*)){LINE_END}")


class FieldLines(NamedTuple):
    """The lines of one field, from the beginning of the first to behind the last."""

    key: str
    """Empty for a key that the editor can't read."""
    start: int
    colon: int
    """Behind the colon of its key."""
    end: int


def indents(text: str) -> tuple[int, int]:
    """The indentation of an entry, and of its fields relative to it."""
    indent = _indent(text, 0)
    try:
        _, inner = _field_lines(text)
    except NotEditable:
        return indent, STEP
    return indent, inner - indent


def content_end(text: str) -> int:
    """Behind the last line of an entry; comments and blank lines may follow."""
    try:
        return _field_lines(text)[0][-1].end
    except NotEditable:
        return max((end for start, end in _lines(text, 0) if not is_filler_line(text[start:end])), default=0)


def own_end(text: str) -> int:
    """Behind the last line of an entry and the comments that are indented deeper than its name."""
    end = best = content_end(text)
    for start, following in _lines(text, end):
        if text[start:following].strip():
            if _indent(text, start) <= _indent(text, 0):
                break
            best = following
    return best


def is_filler_line(line: str) -> bool:
    return not (stripped := line.strip()) or stripped.startswith("#")


def _field_lines(text: str) -> tuple[list[FieldLines], int]:
    """The fields of an entry in block style, and their indentation. Raises NotEditable."""
    head = _HEAD.match(text)
    if head is None:
        raise NotEditable
    fields: list[FieldLines] = []
    indent = 0
    for start, end in _lines(text, head.end()):
        spaces = _indent(text, start)
        if is_filler_line(text[start:end]):
            if fields and _is_in_block_scalar(text, fields[-1], start, spaces > indent):
                fields[-1] = fields[-1]._replace(end=end)
            continue
        if not fields:
            indent = spaces
        if spaces < indent or indent <= len(head[1]):
            raise NotEditable
        if spaces > indent or (fields and text.startswith(("- ", "-\n", "-\r"), start + spaces)):
            fields[-1] = fields[-1]._replace(end=end)
        else:
            key = FIELD.match(text, start)
            name = yaml_text.read_name(key[1]) if key is not None else ""
            fields.append(FieldLines(name, start, key.end() if key is not None else start, end))
    if not fields:
        raise NotEditable
    return fields, indent


def _is_in_block_scalar(text: str, field: FieldLines, start: int, is_deep: bool) -> bool:
    """Whether a line that looks like a comment or a blank line is a part of the text above it."""
    scalar = _BLOCK_SCALAR.match(text, field.colon)
    if scalar is None or text[field.end : start].strip():
        return False
    return is_deep if text[start:].lstrip(" ").startswith("#") else "+" in scalar[2]


def _lines(text: str, begin: int) -> Iterator[tuple[int, int]]:
    while begin < len(text):
        end = text.find("\n", begin) + 1 or len(text)
        yield begin, end
        begin = end


def _indent(text: str, start: int) -> int:
    at = start
    while text.startswith(" ", at):
        at += 1
    return at - start


# --- editing ---

Replacement = tuple[int, int, str]
"""Start, end, and the new text between them."""


def edit_entry(text: str, fields: Fields, eol: str) -> str:
    """The entry with fields set, added and removed. Raises NotEditable."""
    there, indent = _field_lines(text)
    by_key = {each.key: each for each in there}
    if all(fields.get(each.key) is GONE for each in there):  # a name without a field would have no mapping behind it
        fields = {**fields, there[-1].key: None}
    replacements: list[Replacement] = []
    added = ""
    for key, value in fields.items():
        if key in by_key:
            replacements += _removed(text, by_key[key]) if value is GONE else _set(text, by_key[key], value)
        elif value is not GONE:
            added += f"{' ' * indent}{write(key, flow=True)}: {write(value)}{eol}"
    if added:
        end = there[-1].end
        replacements.append((end, end, added if text.endswith("\n", 0, end) else f"{eol}{added}"))
    return _replaced(text, replacements)


def _set(text: str, field: FieldLines, value: Any) -> list[Replacement]:
    one_line = _ONE_LINE_VALUE.match(text, field.colon)
    if one_line is not None and one_line.end() == field.end:
        start, end = one_line.span(1)
        quote = text[start] if text[start] in "'\"" else ""
        return [(start, end, write(value, quote))]
    nothing = _NO_VALUE.match(text, field.colon)
    if nothing is not None:
        below = text[nothing.end() : field.end].splitlines(keepends=True)
        comments = "".join(line for line in below if line.lstrip().startswith("#"))
        return [(field.colon, field.colon, f" {write(value)}"), (nothing.end(), field.end, comments)]
    scalar = _BLOCK_SCALAR.match(text, field.colon)
    if scalar is not None:
        return [(*scalar.span(1), f" {write(value)}"), (scalar.end(), field.end, "")]
    raise NotEditable


def _removed(text: str, field: FieldLines) -> list[Replacement]:
    """A field with a comment beside its value becomes `null`, so that the comment stays."""
    one_line = _ONE_LINE_VALUE.match(text, field.colon)
    beside = text[one_line.end(1) : field.end] if one_line is not None else text[field.colon : field.end]
    return _set(text, field, None) if "#" in beside else [(field.start, field.end, "")]


def _replaced(text: str, replacements: list[Replacement]) -> str:
    replacements.sort(key=lambda each: each[:2])
    if any(later[0] < earlier[1] for earlier, later in pairwise(replacements)):
        raise NotEditable
    parts: list[str] = []
    done = 0
    for start, end, new in replacements:
        parts += (text[done:start], new)
        done = end
    return "".join([*parts, text[done:]])


# --- writing anew ---


def entry_text(name: str, fields: Mapping[Any, Any], indent: int, step: int, eol: str) -> str:
    """A whole entry in plain block style."""
    lines = [f"{' ' * indent}{write(name, flow=True)}:{'' if fields else ' {}'}"]
    lines += [f"{' ' * (indent + step)}{line}" for key, value in fields.items() for line in field_text(key, value)]
    return "".join(f"{line}{eol}" for line in lines)


def field_text(key: Any, value: Any) -> list[str]:
    """The lines of a field without their indentation. A value may be anything that YAML has."""
    if isinstance(key, str) and yaml_text.is_writable(value):
        return [f"{write(key, flow=True)}: {write(value)}"]
    from registry import parser  # noqa: PLC0415 - rarely needed

    return parser.dump_pair(key, value)
