"""Reading what an agent shows, by the rules of its backend. Pure: a screen in, what is on it out.

A screen is text as tmux captures it with styles. Faint characters in an input box are the agent's own hints and never
what somebody typed. A dialog stands in the place of the input box: where the box is whole, a dialog above it is only
quoted, unless its rule says that it stands over the box.
"""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from shared.fleet.backend import Backend, Dialog
from shared.fleet.backend import Screen as Rules

SGR = re.compile(r"\x1b\[([0-9;:]*)m")
OTHER_ESCAPE = re.compile(
    r"\x1b(?!\[[0-9;:]*m)(?:\][^\x07\x1b]*(?:\x07|\x1b\\)|\[[0-?]*[ -/]*[@-~]|[()*+][A-Z0-9]|.)|[\x0e\x0f]",
    re.DOTALL,
)
FAINT = "\x00"
"""Stands for a faint character while a screen is read."""
MANY_CHARACTERS, MANY_ROWS = 200, 10
"""A box that shows so much of the end of a text and nothing else holds it, though not all of it is in sight."""
PASTED_CHARACTERS, PASTED_LINES = 100, 3
"""No agent puts a placeholder in the place of less."""
SHOWN_ANYHOW = ("Cc", "Cf", "Cn", "Co", "Mn", "Me", "Sk", "So")
"""Kinds of characters that terminals show each in its own way, or not at all: emoji, marks, what has no width."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What is on a screen, as far as delivering a text is concerned."""

    box: str | None
    """What is in the input box; None when there is no box to type into."""
    dialog: Dialog | None
    working: bool
    dialog_text: str = ""
    """The dialog as it stands there, to tell one from the next."""

    @property
    def empty(self) -> bool:
        return self.box is not None and not self.box.strip()


def read_screen(backend: Backend, screen: str) -> Reading:
    """Read a styled screen."""
    rules = backend.screen
    plain, marked = (_bottom(text, rules.box_rows) for text in unstyle(screen))
    working = any(compiled(pattern).search(plain) for pattern in rules.working)
    box = _box(rules, plain, marked)
    whole = box is not None and rules.box is not None
    for dialog in rules.dialogs:
        if (dialog.over or not whole) and (found := compiled(dialog.match).search(plain)):
            return Reading(None, dialog, working, plain[found.start() :])
    return Reading(box, None, working)


# --- styles ---


def unstyle(screen: str) -> tuple[str, str]:
    """A screen without styles, twice: as it reads, and with every faint character replaced by a mark."""
    pieces = SGR.split(OTHER_ESCAPE.sub("", screen.replace("\xa0", " ")))
    texts = pieces[::2]
    styles = [(False, False)]
    for codes in pieces[1::2]:
        styles.append(_style(codes, *styles[-1]))
    marked = [
        re.sub(r"\S", FAINT, text) if text and _is_faint(texts, styles, at) else text for at, text in enumerate(texts)
    ]
    return _trim("".join(texts)), _trim("".join(marked))


def _is_faint(texts: list[str], styles: list[tuple[bool, bool]], at: int) -> bool:
    """Whether a piece is; the cursor, a reversed cell, is what follows it: it may stand on a hint."""
    faint, reverse = styles[at]
    if reverse and len(texts[at]) == 1:
        return next((styles[after][0] for after in range(at + 1, len(texts)) if texts[after]), False)
    return faint


@lru_cache(maxsize=4096)
def _style(codes: str, faint: bool, reverse: bool) -> tuple[bool, bool]:
    words = iter(codes.split(";"))  # a word with colons is a colour or a kind of underline
    for word in words:
        match word:
            case "38" | "48" | "58":  # a colour: what follows are its numbers
                for _ in range(1 if next(words, "") == "5" else 3):
                    next(words, "")
            case "2":
                faint = True
            case "7":
                reverse = True
            case "22":
                faint = False
            case "27":
                reverse = False
            case "" | "0":
                faint = reverse = False
    return faint, reverse


def _trim(text: str) -> str:
    return "\n".join([line.rstrip() for line in text.split("\n")]).rstrip("\n")


def _bottom(text: str, rows: int) -> str:
    return "\n".join(text.split("\n")[-rows:])


# --- the input box ---


def _box(rules: Rules, plain: str, marked: str) -> str | None:
    if rules.box is None:
        return ""
    found = None
    for found in compiled(rules.box).finditer(plain):  # noqa: B007 - those above the last are of earlier prompts
        pass
    if found is None:
        return None
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
        right = _columns(plain[plain.rfind("\n", 0, found.start("frame")) + 1 : found.end("frame")])
    at = plain.rfind("\n", 0, start) + 1
    for row in plain[at:end].split("\n"):
        inside = len(row) if right is None else _fitting(row, right)
        yield marked[max(at, start) : max(at + inside, start)]
        at += len(row) + 1


def _columns(text: str) -> int:
    return len(text) if text.isascii() else sum(map(_width, text))


def _fitting(row: str, columns: int) -> int:
    """How many characters of a row are within so many columns."""
    if row.isascii():
        return columns
    for place, character in enumerate(row):
        columns -= _width(character)
        if columns < 0:
            return place
    return len(row)


@lru_cache(maxsize=4096)
def _width(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


# --- what it holds ---


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


@lru_cache(maxsize=1024)
def compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)
