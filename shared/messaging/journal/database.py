"""The SQLite file of the journal: schema, opening, transactions, and errors for people."""

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shared.contract.ids import new_id
from shared.errors import MusterError, Retryable

BUSY_MS = 5_000

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;

-- One row per service. Its counters outlive the pruning of its events.
CREATE TABLE source (
    name       TEXT PRIMARY KEY,
    seq        INTEGER NOT NULL DEFAULT 0,   -- number of its newest event
    published  INTEGER NOT NULL DEFAULT 0,   -- the broker acknowledged everything up to here
    connection INTEGER NOT NULL DEFAULT 0,   -- how often it has connected to a broker
    listened   REAL NOT NULL DEFAULT 0       -- when it was last connected to a working broker, epoch seconds
) WITHOUT ROWID;

CREATE TABLE event (
    source  TEXT NOT NULL,
    seq     INTEGER NOT NULL,
    at      REAL NOT NULL,
    topic   TEXT NOT NULL,
    payload BLOB NOT NULL,
    PRIMARY KEY (source, seq)
) WITHOUT ROWID;

CREATE TABLE cursor (
    reader TEXT NOT NULL,
    source TEXT NOT NULL,
    epoch  TEXT NOT NULL,
    seq    INTEGER NOT NULL,
    PRIMARY KEY (reader, source, epoch)
) WITHOUT ROWID;

CREATE TABLE request (
    owner    TEXT NOT NULL,
    id       TEXT NOT NULL,
    verb     TEXT NOT NULL,
    payload  BLOB NOT NULL,
    agent    TEXT,                            -- whose session it changes: observers must expect changes
    reply_to TEXT NOT NULL,
    asked    REAL NOT NULL,
    expires  REAL NOT NULL,
    delivery TEXT,                            -- identifies a command without id when the broker delivers it again
    answer   BLOB,                            -- the final reply; NULL while it is open
    answered REAL,
    waits    BLOB,                            -- the newest reply with `final: false`, which says what it waits for
    PRIMARY KEY (owner, id)
) WITHOUT ROWID;
CREATE INDEX request_open ON request (owner, asked) WHERE answer IS NULL;
CREATE INDEX request_agent ON request (agent, asked);

CREATE TABLE memory (
    owner TEXT NOT NULL,
    key   TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (owner, key)
) WITHOUT ROWID;

-- What is done outside the journal after a commit, at least once. The row goes when it is known to be done.
CREATE TABLE effect (
    owner   TEXT NOT NULL,
    key     TEXT NOT NULL,
    kind    TEXT NOT NULL,
    payload TEXT NOT NULL,
    PRIMARY KEY (owner, key)
) WITHOUT ROWID;
"""
SCHEMA_VERSION = 3


class JournalUnavailable(Retryable):
    def __init__(self, path: Path, error: sqlite3.Error) -> None:
        super().__init__(f"the journal {path} could not be used: {error}; is the disk full, or another program in it?")


def _make_private(path: Path) -> None:
    """Create the file with mode 0600, before SQLite creates it with another.

    An existing file must not be opened here: closing it would drop the locks that this process has on it.
    """
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))


def _use_wal(connection: sqlite3.Connection) -> None:
    """Switch to write-ahead logging. SQLite's busy timeout does not apply while another process does the same."""
    deadline = time.monotonic() + BUSY_MS / 1000
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


class Database:
    """One connection to the file. For one thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._connection = self._open()
        self._inode = path.stat().st_ino

    def _open(self) -> sqlite3.Connection:
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make_private(self.path)
        except OSError as error:
            raise MusterError(f"the journal {self.path} can't be made: {error}") from error
        try:
            connection = sqlite3.connect(self.path, isolation_level=None, timeout=BUSY_MS / 1000)
            connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
            _use_wal(connection)
            # A power cut must not lose published events: their numbers would be used again.
            connection.execute("PRAGMA synchronous = FULL")
            self._create(connection)
        except sqlite3.OperationalError as error:
            raise JournalUnavailable(self.path, error) from error
        except sqlite3.DatabaseError as error:
            raise MusterError(
                f"the journal {self.path} is damaged ({error}); move it away and a new one is made:"
                " what had not been published is lost with it"
            ) from error
        return connection

    def _create(self, connection: sqlite3.Connection) -> None:
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0:
            for statement in SCHEMA.split(";\n"):
                connection.execute(statement)
            connection.execute("INSERT INTO meta VALUES ('epoch', ?)", (new_id(),))
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        connection.execute("COMMIT")
        if version not in (0, SCHEMA_VERSION):
            connection.close()
            raise MusterError(
                f"the journal {self.path} is of another version of Muster ({version}, and this one has"
                f" {SCHEMA_VERSION}); move it away and a new one is made"
            )

    def vanished(self) -> bool:
        """Whether the file was removed or replaced: what is written here would be lost."""
        try:
            return self.path.stat().st_ino != self._inode
        except FileNotFoundError:
            return True

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, with SQLite's errors as JournalUnavailable."""
        try:
            yield self._connection
        except sqlite3.Error as error:
            raise JournalUnavailable(self.path, error) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: committed at the end, rolled back on any error."""
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk may have rolled it back already
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        self._connection.close()
