"""Whether a status file says that a phase is done: a template that nobody filled in does not. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

PLACEHOLDERS = (
    (re.compile(r"<(?![^<>]*(?:@|://))[^<>]*>"), "a placeholder in < >"),
    (re.compile(r"\{[^{}]*\}"), "a placeholder in { }"),
    (re.compile(r"\[(?![xX✓✔]\])[^\[\]]*\](?!\()"), "a placeholder or an empty box in [ ]"),
    (re.compile(r"(?:\s|^)(?:\.\.\.|…)|(?:\.\.\.|…)\s*$"), "dots in the place of words"),
    (re.compile(r"_{3,}|\?{3,}"), "a blank to be filled in"),
    (
        re.compile(r"\b(?:(?i:TBD|TBC)\b|XXX+\b|YYYY\b|HH:MM\b|(?:TODO|FIXME)(?=\s*(?:[:)]|$)))"),
        "a word that stands for what is not there yet",
    ),
)
CHOICE_BEFORE, CHOICE_AFTER = re.compile(r"\w *[|/] *\Z"), re.compile(r" *[|/] *\w")
FENCE = re.compile(r"^ {0,3}(?:(?P<ticks>`{3,})[^`]*|(?P<tildes>~{3,}).*)$")
BEGIN_COMMENT, END_COMMENT = "<!--", "-->"
LONGEST_LINE = 2_000


@dataclass(frozen=True)
class Status:
    """What a status file says of one phase."""

    markers: tuple[str, ...] = ()
    """The lines by which it is done."""
    refused: tuple[tuple[str, str], ...] = ()
    """Lines that look like it and do not count, and why."""


@lru_cache(maxsize=512)
def read_status(text: str, done: str) -> Status:
    """Remembered, for it is asked at every turn, and files seldom change."""
    pattern = re.compile(done)
    markers: list[str] = []
    refused: list[tuple[str, str]] = []
    for line in _meant(text):
        found = pattern.search(line)
        if found is None:
            continue
        why = _placeholder(line, found)
        if why:
            refused.append((line, why))
        else:
            markers.append(line)
    return Status(tuple(dict.fromkeys(markers)), tuple(dict.fromkeys(refused)))


def _meant(text: str) -> Iterator[str]:
    """The lines that are neither quoted nor commented out: those show how it is written, and do not say it."""
    fence, in_comment = "", False
    for line in (each.rstrip()[:LONGEST_LINE] for each in text.removeprefix("\ufeff").split("\n")):
        if fence:
            fence = "" if _closes(line, fence) else fence
        elif not in_comment and (mark := FENCE.match(line)):
            fence = mark["ticks"] or mark["tildes"]
        else:
            said, in_comment = _without_comments(line, in_comment=in_comment)
            if said.strip() and not said.lstrip().startswith(">"):
                yield said


def _closes(line: str, fence: str) -> bool:
    mark = line.strip()
    return len(mark) >= len(fence) and set(mark) == {fence[0]} and len(line) - len(line.lstrip()) < 4


def _without_comments(line: str, *, in_comment: bool) -> tuple[str, bool]:
    """What a line says outside of comments, and whether one goes on behind it."""
    said = ""
    while True:
        before, found, line = line.partition(END_COMMENT if in_comment else BEGIN_COMMENT)
        said += "" if in_comment else before
        if not found:
            return said.rstrip(), in_comment
        in_comment = not in_comment


def _placeholder(line: str, found: re.Match[str]) -> str:
    """Why a line is only a template; empty where it is not."""
    if any(group is not None and not group.strip() for group in found.groupdict().values()):
        return "a blank to be filled in"
    is_row = line.lstrip().startswith("|")  # of a table, whose cells are no choice
    if not is_row and (CHOICE_BEFORE.search(line[: found.start()]) or CHOICE_AFTER.match(line[found.end() :])):
        return "a choice that nobody made"
    return next((why for pattern, why in PLACEHOLDERS if pattern.search(line)), "")
