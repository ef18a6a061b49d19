"""Whether an input box holds a text."""

import unicodedata

from shared.screen.patterns import compiled

MANY_CHARACTERS, MANY_ROWS = 200, 10
"""A box that shows so much of the end of a text and nothing else holds it, though not all of it is in sight."""
PASTED_CHARACTERS, PASTED_LINES = 100, 3
"""No agent puts a placeholder in the place of less."""
SHOWN_ANYHOW = ("Cc", "Cf", "Cn", "Co", "Mn", "Me", "Sk", "So")
"""Kinds of characters that terminals show each in its own way, or not at all: emoji, marks, what has no width."""


def holds(box: str, text: str, placeholder: str | None) -> bool:
    """Whether an input box shows just this text: as it is, its end where the box scrolls, or one placeholder for it.

    A box breaks lines as it likes, so blanks don't count, nor what terminals show each in its own way.
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
