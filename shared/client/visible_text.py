"""Texts from agents, screens and remotes as a person may safely read them in a browser. Pure.

What a page shows must be what is there: a character that is invisible, or that turns the direction of its neighbours,
can make a command look like another one. Each such character is shown by its number instead, as `⟨U+202E⟩`.
"""

import math
import re
from collections.abc import Mapping
from typing import Any

_SYMBOL = "\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff"
"""Characters that have an emoji form."""
_JOINING = "\u0600-\u0dff"
"""Arabic and Indic letters, between which joiners change how words are spelt."""
_INVISIBLE = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164"
    "\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_HOSTILE = re.compile(
    rf"(?<=[{_SYMBOL}\ufe0f])(?P<joined>\u200d)(?=[{_SYMBOL}])"
    rf"|(?<=[{_SYMBOL}])(?P<styled>[\ufe0e\ufe0f])"
    r"|(?<=[0-9#*])(?P<keycap>\ufe0f)(?=\u20e3)"
    rf"|(?<=[{_JOINING}])(?P<spelt>[\u200c\u200d])(?=[{_JOINING}])"
    rf"|[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff{_INVISIBLE}]"
)


def visible(text: str) -> str:
    """The text with every control and invisible character shown by its number; line ends and tabs stay.

    Joiners inside emoji and inside words of scripts that need them stay too. The result can be encoded.
    """
    if text.isascii() and text.isprintable():  # most are, and this is ten times as fast
        return text
    return _HOSTILE.sub(_shown, text.replace("\r\n", "\n"))


def _shown(found: re.Match[str]) -> str:
    return found[0] if found.lastgroup else f"⟨U+{ord(found[0]):04X}⟩"


def visible_document(value: Any) -> Any:
    """A document of plain values with all its texts and keys made visible. A number that JSON lacks becomes None."""
    match value:
        case str():
            return visible(value)
        case bool() | int() | None:
            return value
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {visible(str(key)): visible_document(each) for key, each in value.items()}
        case list() | tuple():
            return [visible_document(each) for each in value]
    return visible(value.isoformat() if hasattr(value, "isoformat") else str(value))
