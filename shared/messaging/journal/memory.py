"""One query on the memory of a service, without reading all of it."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from shared.messaging.journal.database import JournalUnavailable


def has_field(connection: sqlite3.Connection, of: str, prefix: str, field: str) -> bool:
    """Whether a service has a memory record with this field, under a key with this prefix."""
    row = connection.execute(
        "SELECT 1 FROM memory WHERE owner = ?1 AND key >= ?2 AND substr(key, 1, length(?2)) = ?2"
        " AND CASE WHEN instr(value, ?3) THEN json_type(value, ?4) IS NOT NULL END LIMIT 1",
        (of, prefix, json.dumps(field), f'$."{field}"'),
    ).fetchone()
    return row is not None


def file_has_field(path: Path, of: str, prefix: str, field: str) -> bool:
    """The same, read only: it writes nothing and waits for no writer. Raises JournalUnavailable."""
    # Without a writer, even a reader would make SQLite leave two files beside the journal.
    how = "mode=ro" if path.with_name(f"{path.name}-wal").exists() else "immutable=1"
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?{how}", uri=True)) as connection:
            return has_field(connection, of, prefix, field)
    except sqlite3.Error as error:
        raise JournalUnavailable(path, error) from error
