"""A registry's text cut into pieces that can be read one by one, by its lines alone.

A cut is a guess that the reading of the pieces confirms: a quoted string or a bracket that runs over a cut leaves a
piece that is no YAML by itself, and then the file is read as a whole.
"""

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from registry.characters import has_odd

SECTIONS = ("agents", "history")

_MARKS = ("\n---", "\n...", "\n%")
_TOP = re.compile(r"\n(?=[^ \t#\r\n])(?!-[ \r\n])")
_FIRST = re.compile(r"(?=[^ \t#\r\n])(?!-[ \r\n])")
_NAME = re.compile(r"([A-Za-z_][A-Za-z0-9_-]*):(?=[ \r\n]|\Z)")
_HEADER = re.compile(r"[a-z]+:(?P<empty> *\{ *\})?(?: +#[^\r\n]*| *)(?:\r?\n|\Z)")
_FILLER = re.compile(r"(?: *(?:#[^\r\n]*)?\r?\n)*(?: *(?:#[^\r\n]*)?\Z)?")
_OPENING = re.compile(r"\ufeff?(?:(?: *(?:#[^\r\n]*)?\r?\n)*---(?: +#[^\r\n]*| *)\r?\n)?")
"""A byte order mark, and the line that some put in front of a document."""
_INDENT = re.compile(r" *")


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of the text, from one cut to the next."""

    kind: Literal["filler", "top", "header", "entry", "section"]
    """Comments, somebody's top-level key, the line `agents:`, one entry, or a section that is not cut further."""
    text: str
    section: str = ""
    context: str = ""
    """People's keys above it whose anchors it may use."""


def cut(text: str) -> list[Piece] | None:
    """All pieces, in order; None where the lines do not tell how the text is built."""
    opening = _OPENING.match(text)
    top = opening.end() if opening else 0
    if _is_odd(text, top):
        return None
    begins = [top] if _FIRST.match(text, top) else []
    begins += [found.end() for found in _TOP.finditer(text, top)]
    first = begins[0] if begins else len(text)
    if not is_filler(text[top:first]):
        return None
    pieces = [Piece("filler", text[:first])] if first else []
    context = ""
    for begin, end in pairwise([*begins, len(text)]):
        if text[begin] in "?:":
            return None
        named = _NAME.match(text, begin)
        if named is not None and named[1] in SECTIONS:
            entries = _entries(text[begin:end], named[1], context)
            if entries is None:
                return None
            pieces.extend(entries)
        else:
            piece = Piece("top", text[begin:end], context=context)
            pieces.append(piece)
            context += piece.text if "&" in piece.text else ""
    return pieces


def _is_odd(text: str, begin: int) -> bool:
    """Whether there is anything, behind `begin`, that makes lines something else than they seem."""
    if has_odd(text, begin) or text.count("\r") != text.count("\r\n"):
        return True
    return text.startswith(("---", "...", "%"), begin) or any(text.find(mark, begin) >= 0 for mark in _MARKS)


def is_filler(text: str) -> bool:
    """Whether there are only comments and blank lines."""
    found = _FILLER.match(text)
    return found is not None and found.end() == len(text)


def is_empty_section(header: str) -> bool:
    """Whether a header line says that nothing follows: `agents: {}`."""
    found = _HEADER.match(header)
    return found is not None and found["empty"] is not None


def empty_braces(header: str) -> tuple[int, int]:
    """Where the braces of `agents: {}` stand, or would."""
    found = _HEADER.match(header)
    if found is not None and found["empty"] is not None:
        return found.span("empty")
    colon = header.index(":") + 1
    return colon, colon


def _entries(text: str, section: str, context: str) -> list[Piece] | None:
    header = _HEADER.match(text)
    if header is None:
        return [Piece("section", text, section, context)]
    filler = _FILLER.match(text, header.end())
    first = filler.end() if filler else header.end()
    if first >= len(text):
        return [Piece("header", text, section)]
    if header["empty"] is not None:
        return None
    spaces = _INDENT.match(text, first)
    indent = len(spaces[0]) if spaces else 0
    begins = [first, *(found.start() + 1 for found in re.finditer(rf"\n {{{indent}}}(?=[^ #\r\n])", text[first:]))]
    begins[1:] = [first + begin for begin in begins[1:]]
    if not indent or any(text[begin + indent] in "?:" for begin in begins):
        return None
    cuts = pairwise([*begins, len(text)])
    return [
        Piece("header", text[:first], section),
        *(Piece("entry", text[begin:end], section, context) for begin, end in cuts),
    ]
