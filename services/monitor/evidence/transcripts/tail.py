"""Follows a file of JSON lines that another program writes: each complete line once, however the file grows.

The first look begins near the end, for such a file may be long. A file that was cut, replaced, or written anew in its
place is begun anew. Nothing here raises for what the file holds.
"""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from services.monitor.evidence.file_state import FileState, state_in, state_of

Document = dict[str, Any]

FIRST_LOOK = 256 << 10
FIRST_LOOK_AT_MOST = 16 << 20
"""So far back is a complete line looked for, if the last one is very long."""
AT_ONCE = 1 << 20
LONGEST_LINE = 32 << 20
"""A longer line is passed over."""
KNOWN_BY = 64
"""So many bytes before the place that was reached tell whether it is still the same file."""


@dataclass(frozen=True, slots=True)
class News:
    """The new lines that are objects; `anew` says that they are of a file that was not looked at before."""

    documents: tuple[Document, ...] = ()
    anew: bool = False


NONE = News()


class Tail:
    def __init__(self, path: Path, *, first_look: int = FIRST_LOOK, at_once: int = AT_ONCE) -> None:
        self._path = path
        self._first_look, self._at_once = first_look, at_once
        self._seen: FileState | None = None
        """The file as it was when all of it had been read."""
        self._file: tuple[int, int] | None = None
        self._place = 0
        self._before = b""
        self._rest = bytearray()
        self._passing_over = False

    @property
    def is_behind(self) -> bool:
        """Whether the file held more, at the last look, than is read at once."""
        return self._file is not None and self._seen is None

    def read(self) -> News | None:
        """What is new, at most so much at once; None while there is no file. An unchanged file costs one `stat`."""
        state = state_of(self._path)
        if state is not None and state == self._seen:
            return NONE
        try:
            if state is not None:
                with self._path.open("rb") as file:
                    return self._read(file)
        except OSError:
            pass
        self._seen = self._file = None
        return None

    def _read(self, file: BinaryIO) -> News:
        state = state_in(os.fstat(file.fileno()))
        anew = self._file != (state.device, state.inode) or not self._goes_on(file)
        if anew:
            self._file = (state.device, state.inode)
            self._begin(file, _line_near_the_end(file, state.size, self._first_look))
        file.seek(self._place)
        block = file.read(self._at_once)
        self._place += len(block)
        self._before = (self._before + block)[-KNOWN_BY:]
        self._seen = state if self._place >= state.size else None
        return News(tuple(self._documents(block)), anew)

    def _begin(self, file: BinaryIO, place: int) -> None:
        file.seek(max(0, place - KNOWN_BY))
        self._place, self._before, self._passing_over = place, file.read(min(place, KNOWN_BY)), False
        self._rest.clear()

    def _goes_on(self, file: BinaryIO) -> bool:
        file.seek(self._place - len(self._before))
        return file.read(len(self._before)) == self._before

    def _documents(self, block: bytes) -> Iterator[Document]:
        *lines, rest = block.split(b"\n")
        for line in lines:
            whole, passed_over = bytes(self._rest) + line, self._passing_over
            self._rest.clear()
            self._passing_over = False
            if not passed_over and (document := _document(whole)) is not None:
                yield document
        if not self._passing_over:
            self._rest += rest
        if len(self._rest) > LONGEST_LINE:
            self._rest.clear()
            self._passing_over = True


def _line_near_the_end(file: BinaryIO, size: int, wanted: int) -> int:
    """Where a line begins from which on there is at least one that is complete, if that is not too far back."""
    while wanted < size:
        file.seek(size - wanted)
        block = file.read(wanted)
        newline = block.find(b"\n")
        if block.find(b"\n", newline + 1) > newline >= 0 or wanted >= FIRST_LOOK_AT_MOST:
            return size - wanted + newline + 1 if newline >= 0 else size
        wanted *= 4
    return 0


def _document(line: bytes) -> Document | None:
    try:
        found = json.loads(line) if line.strip() else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None
