"""Whether a status file says that a phase is done: a template that nobody filled in does not. Pure."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

PLACEHOLDERS = (
    (re.compile(r"<(?![^<>]*(?:@|://))[^<>]+>"), "a placeholder in < >"),
    (re.compile(r"\{[^{}]*\}"), "a placeholder in { }"),
    (re.compile(r"\[(?![xX✓✔]\])[^\[\]]*\](?!\()"), "a placeholder or an empty box in [ ]"),
    (re.compile(r"\.\.\.|…"), "dots in the place of words"),
    (re.compile(r"_{3,}|\?{3,}"), "a blank to be filled in"),
    (re.compile(r"\b(?:TBD|TBC|TODO|FIXME|XXX+|YYYY|HH:MM)\b"), "a word that stands for what is not there yet"),
    (re.compile(r"\b[A-Z][A-Z_-]+ *[|/] *[A-Z][A-Z_ -]+"), "a choice that nobody made"),
)
FENCE = re.compile(r"^ {0,3}(```+|~~~+)")
COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
LONGEST_LINE = 2_000


@dataclass(frozen=True)
class Status:
    """What a status file says of one phase."""

    markers: tuple[str, ...] = ()
    """The lines by which it is done."""
    refused: tuple[tuple[str, str], ...] = ()
    """Lines that look like it and do not count, and why."""


def read_status(text: str, done: str) -> Status:
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
    # A comment is one for who reads the file as Markdown; its lines go, those around it stay apart.
    plain = COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)
    fence = ""
    for line in (each.rstrip()[:LONGEST_LINE] for each in plain.split("\n")):
        mark = FENCE.match(line)
        if fence:
            if mark and mark[1][0] == fence[0] and len(mark[1]) >= len(fence) and not line[mark.end() :].strip():
                fence = ""
            continue
        if mark:
            fence = mark[1]
        elif not line.lstrip().startswith(">"):
            yield line


def _placeholder(line: str, found: re.Match[str]) -> str:
    """Why a line is only a template; empty where it is not."""
    if any(group is not None and not group.strip() for group in found.groups()):
        return "a blank to be filled in"
    return next((why for pattern, why in PLACEHOLDERS if pattern.search(line)), "")
