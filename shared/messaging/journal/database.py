"""The SQLite file of the journal: schema, opening, transactions, and errors for people.

SQLite keeps three files: the journal, `-wal` and `-shm`. They belong together: one that was removed, moved or replaced
makes the others worthless. A damaged journal is set aside with its side files, and a new one is begun.
"""

import errno
import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from shared.contract.ids import new_id
from shared.errors import MusterError
from shared.messaging.journal.read_access import (
    SCHEMA_VERSION,
    JournalUnavailable,
    OtherVersion,
    ReadOnlyDatabase,
    is_damage,
    side_file,
)

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


class JournalLost(MusterError):
    """The journal was removed, replaced or damaged below its user, who has to open it anew."""

    def __init__(self, path: Path, what: str, aside: Path | None = None) -> None:
        kept = f"; it was set aside as {aside.name}" if aside is not None else ""
        super().__init__(f"the journal {path} was {what}{kept}; starting anew")


def _files(path: Path) -> list[Path]:
    return [path, *(side_file(path, end) for end in ("-wal", "-shm"))]


def _inode(path: Path) -> int | None:
    try:
        return path.stat().st_ino
    except FileNotFoundError:
        return None


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Only one process at a time opens the journal or sets it aside. The lock's file is never removed.

    Raises OSError. The wait has an end: a process that was stopped in here must not hang all others.
    """
    descriptor = os.open(side_file(path, ".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + 2 * BUSY_MS / 1000  # the holder may itself wait for a writer
        while not _locked(descriptor):
            if time.monotonic() > deadline:
                raise TimeoutError(errno.ETIMEDOUT, "another process has been opening it for too long")
            time.sleep(0.01)
        yield
    finally:
        os.close(descriptor)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _set_aside(path: Path) -> Path:
    """Rename what is there of the three files. To be called alone.

    The journal first: if this process dies in between, the next one finds side files without a journal.
    """
    stem = aside = path.with_name(f"{path.name}.damaged-{datetime.now(UTC):%Y%m%dT%H%M%SZ}")
    number = 1
    while any(each.exists() for each in _files(aside)):
        number += 1
        aside = stem.with_name(f"{stem.name}-{number}")
    for old, new in zip(_files(path), _files(aside), strict=True):
        with suppress(FileNotFoundError):
            old.rename(new)
    return aside


def _is_sound(path: Path) -> bool:
    """Whether a fresh look at the whole file finds no damage. Takes a second per 100 MB or so."""
    try:
        with closing(sqlite3.connect(path, timeout=BUSY_MS / 1000)) as connection:
            return bool(connection.execute("PRAGMA integrity_check(1)").fetchone() == ("ok",))
    except sqlite3.Error as error:
        return not is_damage(error)


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


class Database(ReadOnlyDatabase):
    """One connection to the file, which is made if there is none. For one thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.aside: Path | None = None
        """The damaged journal that was set aside for this one."""
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with _alone(path):
                self._connection = self._open_or_begin()
                self._inodes = self._inodes_now()
        except OSError as error:
            raise JournalUnavailable(path, error) from error

    def _open_or_begin(self) -> sqlite3.Connection:
        """Open the journal. A damaged one, or side files whose journal is gone, are set aside first."""
        main, *beside = _files(self.path)
        if not main.exists() and any(each.exists() for each in beside):
            self.aside = _set_aside(self.path)
        try:
            return self._open()
        except sqlite3.DatabaseError as error:
            if not is_damage(error):
                raise JournalUnavailable(self.path, error) from error
        self.aside = _set_aside(self.path)
        try:
            return self._open()
        except sqlite3.DatabaseError as error:
            raise JournalUnavailable(self.path, error) from error

    def _open(self) -> sqlite3.Connection:
        _make_private(self.path)
        connection = sqlite3.connect(self.path, isolation_level=None, timeout=BUSY_MS / 1000)
        try:
            connection.execute(f"PRAGMA busy_timeout = {BUSY_MS}")
            _use_wal(connection)
            # A power cut must not lose published events: their numbers would be used again.
            connection.execute("PRAGMA synchronous = FULL")
            self._create(connection)
        except BaseException:
            connection.close()
            raise
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
            raise OtherVersion(self.path, version)

    def _inodes_now(self) -> list[int | None]:
        return [_inode(each) for each in _files(self.path)]

    def vanished(self) -> bool:
        """Whether one of the files was removed or replaced: what is written here would be lost.

        SQLite itself removes side files only when nobody has the journal open.
        """
        return self._inodes_now() != self._inodes

    def _must_be_there(self) -> None:
        """Raise JournalLost if the files are no longer those that were opened; what is left of them is set aside."""
        try:
            if not self.vanished():
                return
            with _alone(self.path):
                now = self._inodes_now()
                ours = [each for each, inode in zip(now, self._inodes, strict=True) if each == inode]
                aside = _set_aside(self.path) if any(ours) else None
        except OSError as error:
            raise JournalUnavailable(self.path, error) from error
        raise JournalLost(self.path, "removed or replaced", aside)

    def _damaged(self, error: sqlite3.Error) -> JournalLost | JournalUnavailable:
        """SQLite says that the file is broken. If a fresh look agrees, exactly one process sets it aside."""
        try:
            with _alone(self.path):
                if self.vanished():
                    return JournalLost(self.path, "removed or replaced")
                if _is_sound(self.path):
                    return JournalUnavailable(self.path, error)
                return JournalLost(self.path, f"damaged ({error})", _set_aside(self.path))
        except OSError as fault:
            return JournalUnavailable(self.path, fault)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, with SQLite's errors as JournalUnavailable, and JournalLost if the file is gone or broken."""
        self._must_be_there()
        try:
            yield self._connection
        except sqlite3.Error as error:
            if is_damage(error):
                raise self._damaged(error) from error
            self._must_be_there()
            raise JournalUnavailable(self.path, error) from error

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction: committed at the end, rolled back on any error."""
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                self._must_be_there()
                connection.execute("COMMIT")
            except BaseException:
                with suppress(sqlite3.Error):  # a full disk may have rolled it back already
                    connection.execute("ROLLBACK")
                raise
