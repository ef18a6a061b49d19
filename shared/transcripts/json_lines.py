"""Files of one JSON object a line that another program is still writing."""

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from shared.transcripts.entry import Entry, Who, understood

Document = dict[str, Any]
BLOCK = 65536


def documents(path: Path, start: int = 0) -> Iterator[tuple[Document | None, int]]:
    """Each line's object with the place behind it; None for a line that is none. A half-written last line is left.

    Reads as it goes, so that the size of the file does not matter. A file that is gone has no lines.
    """
    place = start
    try:
        with path.open("rb") as file:
            file.seek(start)
            for line in file:
                document = _read(line)
                if document is None and not line.endswith(b"\n"):
                    return
                place += len(line)
                if line.strip():
                    yield document, place
    except OSError:
        return


def _read(line: bytes) -> Document | None:
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def entries(path: Path, translate: Callable[[Document], Iterable[Entry]]) -> Iterator[Entry]:
    unreadable = 0
    for document, _ in documents(path):
        found = understood(partial(translate, document)) if document is not None else None
        unreadable += found is None
        yield from found or ()
    if unreadable:
        said = f"what could not be read is left out: {unreadable} of the lines of {path.name}"
        yield Entry(Who.NOTE, said, failed=True)


def user_texts(path: Path, after: int, prompts: Callable[[Document], Iterable[str]]) -> tuple[list[str], int]:
    found: list[str] = []
    place = after
    for document, place in documents(path, after):  # noqa: B007 - the last place is what counts
        if document is not None:
            try:
                found += filter(lambda text: isinstance(text, str), prompts(document))
            except (TypeError, AttributeError, KeyError, ValueError):
                continue
    return found, place


def mark(path: Path) -> int:
    """The place behind the last complete line."""
    try:
        with path.open("rb") as file:
            end = file.seek(0, 2)
            while end > 0:
                start = max(0, end - BLOCK)
                file.seek(start)
                newline = file.read(end - start).rfind(b"\n")
                if newline >= 0:
                    return start + newline + 1
                end = start
    except OSError:
        pass
    return 0


def first(path: Path) -> Document:
    """The first line's object; {} if there is none."""
    return next((document for document, _ in documents(path) if document is not None), {})


def newest(paths: Iterable[Path]) -> list[Path]:
    """Those that are there, the one that was written last first."""
    dated = []
    for path in paths:
        try:
            dated.append((path.stat().st_mtime_ns, str(path), path))
        except OSError:
            continue
    return [path for _, _, path in sorted(dated, reverse=True)]


def is_name(text: str) -> bool:
    """Whether a conversation's id can be part of a file name, and of nothing else."""
    return bool(text) and all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in text)
