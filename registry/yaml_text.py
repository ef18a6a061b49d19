"""The subset of YAML that Muster reads and writes without a parser: scalars and short lists on one line. Pure.

Every YAML reader takes a written value for the same value. Where a reading could be ambiguous, the answer is
`Ambiguous`, and the caller asks the parser.
"""

import json
import re
from functools import cache
from typing import Any


class MalformedYaml(Exception):
    """A text is not valid YAML, or not a registry; lines and columns count from 1."""

    def __init__(self, line: int, column: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line
        self.column = column
        self.problem = problem


class Ambiguous(Exception):
    """YAML may read this scalar as something else than it looks like."""


# --- characters ---

_USUAL = bytes([*b"\t\n\r", *range(0x20, 0x7F)])


def has_odd(text: str, begin: int = 0) -> bool:
    """Whether the text, from `begin` on, has a character that YAML forbids or that may count as a line break."""
    if text.isascii():  # fast path
        return bool(text[begin:].encode("ascii").translate(None, _USUAL))
    return _odd().search(text, begin) is not None


@cache
def _odd() -> re.Pattern[str]:
    """Compiled on first use: large character sets compile slowly."""
    return re.compile("[^\t\n\r -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")


def position(text: str, index: int) -> tuple[int, int]:
    """The line and the column of an index, counted from 1."""
    line, start = 1, 0
    for found in re.compile(r"\n|\r(?!\n)").finditer(text, 0, index):
        line, start = line + 1, found.end()
    return line, index - start + 1


# --- patterns, for a text without odd characters ---

_BODY = r"[^: \t\r\n]*(?:(?::(?=[^ \t\r\n])| +(?=[^# \t\r\n]))[^: \t\r\n]*)*"
"""The rest of a plain scalar on one line: no `: `, no ` #`, no space at its end."""
_WORD = rf"[A-Za-z/_]{_BODY}"
"""A plain scalar that is neither a number nor a date."""
_ID = r"[0-9][A-Za-z0-9_.-]*"
_UNQUOTED = r"[^'\t\r\n]"
_SINGLE = rf"'{_UNQUOTED}*(?:''{_UNQUOTED}*)*'"
_ESCAPED = r'\\["\\/bfnrt]|\\u(?![dD][89a-fA-F])[0-9a-fA-F]{4}'
_UNESCAPED = r'[^"\\\t\r\n]'
_DOUBLE = rf'"{_UNESCAPED}*(?:(?:{_ESCAPED}){_UNESCAPED}*)*"'
_ITEM = rf"(?:[A-Za-z_/][A-Za-z0-9_./@+=-]*|{_ID}|{_SINGLE}|{_DOUBLE})"
_LIST = rf"\[ *(?:{_ITEM}(?: *, *{_ITEM})*)? *\]"

KEY = r"[A-Za-z_][A-Za-z0-9_-]*"
NAME = rf"{KEY}|{_ID}|{_SINGLE}|{_DOUBLE}"
VALUE = rf"{_WORD}|{_SINGLE}|[-+]?[0-9]{_BODY}|{_LIST}|{_DOUBLE}"
ANY_VALUE = (
    rf"{VALUE}|\"(?:[^\"\\\r\n]|\\[^\r\n])*\"|\[[^#'\"\r\n]*\]|\{{[^#'\"\r\n]*\}}"
    rf"|(?:[^-\s,\[\]{{}}#&*!|>'\"%@`?:]|-(?=[^ \r\n])){_BODY}"
)
"""Any value on one line without an anchor, an alias or a tag. It can be replaced, though maybe not read."""
LINE_END = r"(?: +#[^\r\n]*| *)\r?(?:\n|\Z)"
"""What may follow a value: a comment and the line break."""

# --- reading ---

NAMED_VALUES: dict[str, Any] = {
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys(("null", "Null", "NULL"), None),
}
_ITEMS = re.compile(_ITEM)
_INT = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})\Z")
_NUMBER = re.compile(
    r"(?:[-+]?0b[01_]+|[-+]?0o?[0-7_]+|[-+]?[0-9_]+|[-+]?0x[0-9a-fA-F_]+"
    r"|[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[-+]?[0-9][0-9_]*[eE][-+]?[0-9]+)\Z"
)
_DATE = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]| +)[0-9]{1,2}:[0-9]{2}:[0-9]{2}"
)


def read(raw: str) -> Any:
    """The value of a text that matches `VALUE`. Raises Ambiguous."""
    first = raw[0]
    if first == "'":
        return raw[1:-1].replace("''", "'")
    if first == '"':
        return json.loads(raw)
    if first == "[":
        return [read(item) for item in _ITEMS.findall(raw)]
    if first in "-+0123456789":
        if _INT.match(raw):
            return int(raw)
        if first in "-+" or _NUMBER.match(raw) or _DATE.match(raw):
            raise Ambiguous
    return NAMED_VALUES.get(raw, raw)


def read_name(raw: str) -> str:
    """The name of an entry: text, whatever it looks like."""
    return str(read(raw)) if raw[0] in "'\"" else raw


# --- writing ---

_NOT_TEXT = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"})
"""Words that some YAML reader takes for something else than text."""
_WHOLE_WORD = re.compile(rf"{_WORD}\Z")
_FLOW_WORD = re.compile(r"[A-Za-z/_][A-Za-z0-9_./@+=-]*\Z")
_DIGITS_FIRST = re.compile(r"[0-9][A-Za-z0-9_.-]*\Z")
_LIKE_A_NUMBER = re.compile(r"[0-9a-fA-FoxXtTzZ_.+:-]*\Z")
_LINE_OR_TAB = re.compile(r"[\t\r\n]")
_MAY_NEED_ESCAPE = re.compile(r"[^ !#-\[\]-~]")


def write(value: Any, quote: str = "", *, flow: bool = False) -> str:
    """A value on one line. `quote` is the style to keep; `flow` is for an item of a list and for a key."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(write(each, flow=True) for each in value)}]"
    return _written_text(str(value), quote, flow)


def is_writable(value: Any) -> bool:
    """Whether `write` writes this value as what it is."""
    if isinstance(value, list):
        return all(isinstance(each, str) for each in value)
    return value is None or isinstance(value, str | int)


def is_plain(text: str, *, flow: bool = False) -> bool:
    """Whether a text needs no quotes, for any reader."""
    if text.lower() in _NOT_TEXT:
        return False
    if _DIGITS_FIRST.match(text):
        return not _LIKE_A_NUMBER.match(text)
    return (_FLOW_WORD if flow else _WHOLE_WORD).match(text) is not None and not has_odd(text)


def _written_text(text: str, quote: str, flow: bool) -> str:
    if quote not in ("'", '"') and is_plain(text, flow=flow):
        return text
    if quote == '"' or has_odd(text) or _LINE_OR_TAB.search(text):
        return f'"{_MAY_NEED_ESCAPE.sub(_escaped, text)}"'
    return "'" + text.replace("'", "''") + "'"


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character in '\\"':
        return f"\\{character}"
    if character == "\n":
        return "\\n"
    if character == "\t":
        return "\\t"
    if character >= "\xa0" and not has_odd(character):
        return character
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"
