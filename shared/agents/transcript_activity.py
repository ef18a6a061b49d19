"""Evidence from transcripts: a file is followed as it grows, and each program's class reads its lines.

Reading starts near the end of a file, and takes each complete line once. A file that was truncated, replaced or
rewritten is read again. Nothing raises for the contents of a file.
"""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from shared.agents.evidence import Evidence, EvidenceSource, LimitStatement
from shared.agents.last_words import promise_in, trouble_in
from shared.agents.parts import Parts
from shared.agents.transcript import Document, at, json_object, tool_call
from shared.contract.states import Activity, Trouble
from shared.system.files import FileState, state_in, state_of

LATE_S = 10.0
"""Agents write some lines out of order. A line that is even earlier is not late: the clock was set back."""
LONGEST_REASON = 300
LONGEST_LIMIT_WORDS = 2_000
REFUSALS_ARE_FINAL_FROM = 2
TURN_ENDED, ERROR, PENDING, QUESTION = "turn-ended", "error", "tool-pending", "question"
PROMPT = "prompt"


class TranscriptActivity(ABC):
    """Takes the lines of one conversation in order, and derives evidence from them. Pure.

    The time of the evidence is that of the last line that supports it. While a tool is called, nothing shows whether it
    runs or a person is asked first: then the evidence is weak.
    """

    def __init__(self) -> None:
        self._claim: Evidence | None = None
        self._promise = ""
        """The promise in what it said last."""
        self._refused = 0
        """How many turns in a row ended since the model refused the conversation."""
        self._pending: dict[str, tuple[str, bool]] = {}
        """The tool calls without a result, by id: their description, and whether the tool asks a person."""

    def take(self, document: Document) -> None:
        """Take one line. A line of an unknown form says nothing."""
        try:
            self._take(document)
        except (TypeError, AttributeError, KeyError, ValueError, RecursionError):
            return

    @abstractmethod
    def _take(self, document: Document) -> None: ...

    @classmethod
    def reader(cls, path: Path, _conversation: str | None) -> "ActivityReader | None":
        """A reader for a transcript of this program; None if it needs a conversation and there is none."""
        return JsonLinesReader(path, cls)

    def claim(self) -> Evidence | None:
        return self._claim

    def _say(self, says: Activity, when: float, why: str, rule: str = "", *, weak: bool = False) -> None:
        if rule == PROMPT:
            self._promise = ""
        if not self._is_late(when):
            promise = self._promise if says is Activity.WAITING else ""
            self._claim = Evidence(EvidenceSource.TRANSCRIPT, says, when, short(why), rule, weak, promise=promise)

    def _take_words(self, words: str) -> None:
        """Take what the agent itself says."""
        self._promise = promise_in(words)
        if words:
            self._refused = 0

    def _is_late(self, when: float) -> bool:
        return self._claim is not None and 0.0 < self._claim.at - when < LATE_S

    def _work(self, when: float, why: str, rule: str = "") -> None:
        """It works, or asks a person with a tool. A tool without a result is named, and makes the evidence weak."""
        question = next((called for called, asks in self._pending.values() if asks), None)
        if question is not None:
            self._say(Activity.NEEDS_APPROVAL, when, f"asks a question: {question}", QUESTION)
        elif self._pending:
            *_, (called, _) = self._pending.values()
            self._say(Activity.WORKING, when, f"called {called}, which has no result yet", PENDING, weak=True)
        else:
            self._say(Activity.WORKING, when, why, rule)

    def _end_turn(self, when: float, why: str, rule: str = TURN_ENDED) -> None:
        self._pending.clear()
        self._say(Activity.WAITING, when, why, rule)

    def _fail(
        self,
        says: Activity,
        when: float,
        why: str,
        *kind: object,
        resets_at: float | None = None,
        refused: bool = False,
    ) -> None:
        """The turn ended with an error, which also replaces a line just before it that only says that it ended.

        A conversation that is refused twice in a row will be refused again.
        """
        self._pending.clear()
        self._promise = ""
        self._refused = self._refused + 1 if refused else 0
        if self._refused >= REFUSALS_ARE_FINAL_FROM:
            says = Activity.FAILED
        if self._claim is not None and self._claim.rule == TURN_ENDED and self._is_late(when):
            when = self._claim.at
        self._say(says, when, why or "the model answered with an error", ERROR)
        if self._claim is not None and says is Activity.LIMITED:
            limit = LimitStatement(when, short(why, LONGEST_LIMIT_WORDS), resets_at=resets_at)
            self._claim = replace(self._claim, limit=limit)
        elif self._claim is not None and says is Activity.FAILED:
            trouble = Trouble.SESSION if self._refused >= REFUSALS_ARE_FINAL_FROM else trouble_in(why, *kind)
            self._claim = replace(self._claim, trouble=trouble)

    def _has_failed(self) -> bool:
        return self._claim is not None and self._claim.rule == ERROR


def moment(stamp: Any) -> float | None:
    """The time of a transcript's stamp, in seconds since 1970."""
    found = at(stamp)
    return found.timestamp() if found is not None else None


def call(name: Any, arguments: Any) -> str:
    """A tool call in a few words: `Bash: touch x`."""
    entry = tool_call(str(name), arguments, time=None, call="")
    return short(f"{entry.tool}: {entry.text}" if entry.text else entry.tool, 120)


