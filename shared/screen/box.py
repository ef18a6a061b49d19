"""The input box: where it is on a screen, and what is in it.

Faint characters in it are the agent's own hints and never what somebody typed.
"""

import re
from collections.abc import Iterator

from shared.fleet.signs import Screen as Rules
from shared.screen.columns import columns, fitting
from shared.screen.patterns import compiled
from shared.screen.styles import FAINT


def find_box(rules: Rules, plain: str) -> re.Match[str] | None:
    if rules.box is None:
        return None
    found = None
    for found in compiled(rules.box).finditer(plain):  # noqa: B007 - those above the last are of earlier prompts
        pass
    return found


def text_in(rules: Rules, found: re.Match[str], plain: str, marked: str) -> str:
    if found["text"] is None:
        return ""
    first, *others = _rows(found, plain, marked)
    rows = [first, *(compiled(rules.continued).sub("", row) for row in others)]
    if rules.beside is not None:
        rows = [compiled(rules.beside).sub("", row) for row in rows]
    text = "\n".join([row.replace(FAINT, " ").rstrip() for row in rows]).strip("\n")
    return "" if any(compiled(ghost).fullmatch(text.strip()) for ghost in rules.ghost) else text


def _rows(found: re.Match[str], plain: str, marked: str) -> Iterator[str]:
    """The rows of the box from where its text begins, as wide as its frame if that was found."""
    start, end = found.span("text")
    right = None
    if found.groupdict().get("frame"):
        right = columns(plain[plain.rfind("\n", 0, found.start("frame")) + 1 : found.end("frame")])
    at = plain.rfind("\n", 0, start) + 1
    for row in plain[at:end].split("\n"):
        inside = len(row) if right is None else fitting(row, right)
        yield marked[max(at, start) : max(at + inside, start)]
        at += len(row) + 1
