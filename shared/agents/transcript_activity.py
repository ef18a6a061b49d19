"""What a transcript says about an agent's activity: read as it grows, each program's format by its own class.

A file of JSON lines is followed from near its end, each complete line once. A file that was cut, replaced or rewritten
is read again from the start. Nothing here raises for what a file holds.
"""

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from shared.agents.evidence import Evidence, EvidenceSource, LimitStatement
from shared.agents.last_words import promise_in, trouble_in
from shared.agents.parts import Parts
from shared.agents.transcript import at, tool_call
from shared.contract.states import Activity, Trouble
from shared.system.files import FileState, state_in, state_of

Document = dict[str, Any]

LATE_S = 10.0
"""Agents write some lines out of order. One that is earlier than this is no late one: the clock was set back."""
CUT_AT = 300
WORDS_AT_MOST = 2_000
REFUSED_FOR_GOOD = 2
TURN_ENDED, ERROR, PENDING, QUESTION = "turn-ended", "error", "tool-pending", "question"
PROMPT = "prompt"


class TranscriptActivity(ABC):
    """Takes the lines of one conversation in turn. Pure: the same lines, the same claim.

    A claim's time is that of the last line that says so: what an agent wrote later tells more than what was told of it
    earlier. While a tool runs, nothing is written, and nothing tells whether it runs or a person is asked first: then
    the claim is weak.
    """

    def __init__(self) -> None:
        self._claim: Evidence | None = None
        self._promise = ""
        """Until when it waits, by what it said last."""
        self._refused = 0
        """How many turns in a row ended because the conversation itself was refused."""
        self._pending: dict[str, tuple[str, bool]] = {}
        """The tools that were called and have no result yet: what each was called for, and whether it asks a person."""

    def take(self, document: Document) -> None:
        """Take one line. One that is not what was measured says nothing."""
        try:
            self._take(document)
        except (TypeError, AttributeError, KeyError, ValueError, RecursionError):
            return

    @abstractmethod
    def _take(self, document: Document) -> None: ...

    @classmethod
    def reader(cls, path: Path, _conversation: str | None) -> "ActivityReader | None":
        """What reads such a transcript: most are files of lines, one for each conversation."""
        return JsonLinesReader(path, cls)

    def claim(self) -> Evidence | None:
        return self._claim

    def _say(self, says: Activity, when: float, why: str, rule: str = "", *, weak: bool = False) -> None:
        if rule == PROMPT:
            self._promise = ""
        if not self._is_late(when):
            promise = self._promise if says is Activity.WAITING else ""
            self._claim = Evidence(EvidenceSource.TRANSCRIPT, says, when, short(why), rule, weak, promise=promise)

    def _hear(self, words: str) -> None:
        """Take in what the agent itself says."""
        self._promise = promise_in(words)
        if words:
            self._refused = 0

    def _is_late(self, when: float) -> bool:
        return self._claim is not None and 0.0 < self._claim.at - when < LATE_S

    def _work(self, when: float, why: str, rule: str = "") -> None:
        """It works; on what, where a tool was called. Some tools do nothing but ask."""
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
        """The turn ended with an error. What says no more than that it ended may stand before it.

        A conversation that is refused twice in a row would be refused again.
        """
        self._pending.clear()
        self._promise = ""
        self._refused = self._refused + 1 if refused else 0
        if self._refused >= REFUSED_FOR_GOOD:
            says = Activity.FAILED
        if self._claim is not None and self._claim.rule == TURN_ENDED and self._is_late(when):
            when = self._claim.at
        self._say(says, when, why or "the model answered with an error", ERROR)
        if self._claim is not None and says is Activity.LIMITED:
            limit = LimitStatement(when, short(why, WORDS_AT_MOST), resets_at=resets_at)
            self._claim = replace(self._claim, limit=limit)
        elif self._claim is not None and says is Activity.FAILED:
            trouble = Trouble.SESSION if self._refused >= REFUSED_FOR_GOOD else trouble_in(why, *kind)
            self._claim = replace(self._claim, trouble=trouble)

    def _has_failed(self) -> bool:
        return self._claim is not None and self._claim.rule == ERROR


def moment(stamp: Any) -> float | None:
    """A time as transcripts write it, in seconds since 1970."""
    found = at(stamp)
    return found.timestamp() if found is not None else None


def call(name: Any, arguments: Any) -> str:
    """A tool call in a few words: `Bash: touch x`."""
    told = tool_call(str(name), arguments, time=None, call="")
    return short(f"{told.tool}: {told.text}" if told.text else told.tool, 120)


def short(text: str, most: int = CUT_AT) -> str:
    words = " ".join(text[: most * 4].split())
    return words if len(words) <= most else f"{words[: most - 1]}…"


def by_status(status: Any) -> Activity | None:
    """What an HTTP status means for the agent: it is limited, or can't go on by itself."""
    match status:
        case 429:
            return Activity.LIMITED
        case 401 | 402 | 403:
            return Activity.FAILED
        case _:
            return None


FIRST_LOOK = 256 << 10
FIRST_LOOK_AT_MOST = 16 << 20
"""So far back is a complete line looked for, if the last one is very long."""
AT_ONCE = 1 << 20
LONGEST_LINE = 32 << 20
"""A longer line is passed over."""
KNOWN_BY = 64
"""So many bytes before the place that was reached tell whether it is still the same file."""


@dataclass(frozen=True, slots=True)
class NewLines:
    """The new lines that are objects; `anew` says that they are of a file that was not looked at before."""

    documents: tuple[Document, ...] = ()
    anew: bool = False


NONE = NewLines()


class JsonLinesTail:
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

    def read(self) -> NewLines | None:
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

    def _read(self, file: BinaryIO) -> NewLines:
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
        return NewLines(tuple(self._documents(block)), anew)

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


READINGS: Parts[type[TranscriptActivity]] = Parts("activity", "READING")
"""By the kind of the backend."""


class ActivityReader(Protocol):
    def read(self) -> Evidence | None:
        """What the transcript says now; None where it says nothing, or is not there. Never raises."""


class JsonLinesReader:
    """A transcript that is a file of lines."""

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
        if not self._tail.is_behind:  # what is read of a long piece says what was, not what is
            self._claim = self._reading.claim()
        return self._claim


class SinceReader:
    """What is said of a program that runs since a moment: before, another one wrote the conversation."""

    def __init__(self, reader: ActivityReader, since: float) -> None:
        self._reader = reader
        self._since = since

    def read(self) -> Evidence | None:
        said = self._reader.read()
        return said if said is not None and said.at >= self._since else None


def reader_for(
    backend_kind: str, path: Path, conversation: str | None, *, since: float | None = None
) -> ActivityReader | None:
    """A reader of one conversation; None for a kind of agent whose transcripts say nothing of the kind.

    `since` is when the agent's program started: a conversation that is resumed may end in the middle of a turn.
    """
    reading = READINGS.get(backend_kind)
    reader = reading.reader(path, conversation) if reading is not None else None
    return SinceReader(reader, since) if reader is not None and since is not None else reader