def short(text: str, most: int = LONGEST_REASON) -> str:
    words = " ".join(text[: most * 4].split())
    return words if len(words) <= most else f"{words[: most - 1]}…"


def by_status(status: Any) -> Activity | None:
    """The activity by an HTTP status: limited, failed, or None."""
    match status:
        case 429:
            return Activity.LIMITED
        case 401 | 402 | 403:
            return Activity.FAILED
        case _:
            return None


FIRST_READ_BYTES = 256 << 10
MOST_FIRST_READ_BYTES = 16 << 20
"""How far back a complete line is searched, if the last one is very long."""
BYTES_PER_READ = 1 << 20
LONGEST_LINE = 32 << 20
"""Bytes. Longer lines are skipped."""
COMPARED_BYTES = 64
"""How many bytes before the current offset are compared to see whether the file was rewritten."""


@dataclass(frozen=True, slots=True)
class NewLines:
    """The objects in new lines; `anew` if they are of another or rewritten file."""

    documents: tuple[Document, ...] = ()
    anew: bool = False


NONE = NewLines()


class JsonLinesTail:
    """Reads the new lines of a growing file."""

    def __init__(self, path: Path, *, first_look: int = FIRST_READ_BYTES, at_once: int = BYTES_PER_READ) -> None:
        self._path = path
        self._first_look, self._at_once = first_look, at_once
        self._seen: FileState | None = None
        """The file's state when all of it was read; None while there is more."""
        self._file: tuple[int, int] | None = None
        self._place = 0
        self._before = b""
        self._rest = bytearray()
        self._passing_over = False

    @property
    def is_behind(self) -> bool:
        """Whether the last `read` did not reach the end of the file."""
        return self._file is not None and self._seen is None

    def read(self) -> NewLines | None:
        """The new lines, at most 1 MB at once; None while there is no file. An unchanged file costs one `stat`."""
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

    def _read(self, file: BinaryIO) -> NewLines:
        state = state_in(os.fstat(file.fileno()))
        anew = self._file != (state.device, state.inode) or not self._goes_on(file)
        if anew:
            self._file = (state.device, state.inode)
            self._begin(file, _line_near_the_end(file, state.size, self._first_look))
        file.seek(self._place)
        block = file.read(self._at_once)
        self._place += len(block)
        self._before = (self._before + block)[-COMPARED_BYTES:]
        self._seen = state if self._place >= state.size else None
        return NewLines(tuple(self._documents(block)), anew)

    def _begin(self, file: BinaryIO, place: int) -> None:
        file.seek(max(0, place - COMPARED_BYTES))
        self._place, self._before, self._passing_over = place, file.read(min(place, COMPARED_BYTES)), False
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
            if not passed_over and (document := json_object(whole)) is not None:
                yield document
        if not self._passing_over:
            self._rest += rest
        if len(self._rest) > LONGEST_LINE:
            self._rest.clear()
            self._passing_over = True


def _line_near_the_end(file: BinaryIO, size: int, wanted: int) -> int:
    """The start of a line near the end, with at least one complete line after it, if that is not too far back."""
    while wanted < size:
        file.seek(size - wanted)
        block = file.read(wanted)
        newline = block.find(b"\n")
        if block.find(b"\n", newline + 1) > newline >= 0 or wanted >= MOST_FIRST_READ_BYTES:
            return size - wanted + newline + 1 if newline >= 0 else size
        wanted *= 4
    return 0


READINGS: Parts[type[TranscriptActivity]] = Parts("activity", "READING")
"""By program."""


class ActivityReader(Protocol):
    def read(self) -> Evidence | None:
        """The evidence in the transcript now; None if there is none, or no file. Never raises."""


class JsonLinesReader:
    """A transcript that is a file of JSON lines."""

    def __init__(self, path: Path, reading: Callable[[], TranscriptActivity]) -> None:
        self._tail = JsonLinesTail(path)
        self._new = reading
        self._reading = reading()
        self._claim: Evidence | None = None

    def read(self) -> Evidence | None:
        news = self._tail.read()
        if news is None or news.anew:
            self._reading = self._new()
        for document in news.documents if news is not None else ():
            self._reading.take(document)
        if not self._tail.is_behind:  # until the end is read, the evidence is outdated
            self._claim = self._reading.claim()
        return self._claim


class SinceReader:
    """Drops evidence from before a program's start: another process wrote it."""

    def __init__(self, reader: ActivityReader, since: float) -> None:
        self._reader = reader
        self._since = since

    def read(self) -> Evidence | None:
        evidence = self._reader.read()
        return evidence if evidence is not None and evidence.at >= self._since else None


def reader_for(
    backend_kind: str, path: Path, conversation: str | None, *, since: float | None = None
) -> ActivityReader | None:
    """A reader for one conversation; None if the program's transcripts give no evidence.

    `since` is the start of the agent's program: a conversation that is resumed may end in the middle of a turn.
    """
    reading = READINGS.get(backend_kind)
    reader = reading.reader(path, conversation) if reading is not None else None
    return SinceReader(reader, since) if reader is not None and since is not None else reader
