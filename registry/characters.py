"""Which characters may stand in YAML as they are."""

import re
from functools import cache

_USUAL = bytes([*b"\t\n\r", *range(0x20, 0x7F)])


def has_odd(text: str, begin: int = 0) -> bool:
    """Whether there is anything, behind `begin`, that YAML does not allow or that some take for the end of a line."""
    if text.isascii():  # the quick way for the usual case
        return bool(text[begin:].encode("ascii").translate(None, _USUAL))
    return _odd().search(text, begin) is not None


@cache
def _odd() -> re.Pattern[str]:
    """Made when it is needed: sets of so many characters take long to compile."""
    return re.compile("[^\t\n\r -~\xa0-\u2027\u202a-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
