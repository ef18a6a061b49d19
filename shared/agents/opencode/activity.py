"""opencode (seen with 1.18.33): the last messages of a conversation in its database, which all conversations share.

A message appears when it begins, and is complete when it has a completion time. A tool counts as running while a person
is asked about it; once it runs, most have `metadata`. Nothing is written while it waits for a limit and retries. A
subagent has a conversation of its own. The database is read again only after it was written.
"""

import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

from shared.agents.evidence import Evidence
from shared.agents.opencode.transcript import open_read_only
from shared.agents.transcript import Document, json_object, texts
from shared.agents.transcript_activity import TranscriptActivity, by_status, call
from shared.contract.states import Activity
from shared.system.files import FileState, state_of

REJECTED = "The user rejected permission to use this specific tool call."
DISMISSED = "The user dismissed this question"
"""The error of a tool whose refusal ends the turn. After a rejection with more words the turn goes on."""
ASKS = {"question"}
SUBAGENT = "task"
"""A tool that counts as running while its subagent asks."""
HELD = {"ProviderAuthError", "ProviderModelNotFoundError"}
GOES_ON = {"tool-calls", "unknown"}


class OpencodeActivity(TranscriptActivity):
    """Takes `{"message": …, "parts": […]}`, and again when the message has changed."""

    @classmethod
    def reader(cls, path: Path, conversation: str | None) -> "OpencodeActivityReader | None":
        return OpencodeActivityReader(path, conversation) if conversation is not None else None

    def _take(self, document: Document) -> None:
        message, parts = document["message"], [part for part in document["parts"] if isinstance(part, dict)]
        when = _last_change(message, parts)
        match message.get("role"):
            case "user":
                said = " ".join(text for part in parts for text in texts([part], "text") if not part.get("synthetic"))
                self._work(when, f"took a prompt: {said}" if said else "took a prompt", "prompt")
            case "assistant":
                self._assistant(message, parts, when)

    def _assistant(self, message: Document, parts: Sequence[Document], when: float) -> None:
        tools = [part for part in parts if part.get("type") == "tool"]
        under_way = [part for part in tools if part["state"].get("status") in ("pending", "running")]
        self._pending = {
            str(part.get("id")): (call(part["tool"], part["state"].get("input")), part["tool"] in ASKS)
            for part in under_way
            if part["tool"] == SUBAGENT or not part["state"].get("metadata")
        }
        error = message.get("error")
        ended = message["time"].get("completed") is not None
        if isinstance(error, dict):
            self._error(error, when)
        elif not ended and under_way:
            self._work(when, f"runs {call(under_way[-1]['tool'], under_way[-1]['state'].get('input'))}", "tool-running")
        elif not ended:
            self._work(when, "the model answers", "answer")
        elif any(_is_refused(part["state"]) for part in tools):
            self._end_turn(when, "a tool was refused", "rejected")
        elif message.get("finish") in GOES_ON:
            self._work(when, "its tools have run", "tool-result")
        else:
            self._take_words("\n".join(text for part in parts for text in texts([part], "text")))
            self._end_turn(when, "its answer is complete" if message.get("finish") else "its turn ended")

    def _error(self, error: Document, when: float) -> None:
        about = error.get("data")
        data = about if isinstance(about, dict) else {}
        said = str(data.get("message") or error.get("name"))
        if error.get("name") == "MessageAbortedError":
            self._end_turn(when, "it was interrupted", "interrupted")
        elif error.get("name") in HELD:
            self._fail(Activity.FAILED, when, said, error.get("name"))
        else:
            self._fail(by_status(data.get("statusCode")) or _by_words(said), when, said, data.get("statusCode"))


def claim_of(documents: Sequence[Document]) -> Evidence | None:
    """The evidence in the last messages of a conversation, in the order of their last changes. Pure.

    By creation, a queued prompt would come after the answer that is still being written.
    """
    reading = OpencodeActivity()
    for document in sorted(documents, key=_changed):
        reading.take(document)
    return reading.claim()


def _changed(document: Document) -> float:
    try:
        return _last_change(document["message"], document["parts"])
    except (TypeError, AttributeError, KeyError, ValueError):
        return 0.0


def _last_change(message: Document, parts: Sequence[Document]) -> float:
    """In seconds since 1970; `changed` is the row's own time."""
    times = [message["time"].get("completed") or message["time"]["created"]]
    times += [part["changed"] for part in parts if isinstance(part.get("changed"), int)]
    for part in parts:
        time = part["state"].get("time") if isinstance(part.get("state"), dict) else part.get("time")
        times += [found for found in (time or {}).values() if isinstance(found, int)]
    return float(max(times)) / 1000


def _is_refused(state: Document) -> bool:
    said = state.get("error")
    return state.get("status") == "error" and isinstance(said, str) and (said == REJECTED or said.startswith(DISMISSED))


def _by_words(said: Any) -> Activity:
    words = str(said).lower()
    return Activity.FAILED if "credit balance" in words or "insufficient" in words else Activity.WAITING


Written = tuple[FileState, FileState | None]

BUSY_TIMEOUT_S = 0.05
"""The busy timeout. Readers of a WAL database wait only while it is being recovered."""
MESSAGES = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT 4"
PARTS = "SELECT id, time_updated, data FROM part WHERE message_id = ? ORDER BY id"


class OpencodeActivityReader:
    def __init__(self, path: Path, conversation: str) -> None:
        self._path = path
        self._conversation = conversation
        self._database: _Database | None = None
        self._written: Written | None = None
        self._claim: Evidence | None = None

    def read(self) -> Evidence | None:
        """The evidence now. An unchanged database costs two `stat`, of itself and of its WAL."""
        written = _written(self._path)
        if written is None:
            self._database = self._written = self._claim = None
        elif written != self._written:
            try:
                self._claim = claim_of(list(self._messages(written)))
                self._written = written if all(state is None or state.is_settled for state in written) else None
            except sqlite3.Error:  # busy, being made, or not what was measured
                self._database = None
        return self._claim

    def _messages(self, written: Written) -> Iterator[Document]:
        identity = (written[0].device, written[0].inode)
        if self._database is None or self._database.identity != identity:
            self._database = _opened(self._path, identity)
        for ident, data in self._database.ask(MESSAGES, self._conversation):
            parts = [
                {**(json_object(part) or {}), "id": part_id, "changed": changed}
                for part_id, changed, part in self._database.ask(PARTS, ident)
            ]
            yield {"message": json_object(data) or {}, "parts": parts}


class _Database:
    """One connection for all conversations in a database."""

    def __init__(self, path: Path, identity: tuple[int, int]) -> None:
        self.identity = identity
        self._connection = open_read_only(path, BUSY_TIMEOUT_S)

    def ask(self, question: str, value: str) -> list[tuple[Any, ...]]:
        return self._connection.execute(question, (value,)).fetchall()

    def __del__(self) -> None:
        self._connection.close()


_OPEN: WeakValueDictionary[tuple[str, tuple[int, int]], _Database] = WeakValueDictionary()


def _opened(path: Path, identity: tuple[int, int]) -> _Database:
    key = (str(path), identity)
    found = _OPEN.get(key)
    if found is None:
        _OPEN[key] = found = _Database(path, identity)
    return found


def _written(path: Path) -> Written | None:
    itself = state_of(path)
    return (itself, state_of(Path(f"{path}-wal"))) if itself is not None else None


READING = OpencodeActivity
