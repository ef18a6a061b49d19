"""opencode: one SQLite database for all conversations (seen with 1.18.33). It is only read."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.parse import quote

from shared.agents.transcript import Speaker, TranscriptEntry, TranscriptFormat, at, json_object, tool_call, understood

BUSY_TIMEOUT_S = 2.0
NEWEST = "SELECT id FROM session WHERE directory = ? AND parent_id IS NULL ORDER BY time_updated DESC LIMIT 1"
PARTS = """
    SELECT message.id, message.data, part.data, part.time_created FROM message
    LEFT JOIN part ON part.message_id = message.id
    WHERE message.session_id = ? ORDER BY message.time_created, message.id, part.id
"""
PROMPTS = """
    SELECT part.data FROM part JOIN message ON message.id = part.message_id
    WHERE part.session_id = ? AND part.rowid > ? AND part.rowid <= ?
    AND json_extract(message.data, '$.role') = 'user' ORDER BY part.rowid
"""


def open_read_only(path: Path, timeout_s: float) -> sqlite3.Connection:
    if path.exists() and not path.is_file():
        raise sqlite3.OperationalError(f"{path} is no regular file")  # opening a pipe could block for ever
    address = f"file:{quote(str(path))}?mode=ro"
    return sqlite3.connect(address, uri=True, timeout=timeout_s, isolation_level=None, check_same_thread=False)


def _ask(path: Path, question: str, *values: Any) -> Iterator[tuple[Any, ...]]:
    with closing(open_read_only(path, BUSY_TIMEOUT_S)) as database:
        yield from database.execute(question, values)


def _first(path: Path, question: str, *values: Any) -> Any:
    try:
        return next((row[0] for row in _ask(path, question, *values)), None)
    except sqlite3.Error:
        return None


def locate(env: Mapping[str, str], workspace: Path, conversation: str | None) -> Path | None:
    data = Path(env.get("XDG_DATA_HOME") or Path(env.get("HOME") or "/") / ".local" / "share")
    path = data / "opencode" / "opencode.db"
    if conversation is None:
        return path if conversation_in(path, workspace) else None
    return path if _first(path, "SELECT id FROM session WHERE id = ?", conversation) else None


def conversation_in(path: Path, workspace: Path) -> str | None:
    places = dict.fromkeys((str(workspace), str(workspace.resolve())))
    found = (_first(path, NEWEST, place) for place in places)
    return next((str(conversation) for conversation in found if conversation), None)


def entries(path: Path, conversation: str | None) -> Iterator[TranscriptEntry]:
    unreadable = 0
    try:
        for (_, message), rows in groupby(_ask(path, PARTS, conversation), key=lambda row: row[:2]):
            about = json_object(message) or {}
            for _, _, part, created in rows:
                found = understood(partial(_read, about.get("role"), part, created)) if part else []
                unreadable += found is None
                yield from found or ()
            yield from _errors(about)
    except sqlite3.Error as error:
        yield TranscriptEntry(Speaker.NOTE, f"{path} can't be read: {error}", failed=True)
    if unreadable:
        said = f"what could not be read is left out: {unreadable} of the parts in {path.name}"
        yield TranscriptEntry(Speaker.NOTE, said, failed=True)


def _read(role: Any, text: str, created: Any) -> Iterator[TranscriptEntry]:
    part: dict[str, Any] = json.loads(text)
    time = at(created)
    match part.get("type"):
        case "text" if role == "user":
            yield from (TranscriptEntry(Speaker.USER, text, time) for text in _typed(part))
        case "text" if part.get("text"):
            yield TranscriptEntry(Speaker.AGENT, part["text"], time)
        case "reasoning" if part.get("text"):
            yield TranscriptEntry(Speaker.THINKING, part["text"], time)
        case "tool":
            state, call = part["state"], str(part.get("callID"))
            yield tool_call(part["tool"], state.get("input"), time=time, call=call)
            if state.get("status") in ("completed", "error"):
                failed = state["status"] == "error" or bool((state.get("metadata") or {}).get("exit"))
                said = str(state.get("output") or state.get("error") or "")
                yield TranscriptEntry(
                    Speaker.RESULT, said, at((state.get("time") or {}).get("end")), call=call, failed=failed
                )
        case "retry":
            yield TranscriptEntry(Speaker.NOTE, f"the model did not answer: {part.get('error')}", time, failed=True)
        case "compaction":
            yield TranscriptEntry(Speaker.NOTE, "the conversation so far was made shorter", time)


def _errors(about: dict[str, Any]) -> Iterator[TranscriptEntry]:
    error = about.get("error")
    if isinstance(error, dict):
        data, times = error.get("data"), about.get("time")
        said = data.get("message") if isinstance(data, dict) else None
        text = "interrupted" if error.get("name") == "MessageAbortedError" else str(said or error.get("name"))
        time = at(times.get("completed")) if isinstance(times, dict) else None
        yield TranscriptEntry(Speaker.NOTE, text, time, failed=True)


def _typed(part: dict[str, Any]) -> list[str]:
    """What people typed; opencode adds files that were mentioned as texts of its own."""
    is_typed = part.get("type") == "text" and not part.get("synthetic") and not part.get("ignored")
    return [part["text"]] if is_typed and isinstance(part.get("text"), str) else []


def mark(path: Path, conversation: str | None) -> int:  # noqa: ARG001 - every reader is asked alike
    return int(_first(path, "SELECT max(rowid) FROM part") or 0)


def user_texts(path: Path, after: int, conversation: str | None) -> tuple[list[str], int]:
    """The place is a row of the table of parts, which only grows."""
    place = max(after, mark(path, conversation))
    try:
        rows = list(_ask(path, PROMPTS, conversation, after, place))
    except sqlite3.Error:
        return [], after
    return [text for (part,) in rows for text in _typed(json_object(part) or {})], place


READER = TranscriptFormat(
    locate=locate, conversation_in=conversation_in, entries=entries, mark=mark, user_texts=user_texts
)
