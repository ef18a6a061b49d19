"""A value as YAML text that every reader takes for the same value."""

import re
from typing import Any

PRINTABLE = r"!-~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff"
"""What may stand in a scalar as it is, but for the space."""

_NO_COLON = PRINTABLE.replace("!-~", "!-9;-~")
_NO_HASH = PRINTABLE.replace("!-~", '!-"$-~')

BODY = rf"[{_NO_COLON}]*(?:(?::(?=[{PRINTABLE}])| +(?=[{_NO_HASH}]))[{_NO_COLON}]*)*"
"""The rest of a plain scalar on one line: no `: `, no ` #`, no space at its end."""

WORD = rf"[A-Za-z/_]{BODY}"
"""A plain scalar that can be no number and no date."""

OTHER_WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"})
"""Words that some reader of YAML takes for something else than text; ours only for the first three."""

_WORD = re.compile(rf"{WORD}\Z")
_FLOW_WORD = re.compile(r"[A-Za-z/_][A-Za-z0-9_./@+=-]*\Z")
_DIGITS_FIRST = re.compile(r"[0-9][A-Za-z0-9_.-]*\Z")
_LIKE_A_NUMBER = re.compile(r"[0-9a-fA-FoxXtTzZ_.+:-]*\Z")
_ON_ONE_LINE = re.compile(rf"[ {PRINTABLE}]*\Z")
_TO_ESCAPE = re.compile(rf"[^ {PRINTABLE}]|[\\\"]")


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
    if like == '"' or not _ON_ONE_LINE.match(text):
        return f'"{_TO_ESCAPE.sub(_escaped, text)}"'
    return "'" + text.replace("'", "''") + "'"


def is_plain(text: str, *, flow: bool = False) -> bool:
    """Whether a text may stand without quotes, for any reader."""
    if text.lower() in OTHER_WORDS:
        return False
    if _DIGITS_FIRST.match(text):
        return not _LIKE_A_NUMBER.match(text)
    return (_FLOW_WORD if flow else _WORD).match(text) is not None


def _escaped(found: re.Match[str]) -> str:
    character = found[0]
    if character in '\\"':
        return f"\\{character}"
    if character == "\n":
        return "\\n"
    if character == "\t":
        return "\\t"
    return f"\\u{ord(character):04x}" if ord(character) < 0x10000 else f"\\U{ord(character):08x}"
