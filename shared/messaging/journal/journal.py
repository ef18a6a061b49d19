"""One service's view of the journal: its transactions, all events, cursors, memory and effects; and a reader's."""

import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.contract.ids import Epoch
from shared.messaging.journal.database import Database
from shared.messaging.journal.read_access import ReadOnlyDatabase
from shared.messaging.journal.requests import Request, Requests, insert_requests

ENTRIES_PER_PAGE = 1_000


@dataclass(frozen=True, slots=True)
class JournalEntry:
    """One event as it is stored and published. `source` is a service of this host, `at` epoch seconds."""

    source: str
    seq: int
    at: float
    topic: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class Effect:
    """What is done after a commit. `key` is unique within a service."""

    kind: str
    key: str
    payload: dict[str, Any]


class Transaction:
    """The writes of one turn: events, cursors, memory, requests and effects. `Journal.transaction` commits them."""

    def __init__(self, connection: sqlite3.Connection, service: str) -> None:
        self._connection = connection
        self._service = service

    def append(self, build: list[Callable[[int], tuple[str, bytes]]], at: float) -> list[JournalEntry]:
        """Write events. Each function gets its event's number and returns topic and payload, which hold the number."""
        (last,) = self._connection.execute("SELECT seq FROM source WHERE name = ?", (self._service,)).fetchone()
        entries = [JournalEntry(self._service, seq, at, *make(seq)) for seq, make in enumerate(build, start=last + 1)]
        rows = [(entry.source, entry.seq, entry.at, entry.topic, entry.payload) for entry in entries]
        self._connection.executemany("INSERT INTO event VALUES (?, ?, ?, ?, ?)", rows)
        self._connection.execute("UPDATE source SET seq = ? WHERE name = ?", (last + len(rows), self._service))
        return entries

    def move_cursor(self, source: str, epoch: str, seq: int) -> None:
        self._connection.execute(
            "INSERT INTO cursor VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET seq = excluded.seq",
            (self._service, source, epoch, seq),
        )

    def remember(self, key: str, value: Any) -> None:
        """Store a JSON value of the service's memory; None removes it."""
        if value is None:
            self._connection.execute("DELETE FROM memory WHERE owner = ? AND key = ?", (self._service, key))
            return
        self._connection.execute(
            "INSERT INTO memory VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET value = excluded.value",
            (self._service, key, json.dumps(value)),
        )

    def add_effect(self, effect: Effect) -> None:
        """Store an effect. One with the same key that is not done yet stays as it is."""
        self._connection.execute(
            "INSERT OR IGNORE INTO effect VALUES (?, ?, ?, ?)",
            (self._service, effect.key, effect.kind, json.dumps(effect.payload)),
        )

    def remove_effect(self, effect: Effect) -> None:
        self._connection.execute("DELETE FROM effect WHERE owner = ? AND key = ?", (self._service, effect.key))

    def answer(self, request_id: str, payload: bytes, at: float) -> None:
        """Store the final reply to a request of this service. The first one counts."""
        self._connection.execute(
            "UPDATE request SET answer = ?, answered = ? WHERE owner = ? AND id = ? AND answer IS NULL",
            (payload, at, self._service, request_id),
        )

    def add_request(self, request: Request, owner: str) -> None:
        """Store a command to another service."""
        insert_requests(self._connection, [request], owner)

    def move_times(self, by: float, begins: float, now: float) -> None:
        """Move this service's times after the clock was set, but for those that were stamped since: `begins` to `now`.

        How long a command waits, what is pruned and what is sent again are measured by them.
        """
        for query in (
            "UPDATE event SET at = at + ?1 WHERE source = ?2 AND at NOT BETWEEN ?3 AND ?4",
            "UPDATE request SET asked = asked + ?1, expires = expires + ?1, answered = answered + ?1"
            " WHERE owner = ?2 AND asked NOT BETWEEN ?3 AND ?4",
            "UPDATE source SET listened = listened + ?1"
            " WHERE name = ?2 AND listened > 0 AND listened NOT BETWEEN ?3 AND ?4",
        ):
            self._connection.execute(query, (by, self._service, begins, now))

    def defer(self, request_id: str, payload: bytes, expires: float) -> None:
        """Store the reply that says what an open request waits for, and when it expires."""
        self._connection.execute(
            "UPDATE request SET waits = ?, expires = ? WHERE owner = ? AND id = ? AND answer IS NULL",
            (payload, expires, self._service, request_id),
        )


