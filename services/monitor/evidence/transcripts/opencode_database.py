"""Reads the last messages of one conversation out of opencode's database, after something was written to it."""

import json
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote
from weakref import WeakValueDictionary

from services.monitor.evidence.evidence import Evidence
from services.monitor.evidence.file_state import FileState, state_of
from services.monitor.evidence.transcripts.opencode import claim_of
from services.monitor.evidence.transcripts.reading import Document

Written = tuple[FileState, FileState | None]

WAITS_S = 0.05
"""So long is a writer waited for. Readers of such a database wait for nobody, unless it is being repaired."""
MESSAGES = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created DESC, id DESC LIMIT 4"
PARTS = "SELECT id, time_updated, data FROM part WHERE message_id = ? ORDER BY id"


class OpencodeReader:
    def __init__(self, path: Path, conversation: str) -> None:
        self._path = path
        self._conversation = conversation
        self._database: _Database | None = None
        self._written: Written | None = None
        self._claim: Evidence | None = None

    def read(self) -> Evidence | None:
        """What it says now. An unchanged database costs two `stat`, of itself and of what was written last."""
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
                {**_document(part), "id": part_id, "changed": changed}
                for part_id, changed, part in self._database.ask(PARTS, ident)
            ]
            yield {"message": _document(data), "parts": parts}


class _Database:
    """One connection for all conversations in it."""

    def __init__(self, path: Path, identity: tuple[int, int]) -> None:
        self.identity = identity
        self._connection = sqlite3.connect(
            f"file:{quote(str(path))}?mode=ro", uri=True, timeout=WAITS_S, isolation_level=None, check_same_thread=False
        )

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


def _document(text: Any) -> Document:
    try:
        found = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
