"""Agents' own transcripts: found by workspace or conversation, and read into one common form.

Read only. Nothing raises for the contents of a file: agents change their formats, and may be writing.
"""

import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from shared.agents.parts import Parts

TELLING = ("command", "cmd", "file_path", "filePath", "path", "pattern", "query", "url", "description", "prompt")


class Speaker(StrEnum):
    USER = "user"
    AGENT = "agent"
    THINKING = "thinking"
    TOOL = "tool"
    RESULT = "result"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One message, tool call or result. `call` joins a result to its tool call, which may be several entries before."""

    who: Speaker
    text: str
    time: datetime | None = None
    tool: str = ""
    call: str = ""
    arguments: str = ""
    """All arguments of a tool call, as JSON; `text` is the most telling one."""
    failed: bool = False
    """Whether it is a failed or refused tool, an interruption, a limit or an error."""


@dataclass(frozen=True, slots=True)
class TranscriptFormat:
    """How the transcripts of one program are found and read. Nothing raises for the contents of a file."""

    locate: Callable[[Mapping[str, str], Path, str | None], Path | None]
    """The file of a conversation, from the agent's environment and workspace; None: the workspace's newest."""
    conversation_in: Callable[[Path, Path], str | None]
    """The conversation in a file, for a workspace; the newest if there are several."""
    entries: Callable[[Path, str | None], Iterator[TranscriptEntry]]
    """The entries of a conversation. A note at the end counts the lines that can't be read."""
    mark: Callable[[Path, str | None], int]
    """The current end, for `user_texts`; 0 while there is no file."""
    user_texts: Callable[[Path, int, str | None], tuple[list[str], int]]
    """The prompts since a mark, each once and as the agent recorded it, and the new mark.

    A prompt counts as soon as the agent has it in its queue.
    """


SILENT_AT_MOST_BYTES = 1_000_000
"""What programs write of their own accord into a conversation is far less."""


def is_silent(reader: TranscriptFormat, path: Path, conversation: str | None) -> bool:
    """Whether nothing was said in a conversation, so that its program would not resume it.

    False where that can't be told. Reads no further than to the first thing that was said.
    """
    try:
        if path.suffix != ".db" and path.stat().st_size > SILENT_AT_MOST_BYTES:
            return False
    except OSError:
        return False
    # A failed note may be about lines that can't be read.
    return not any(each.who is not Speaker.NOTE or each.failed for each in reader.entries(path, conversation))


def same_prompt(sent: str, recorded: str) -> bool:
    """Whether a recorded prompt is the one that was sent. Agents trim it, and some replace tabs by spaces."""
    return sent.split() == recorded.split()


def tool_call(name: str, arguments: Any, *, time: datetime | None, call: str) -> TranscriptEntry:
    if not isinstance(arguments, Mapping):
        return TranscriptEntry(
            Speaker.TOOL, str(arguments or ""), time, tool=name, call=call, arguments=str(arguments or "")
        )
    whole = json.dumps(arguments, ensure_ascii=False)
    telling = next((arguments[key] for key in TELLING if arguments.get(key)), whole if arguments else "")
    text = " ".join(map(str, telling)) if isinstance(telling, list) else str(telling)
    return TranscriptEntry(Speaker.TOOL, text, time, tool=name, call=call, arguments=whole)


def understood(read: Callable[[], Iterable[TranscriptEntry]]) -> list[TranscriptEntry] | None:
    """The entries of one line, or None if the format is unknown: the rest can still be shown."""
    try:
        found = list(read())
    except (TypeError, AttributeError, KeyError, ValueError, RecursionError):
        return None
    are_texts = all(isinstance(text, str) for entry in found for text in (entry.text, entry.tool, entry.call))
    return found if are_texts else None


def at(stamp: Any) -> datetime | None:
    """The time of a transcript's stamp: ISO 8601, or milliseconds since 1970."""
    try:
        if isinstance(stamp, str):
            found = datetime.fromisoformat(stamp)
            return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
        return datetime.fromtimestamp(stamp / 1000, UTC)
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def texts(content: Any, *kinds: str) -> list[str]:
    """The texts in a message's content: one text, or blocks of these types. Blocks without a type count."""
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    found = [block for block in blocks if isinstance(block, dict) and block.get("type", kinds[0]) in kinds]
    return [block["text"] for block in found if isinstance(block.get("text"), str)]


Document = dict[str, Any]
BLOCK = 65536
LONGEST_LINE = 32 * 1024 * 1024


def opened(path: Path) -> BinaryIO:
    """A regular file, to be read. Raises OSError for anything else, which may block for ever or have no end."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    file = os.fdopen(descriptor, "rb")
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        file.close()
        raise OSError(f"{path} is no regular file")
    return file


def documents(path: Path, start: int = 0) -> Iterator[tuple[Document | None, int]]:
    """The object of each line, None if it is none, and the offset after it. A half-written last line is left out.

    Reads line by line, so that the size of the file does not matter, and not what is written meanwhile. A missing file,
    and anything but a regular one, has no lines. A line without end is the last one.
    """
    place = start
    try:
        with opened(path) as file:
            end = os.fstat(file.fileno()).st_size
            file.seek(start)
            while place < end and (line := file.readline(LONGEST_LINE)):
                document = json_object(line)
                if document is None and not line.endswith(b"\n"):
                    return
                place += len(line)
                if line.strip():
                    yield document, place
    except OSError:
        return


def json_object(text: str | bytes) -> Document | None:
    """The object in a JSON text; None for anything else."""
    try:
        document = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return None
    return document if isinstance(document, dict) else None


def entries(path: Path, translate: Callable[[Document], Iterable[TranscriptEntry]]) -> Iterator[TranscriptEntry]:
    unreadable = 0
    for document, _ in documents(path):
        found = understood(partial(translate, document)) if document is not None else None
        unreadable += found is None
        yield from found or ()
    if unreadable:
        said = f"what could not be read is left out: {unreadable} of the lines of {path.name}"
        yield TranscriptEntry(Speaker.NOTE, said, failed=True)


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
    """The offset after the last complete line."""
    try:
        with opened(path) as file:
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
    """The existing files, the one that was written last first."""
    dated = []
    for path in paths:
        try:
            dated.append((path.stat().st_mtime_ns, str(path), path))
        except OSError:
            continue
    return [path for _, _, path in sorted(dated, reverse=True)]


def is_name(text: str) -> bool:
    """Whether a conversation's id is safe in a file name."""
    return bool(text) and all(letter.isascii() and (letter.isalnum() or letter in "-_") for letter in text)


def json_lines_format(
    locate: Callable[[Mapping[str, str], Path, str | None], Path | None],
    conversation_in: Callable[[Path, Path], str | None],
    translate: Callable[[Document], Iterable[TranscriptEntry]],
    prompts: Callable[[Document], Iterable[str]],
) -> TranscriptFormat:
    """The format of a program that writes one file of JSON lines per conversation."""
    return TranscriptFormat(
        locate,
        conversation_in,
        entries=lambda path, _: entries(path, translate),
        mark=lambda path, _: mark(path),
        user_texts=lambda path, after, _: user_texts(path, after, prompts),
    )


READERS: Parts[TranscriptFormat] = Parts("transcript", "READER")
"""By program."""
