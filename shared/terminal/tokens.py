"""Cuts what a program writes into text, control characters and escape sequences.

How the bytes come in pieces makes no difference. Titles, colours and pictures sent as strings are left out.
"""

import codecs
import re
from collections.abc import Iterator
from enum import StrEnum


class Kind(StrEnum):
    TEXT = "text"
    COMMAND = "command"
    """What follows `ESC [`: numbers and a letter that says what to do."""
    ESCAPE = "escape"
    CONTROL = "control"


TOKEN = re.compile(
    r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
    r"|\x1b\[(?P<command>[0-?]{0,64}[ -/]{0,4}[@-~])"
    r"|(?P<string>\x1b[\]PX^_])"
    r"|\x1b(?P<escape>[ -/]{0,4}[0-Z\\`-~])"
    r"|(?P<control>[\x00-\x1a\x1c-\x1f\x7f-\x9f])"
)
UNFINISHED = re.compile(r"\x1b(?:\[[0-?]{0,64}[ -/]{0,4}|[ -/]{0,4})")
STRING_END = re.compile(r"[\x07\x18\x1a\x1b]")


class Tokens:
    """Give it bytes as they come; what is not yet complete waits for the next ones."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._rest = ""
        self._in_string = False

    def feed(self, data: bytes) -> Iterator[tuple[Kind, str]]:
        text = self._rest + self._decoder.decode(data)
        self._rest = ""
        at = 0
        while at < len(text):
            if self._in_string:
                at = self._skip_string(text, at)
            elif found := TOKEN.match(text, at):
                at = found.end()
                if found.lastgroup == "string":
                    self._in_string = True
                elif found.lastgroup:
                    yield Kind(found.lastgroup), found[found.lastgroup]
            elif UNFINISHED.fullmatch(text, at):
                self._rest = text[at:]
                return
            else:
                at += 1  # an escape that leads to nothing

    def _skip_string(self, text: str, at: int) -> int:
        """Any escape ends a string, so that a torn one does no harm."""
        end = STRING_END.search(text, at)
        self._in_string = end is None
        return len(text) if end is None else end.start() if end[0] == "\x1b" else end.end()
