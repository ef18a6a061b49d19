"""The input box: where it is on a screen, what is in it, and whether it holds a given text.

Faint characters in it are the agent's own hints, not typed text.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from shared.fleet.screen_rules import ScreenRules as Rules
from shared.screen.styles import FAINT, columns, fitting


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


def find_box(rules: Rules, plain: str) -> re.Match[str] | None:
    """The lowest box: those above it are earlier prompts."""
    if rules.box is None:
        return None
    found = None
    for found in compiled(rules.box).finditer(plain):  # noqa: B007 - only the last one counts
        pass
    return found


def text_in(rules: Rules, found: re.Match[str], plain: str, marked: str) -> str:
    """The typed text in a box, without the box's own decoration; empty if it shows only a hint."""
    if found["text"] is None:
        return ""
    first, *others = _rows(found, plain, marked)
    rows = [first, *(compiled(rules.continued).sub("", row) for row in others)]
    if rules.beside is not None:
        rows = [compiled(rules.beside).sub("", row) for row in rows]
    text = "\n".join([row.replace(FAINT, " ").rstrip() for row in rows]).strip("\n")
    return "" if any(compiled(ghost).fullmatch(text.strip()) for ghost in rules.ghost) else text


def _rows(found: re.Match[str], plain: str, marked: str) -> Iterator[str]:
    """The rows of the box from the start of its text, cut at the right end of its frame, if it has one."""
    start, end = found.span("text")
    right = None
    if found.groupdict().get("frame"):
        right = columns(plain[plain.rfind("\n", 0, found.start("frame")) + 1 : found.end("frame")])
    at = plain.rfind("\n", 0, start) + 1
    for row in plain[at:end].split("\n"):
        inside = len(row) if right is None else fitting(row, right)
        yield marked[max(at, start) : max(at + inside, start)]
        at += len(row) + 1


MANY_CHARACTERS, MANY_ROWS = 200, 10
"""A box that shows this much of the end of a text, and nothing else, holds the text."""
PASTED_CHARACTERS, PASTED_LINES = 100, 3
"""No agent shows a placeholder for less."""
SHOWN_ANYHOW = ("Cc", "Cf", "Cn", "Co", "Mn", "Me", "Sk", "So")
"""Categories of characters that terminals show differently or not at all: emoji, marks, zero width."""


def holds(box: str, text: str, placeholder: str | None) -> bool:
    """Whether a box shows exactly this text: as it is, its end if the box scrolls, or one placeholder for it.

    Blanks do not count, since boxes wrap lines, nor do characters that terminals show differently.
    """
    if not box.strip():
        return False
    if shows_placeholder(box, placeholder) and (len(text) > PASTED_CHARACTERS or text.count("\n") >= PASTED_LINES - 1):
        return True
    shown, wanted = _bare(box), _bare(text)
    if shown == wanted:
        return True
    much = len(shown) >= MANY_CHARACTERS or (shown and box.count("\n") >= MANY_ROWS - 1)
    return bool(much) and wanted.endswith(shown)


def shows_placeholder(box: str, placeholder: str | None) -> bool:
    """Whether the box shows a placeholder for one paste, and nothing else."""
    return placeholder is not None and compiled(placeholder).fullmatch(box.strip()) is not None


def _bare(text: str) -> str:
    text = "".join(text.split())
    if text.isascii():
        return text
    text = unicodedata.normalize("NFC", text)
    return "".join(character for character in text if unicodedata.category(character) not in SHOWN_ANYHOW)
