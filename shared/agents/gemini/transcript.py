"""Gemini CLI: `tmp/<project>/chats/session-<time>-<id>.jsonl` (seen with 0.61.0).

A message is written again, under its id, when its tools have run; and all of them, under new ids, when a request was
cancelled. Each is given once.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from shared.agents import transcript as json_lines
from shared.agents.transcript import (
    Document,
    Speaker,
    TranscriptEntry,
    TranscriptFormat,
    at,
    documents,
    first,
    newest,
    texts,
    tool_call,
)

OWN = "<session_context>"
WRAPPED = re.compile(r"\A<untrusted_context>\n(?:Output: )?(?P<said>.*?)\n?</untrusted_context>\s*\Z", re.DOTALL)


def locate(env: Mapping[str, str], workspace: Path, conversation: str | None) -> Path | None:
    root = Path(env.get("GEMINI_CLI_HOME") or env.get("HOME") or "/") / ".gemini"
    places = {str(workspace), str(workspace.resolve())}
    if conversation is None:
        files: Iterable[Path] = (file for folder in _folders(root, places) for file in folder.glob("chats/*.jsonl"))
        return next(iter(newest(files)), None)
    found = newest((root / "tmp").glob("*/chats/*.jsonl"))
    # A name ends with the first eight letters of the id: those are looked into first.
    found.sort(key=lambda file: conversation[:8] not in file.name)
    return next((file for file in found if first(file).get("sessionId") == conversation), None)


def _folders(root: Path, places: set[str]) -> list[Path]:
    names = {hashlib.sha256(place.encode()).hexdigest() for place in places}  # older versions
    try:
        known = json.loads((root / "projects.json").read_bytes())["projects"]
        names |= {known[place] for place in places if isinstance(known.get(place), str)}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        names |= {marker.parent.name for marker in (root / "tmp").glob("*/.project_root") if _holds(marker, places)}
    return [root / "tmp" / name for name in names if name and "/" not in name]


def _holds(marker: Path, places: set[str]) -> bool:
    try:
        return marker.read_text(encoding="utf-8").strip() in places
    except (OSError, ValueError):
        return False


def conversation_in(path: Path, workspace: Path) -> str | None:  # noqa: ARG001 - the signature of all formats
    return first(path).get("sessionId")


class _Once:
    """Passes each message once, and of a repeated one what is new in it."""

    def __init__(self) -> None:
        self._seen: set[str] = set()
        self._calls: set[str] = set()
        self._begun = False
        self._again_at: str | None = None

    def is_again(self, message: Document) -> bool:
        """Whether a message belongs to a repeated history, which has one time stamp and begins like a session."""
        stamp = str(message.get("timestamp"))
        if any(text.startswith(OWN) for text in _texts(message)):
            self._again_at = stamp if self._begun else None
        self._begun = True
        return self._again_at is not None and stamp == self._again_at

    def translate(self, line: Document) -> Iterator[TranscriptEntry]:
        changed = line.get("$set")
        if isinstance(changed, dict):
            messages = changed.get("messages")
            for message in messages if isinstance(messages, list) else []:
                if message.get("id") not in self._seen:
                    yield from self._message(message)
        elif "$rewindTo" in line:
            yield TranscriptEntry(
                Speaker.NOTE, "the conversation was taken back to an earlier place", at(line.get("timestamp"))
            )
        elif "type" in line:
            yield from self._message(line)

    def _message(self, message: Document) -> Iterator[TranscriptEntry]:
        known = message.get("id") in self._seen
        self._seen.add(str(message.get("id")))
        if not known and self.is_again(message):
            return
        time = at(message.get("timestamp"))
        if not known:
            yield from _said(message, time)
        for call in message.get("toolCalls") or []:
            if call.get("id") not in self._calls:
                self._calls.add(str(call.get("id")))
                yield from _called(call)


def _said(message: Document, time: Any) -> Iterator[TranscriptEntry]:
    match message.get("type"):
        case "user":
            yield from (
                TranscriptEntry(Speaker.USER, text, time) for text in _texts(message) if not text.startswith(OWN)
            )
        case "gemini":
            for thought in message.get("thoughts") or []:
                yield TranscriptEntry(
                    Speaker.THINKING, f"{thought.get('subject', '')}: {thought.get('description', '')}", time
                )
            yield from (TranscriptEntry(Speaker.AGENT, text, time) for text in _texts(message) if text)
        case "info" | "warning" | "error" as kind:
            text = " ".join(_texts(message))
            yield TranscriptEntry(Speaker.NOTE, text, time, failed=kind != "info" or "cancelled" in text)


def _texts(message: Document) -> list[str]:
    return texts(message.get("content"), "text")


def _called(call: Document) -> Iterator[TranscriptEntry]:
    time, ident = at(call.get("timestamp")), str(call.get("id"))
    yield tool_call(str(call.get("name")), call.get("args"), time=time, call=ident)
    for part in call.get("result") or []:
        answer = part.get("functionResponse", {}).get("response", {})
        said = str(answer.get("output", answer.get("error", "")))
        wrapped = WRAPPED.match(said)
        failed = call.get("status") != "success" or bool(re.search(r"^Exit Code: [1-9]", said, re.MULTILINE))
        yield TranscriptEntry(Speaker.RESULT, wrapped["said"] if wrapped else said, time, call=ident, failed=failed)


def user_texts(path: Path, after: int, conversation: str | None) -> tuple[list[str], int]:  # noqa: ARG001
    """The mark stays before a history that is being written again, until the line that ends it."""
    found: list[str] = []
    place = held = after
    again_at: str | None = None
    for line, end in documents(path, after):
        changed = line.get("$set") if line is not None else None
        if isinstance(changed, dict) and "messages" in changed:
            again_at = None
        elif line is not None and line.get("type") == "user":
            said = _texts(line)
            if any(text.startswith(OWN) for text in said):
                again_at, held = str(line.get("timestamp")), place
            elif again_at != str(line.get("timestamp")):
                again_at = None
                found += said
        place = end
    return found, place if again_at is None else held


READER = TranscriptFormat(
    locate=locate,
    conversation_in=conversation_in,
    entries=lambda path, _: json_lines.entries(path, _Once().translate),
    mark=lambda path, _: json_lines.mark(path),
    user_texts=user_texts,
)