class JournalReader:
    """The journal as one service has it, only to be read: it writes nothing, also where it could. For one thread.

    Reads see what is committed. Every method raises JournalUnavailable when SQLite fails.
    """

    def __init__(self, path: Path, service: str = "cli") -> None:
        self.service = service
        self.database = ReadOnlyDatabase(path)
        self.epoch = Epoch(self._one("SELECT value FROM meta WHERE key = 'epoch'"))

    def _one(self, query: str, *values: Any) -> Any:
        with self.database.reading() as connection:
            return connection.execute(query, values).fetchone()[0]

    def newest(self, source: str) -> int:
        """The number of a source's last event; 0 before the first."""
        return int(self._one("SELECT coalesce(max(seq), 0) FROM source WHERE name = ?", source))

    def sources(self) -> list[str]:
        """The services that have used this journal."""
        with self.database.reading() as connection:
            return [name for (name,) in connection.execute("SELECT name FROM source ORDER BY name")]

    def entries(self, source: str, after: int, limit: int = ENTRIES_PER_PAGE) -> list[JournalEntry]:
        """The next events of a source after a number, oldest first."""
        with self.database.reading() as connection:
            rows = connection.execute(
                "SELECT source, seq, at, topic, payload FROM event WHERE source = ? AND seq > ? ORDER BY seq LIMIT ?",
                (source, after, limit),
            )
            return [JournalEntry(*row) for row in rows]

    def entries_since(self, at: float, limit: int) -> list[JournalEntry]:
        """The newest events of all sources since a time, oldest first."""
        with self.database.reading() as connection:
            rows = connection.execute(
                "SELECT source, seq, at, topic, payload FROM event WHERE at >= ? ORDER BY at DESC, seq DESC LIMIT ?",
                (at, limit),
            ).fetchall()
        return [JournalEntry(*row) for row in reversed(rows)]

    def newest_on(self, topics: Sequence[str], limit: int, scanned: int) -> list[JournalEntry]:
        """The newest events on these topics, newest first, among each source's last `scanned` events."""
        query = (
            "SELECT event.source, event.seq, at, topic, payload FROM source JOIN event ON event.source = source.name"
            " AND event.seq > source.seq - ? WHERE topic IN (SELECT value FROM json_each(?))"
            " ORDER BY at DESC, event.seq DESC LIMIT ?"
        )
        with self.database.reading() as connection:
            return [JournalEntry(*row) for row in connection.execute(query, (scanned, json.dumps(topics), limit))]

    def memory(self, of: str | None = None) -> Mapping[str, Any]:
        """All memory values of this service, or of another one, by key."""
        with self.database.reading() as connection:
            rows = connection.execute("SELECT key, value FROM memory WHERE owner = ?", (of or self.service,))
            return {key: json.loads(value) for key, value in rows}

    def memory_under(self, key: str) -> Mapping[str, Any]:
        """The memory value of this service under one key, by its key; empty if there is none."""
        with self.database.reading() as connection:
            rows = connection.execute("SELECT key, value FROM memory WHERE owner = ? AND key = ?", (self.service, key))
            return {key: json.loads(value) for key, value in rows}

    def remembers(self, service: str, text: str) -> bool:
        """Whether a memory value of a service holds this text."""
        with self.database.reading() as connection:
            query = "SELECT 1 FROM memory WHERE owner = ? AND instr(value, ?) LIMIT 1"
            return connection.execute(query, (service, text)).fetchone() is not None

    def memory_has_field(self, of: str, prefix: str, field: str) -> bool:
        """Whether a service has a memory record with this field, under a key with this prefix; loads no record."""
        with self.database.reading() as connection:
            row = connection.execute(
                "SELECT 1 FROM memory WHERE owner = ?1 AND key >= ?2 AND substr(key, 1, length(?2)) = ?2"
                " AND CASE WHEN instr(value, ?3) THEN json_type(value, ?4) IS NOT NULL END LIMIT 1",
                (of, prefix, json.dumps(field), f'$."{field}"'),
            ).fetchone()
        return row is not None

    def close(self) -> None:
        self.database.close()


