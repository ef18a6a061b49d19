"""The transcripts that agents keep themselves: found by workspace or conversation, read into one common form.

Nothing here writes, and nothing raises for what a file holds: agents change their formats, and may be writing to it.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

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
    """One thing that was said or done. A result follows its tool call, not always at once: `call` joins the two."""

    who: Speaker
    text: str
    time: datetime | None = None
    tool: str = ""
    call: str = ""
    arguments: str = ""
    """All that a tool was called with, as JSON; `text` is what tells most of it."""
    failed: bool = False
    """A tool that failed or was refused, an interruption, a limit, an error."""


@dataclass(frozen=True, slots=True)
class TranscriptFormat:
    """How the transcripts of one kind of agent are found and read. Nothing here raises for what a file holds."""

    locate: Callable[[Mapping[str, str], Path, str | None], Path | None]
    """From the agent's environment, its workspace and a conversation: the file; without one, the workspace's newest."""
    conversation_in: Callable[[Path, Path], str | None]
    """Which conversation of a workspace a located file holds; the newest if it holds several."""
    entries: Callable[[Path, str | None], Iterator[TranscriptEntry]]
    """All of a conversation, as it is read. Lines that can't be read are counted, and told in a note at the end."""
    mark: Callable[[Path, str | None], int]
    """The place behind all that there is now, for `user_texts`; 0 while there is no file."""
    user_texts: Callable[[Path, int, str | None], tuple[list[str], int]]
    """What people sent since a place, each prompt once and as the agent recorded it, and the place behind it.

    A prompt counts as soon as the agent has taken it, if only into its queue.
    """


def same_prompt(sent: str, recorded: str) -> bool:
    """Whether a recorded prompt is the one that was sent. Agents trim it, and some write spaces for a tab."""
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
    """What was read, or None where a format is not what it was: no reason to show nothing of the rest."""
    try:
        found = list(read())
    except (TypeError, AttributeError, KeyError, ValueError, RecursionError):
        return None
    are_texts = all(isinstance(text, str) for entry in found for text in (entry.text, entry.tool, entry.call))
    return found if are_texts else None


def at(stamp: Any) -> datetime | None:
    """A time as transcripts write it: ISO 8601, or milliseconds since 1970."""
    try:
        if isinstance(stamp, str):
            found = datetime.fromisoformat(stamp)
            return found if found.tzinfo else found.replace(tzinfo=UTC)
        return datetime.fromtimestamp(stamp / 1000, UTC)
    except (ValueError, TypeError, OverflowError, OSError):
        return None


def texts(content: Any, *kinds: str) -> list[str]:
    """The texts in a message's content, which is one text or a list of typed blocks; blocks without a type count."""
    if isinstance(content, str):
        return [content]
    blocks = content if isinstance(content, list) else []
    found = [block for block in blocks if isinstance(block, dict) and block.get("type", kinds[0]) in kinds]
    return [block["text"] for block in found if isinstance(block.get("text"), str)]


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


READERS: Parts[TranscriptFormat] = Parts("transcript", "READER")
"""By the program that writes them."""
