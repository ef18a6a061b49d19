"""The journal opened only to be read: nothing is written, no file is made or set aside, and no writer is waited for.

So it can be read where nothing can be written: on a read-only or full disk, or with another user's rights.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from shared.errors import MusterError, Retryable

SCHEMA_VERSION = 3


def side_file(path: Path, end: str) -> Path:
    return path.with_name(f"{path.name}{end}")


def why_not_writable(path: Path) -> str:
    """Why nothing can be stored in the directory of this journal, as a sentence; empty if it can. Writes nothing.

    A full disk does not show here.
    """
    lock = side_file(path, ".lock")
    try:
        if lock.exists():
            # `access` knows nothing of a disk that became read-only after an error; opening for writing does.
            os.close(os.open(lock, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return _sentence(path, error.strerror or str(error))
    if path.parent.exists() and not os.access(path.parent, os.W_OK | os.X_OK):
        return _sentence(path, "Permission denied")
    return ""


def _sentence(path: Path, why: str) -> str:
    return f"{path.parent} can't be written: {why}; make it writable for {_user()} again"


def _user() -> str:
    return "root" if os.geteuid() == 0 else f"the user with the id {os.geteuid()}"


DAMAGE = frozenset({sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB})
"""A full or failing disk, a lock or missing rights are no damage."""


def is_damage(error: sqlite3.Error | OSError) -> bool:
    """Whether SQLite says that the file itself is broken."""
    code = getattr(error, "sqlite_errorcode", 0)
    return code & 0xFF in DAMAGE or code == sqlite3.SQLITE_IOERR_SHORT_READ


class JournalUnavailable(Retryable):
    def __init__(self, path: Path, error: sqlite3.Error | OSError) -> None:
        self.is_damage = is_damage(error)
        what = f"{error}; is the disk full, or another program in it?"
        if self.is_damage:
            what = f"{error}; a service that opens it sets it aside and begins a new one"
        super().__init__(f"the journal {path} could not be used: {why_not_writable(path) or what}")


class OtherVersion(MusterError):
    """The journal was written by another version of Muster."""

    def __init__(self, path: Path, version: int) -> None:
        super().__init__(
            f"the journal {path} is of {'a newer' if version > SCHEMA_VERSION else 'an older'} version of Muster"
            f" ({version}, and this one has {SCHEMA_VERSION}); use that version, or run `muster down`, move the journal"
            " away and run `muster up`: a new one is made"
        )


class ReadOnlyDatabase:
    """One connection to the file, for one thread."""

    def __init__(self, path: Path) -> None:
        self.path = path
        # Without a writer, even a reader would make SQLite leave two files beside the journal.
        how = "mode=ro" if side_file(path, "-wal").exists() else "immutable=1"
        try:
            self._connection = sqlite3.connect(f"file:{quote(str(path))}?{how}", uri=True, isolation_level=None)
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
        except sqlite3.Error as error:
            raise JournalUnavailable(path, error) from error
        if version not in (0, SCHEMA_VERSION):  # 0: it is just being made
            self.close()
            raise OtherVersion(path, version)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """The connection, with SQLite's errors as JournalUnavailable."""
        try:
            yield self._connection
        except sqlite3.Error as error:
            raise JournalUnavailable(self.path, error) from error

    def close(self) -> None:
        self._connection.close()