class Journal(JournalReader):
    """One service's view of the host's journal. For one thread; other processes use the same file at the same time.

    Reads see what is committed. Writes go through `transaction`, or are small transactions of their own. Every method
    raises JournalUnavailable when SQLite fails.
    """

    def __init__(self, path: Path, service: str) -> None:
        self.service = service
        self.database: Database = Database(path)
        self.requests = Requests(self.database, service)
        with self.database.writing() as connection:
            connection.execute("INSERT OR IGNORE INTO source (name) VALUES (?)", (service,))
        self.epoch = Epoch(self._one("SELECT value FROM meta WHERE key = 'epoch'"))

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """One transaction: committed at the end of the block, rolled back on any error."""
        with self.database.writing() as connection:
            yield Transaction(connection, self.service)

    # --- events ---

    def last_seq(self) -> int:
        """The number of this service's last event; 0 before the first."""
        return self.newest(self.service)

    def seq_before(self, at: float) -> int:
        """The number of this service's last event before a time."""
        return int(self._one("SELECT coalesce(max(seq), 0) FROM event WHERE source = ? AND at < ?", self.service, at))

    def published(self) -> int:
        """The number up to which the broker has acknowledged this service's events."""
        return int(self._one("SELECT published FROM source WHERE name = ?", self.service))

    def note_published(self, seq: int) -> None:
        with self.database.writing() as connection:
            connection.execute("UPDATE source SET published = ? WHERE name = ?", (seq, self.service))

    def prune(self, before: float) -> None:
        """Delete this service's events and answered requests from before a time; unpublished events stay."""
        with self.database.writing() as connection:
            connection.execute(
                "DELETE FROM event WHERE source = ?1 AND at < ?2"
                " AND seq <= (SELECT published FROM source WHERE name = ?1)",
                (self.service, before),
            )
            connection.execute("DELETE FROM request WHERE owner = ? AND answered < ?", (self.service, before))

    # --- cursors, memory, effects ---

    def cursors(self) -> dict[tuple[str, str], int]:
        """How far this service has read, by source (`/<host>/<service>`) and epoch."""
        with self.database.reading() as connection:
            rows = connection.execute("SELECT source, epoch, seq FROM cursor WHERE reader = ?", (self.service,))
            return {(source, epoch): seq for source, epoch, seq in rows}

    def cursor_of(self, reader: str, source: str) -> int:
        """How far a service has read a source (`/<host>/<service>`) of this epoch."""
        with self.database.reading() as connection:
            row = connection.execute(
                "SELECT seq FROM cursor WHERE reader = ? AND source = ? AND epoch = ?", (reader, source, self.epoch)
            ).fetchone()
        return row[0] if row else 0

    def has_event_on(self, service: str, topic: str, after: int) -> bool:
        """Whether a service has written an event for a topic after a number."""
        with self.database.reading() as connection:
            row = connection.execute(
                "SELECT 1 FROM event WHERE source = ? AND seq > ? AND topic = ? LIMIT 1", (service, after, topic)
            ).fetchone()
        return row is not None

    def effects(self) -> list[Effect]:
        """The effects of this service that are not known to be done."""
        with self.database.reading() as connection:
            rows = connection.execute("SELECT kind, key, payload FROM effect WHERE owner = ?", (self.service,))
            return [Effect(kind, key, json.loads(payload)) for kind, key, payload in rows]

    # --- connections ---

    def next_connection(self) -> int:
        """Count one more connection of this service; returns its number."""
        with self.database.writing() as connection:
            connection.execute("UPDATE source SET connection = connection + 1 WHERE name = ?", (self.service,))
        return int(self._one("SELECT connection FROM source WHERE name = ?", self.service))

    def listened(self) -> float:
        """When this service was last connected to a working broker, in epoch seconds."""
        return float(self._one("SELECT listened FROM source WHERE name = ?", self.service))

    def note_listened(self, at: float) -> None:
        with self.database.writing() as connection:
            connection.execute("UPDATE source SET listened = ? WHERE name = ?", (at, self.service))
