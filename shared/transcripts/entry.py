"""What a transcript holds, in the same words for every agent."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

TELLING = ("command", "cmd", "file_path", "filePath", "path", "pattern", "query", "url", "description", "prompt")


class Who(StrEnum):
    USER = "user"
    AGENT = "agent"
    THINKING = "thinking"
    TOOL = "tool"
    RESULT = "result"
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that was said or done. A result follows its tool call, not always at once: `call` joins the two."""

    who: Who
    text: str
    time: datetime | None = None
    tool: str = ""
    call: str = ""
    arguments: str = ""
    """All that a tool was called with, as JSON; `text` is what tells most of it."""
    failed: bool = False
    """A tool that failed or was refused, an interruption, a limit, an error."""


@dataclass(frozen=True, slots=True)
class Reader:
    """How the transcripts of one kind of agent are found and read. Nothing here raises for what a file holds."""

    locate: Callable[[Mapping[str, str], Path, str | None], Path | None]
    """From the agent's environment, its workspace and a conversation: the file; without one, the workspace's newest."""
    conversation_in: Callable[[Path, Path], str | None]
    """Which conversation of a workspace a located file holds; the newest if it holds several."""
    entries: Callable[[Path, str | None], Iterator[Entry]]
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


def tool_call(name: str, arguments: Any, *, time: datetime | None, call: str) -> Entry:
    if not isinstance(arguments, Mapping):
        return Entry(Who.TOOL, str(arguments or ""), time, tool=name, call=call, arguments=str(arguments or ""))
    whole = json.dumps(arguments, ensure_ascii=False)
    telling = next((arguments[key] for key in TELLING if arguments.get(key)), whole if arguments else "")
    text = " ".join(map(str, telling)) if isinstance(telling, list) else str(telling)
    return Entry(Who.TOOL, text, time, tool=name, call=call, arguments=whole)


def understood(read: Callable[[], Iterable[Entry]]) -> list[Entry] | None:
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
