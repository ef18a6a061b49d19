"""A value as YAML text that every reader takes for the same value."""

import re
from typing import Any

from registry.characters import has_odd

BODY = r"[^: \t\r\n]*(?:(?::(?=[^ \t\r\n])| +(?=[^# \t\r\n]))[^: \t\r\n]*)*"
"""The rest of a plain scalar on one line, in a text without odd characters: no `: `, no ` #`, no space at its end."""

WORD = rf"[A-Za-z/_]{BODY}"
"""A plain scalar that can be no number and no date."""

OTHER_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"})
"""Words that some reader of YAML takes for something else than text; ours only for the first three."""

_WORD = re.compile(rf"{WORD}\Z")
_FLOW_WORD = re.compile(r"[A-Za-z/_][A-Za-z0-9_./@+=-]*\Z")
_DIGITS_FIRST = re.compile(r"[0-9][A-Za-z0-9_.-]*\Z")
_LIKE_A_NUMBER = re.compile(r"[0-9a-fA-FoxXtTzZ_.+:-]*\Z")
_LINE_OR_TAB = re.compile(r"[\t\r\n]")
_MAY_NEED_ESCAPE = re.compile(r"[^ !#-\[\]-~]")


def write(value: Any, like: str = "", *, flow: bool = False) -> str:
    """The text of a value; `like` is the quote that stands there now, `flow` says that brackets are around it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(write(each, flow=True) for each in value)}]"
    return _quoted(str(value), like, flow)


def _quoted(text: str, like: str, flow: bool) -> str:
    if like not in ("'", '"') and is_plain(text, flow=flow):
        return text
    if like == '"' or has_odd(text) or _LINE_OR_TAB.search(text):
        return f'"{_MAY_NEED_ESCAPE.sub(_escaped, text)}"'
    return "'" + text.replace("'", "''") + "'"


def is_plain(text: str, *, flow: bool = False) -> bool:
    """Whether a text may stand without quotes, for any reader."""
    if text.lower() in OTHER_WORDS:
        return False
    if _DIGITS_FIRST.match(text):
        return not _LIKE_A_NUMBER.match(text)
    return (_FLOW_WORD if flow else _WORD).match(text) is not None and not has_odd(text)


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
