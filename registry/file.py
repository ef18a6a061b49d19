"""`registry.yaml` on disk: read by anybody at any time, replaced whole by its one writer."""

import io
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError

from registry.records import AgentRecord
from shared.errors import MusterError

VERSION = 1
HEADER = "# What runs, and what became of it. Kept by Muster's registrar; comments and keys of your own stay.\n"


class BadRegistry(MusterError):
    """The file was edited into something that can't be read."""


class RegistryFile:
    """The records, read again whenever the file changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._yaml = YAML(typ="rt")
        self._document: Any = None
        self._records: dict[str, AgentRecord] = {}
        self._seen: tuple[int, int, int] | None = None

    def records(self) -> Mapping[str, AgentRecord]:
        """All records by agent. Raises BadRegistry, with the line, for a file that can't be read."""
        stamp = self._stamp()
        if stamp != self._seen:
            self._document, self._records = self._read()
            self._seen = stamp
        return self._records

    def last_good(self) -> Mapping[str, AgentRecord]:
        """The records as they were last read or written, whatever has become of the file."""
        if self._seen is None:
            return self.records()
        return self._records

    def write(self, changes: Mapping[str, AgentRecord]) -> None:
        """Put changed records in their place; what else is in the file stays."""
        self.records()
        for agent, record in changes.items():
            entry = self._document["agents"].setdefault(agent, {})
            entry.update(record.model_dump(mode="json", exclude_none=True))
            for key in [key for key, value in record.model_dump().items() if value is None]:
                entry.pop(key, None)
        text = io.StringIO()
        self._yaml.dump(self._document, text)
        _replace(self.path, text.getvalue())
        self._records = {**self._records, **changes}
        self._seen = self._stamp()

    def _read(self) -> tuple[Any, dict[str, AgentRecord]]:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            text = f"{HEADER}version: {VERSION}\nagents: {{}}\n"
        except (OSError, UnicodeDecodeError) as error:
            raise BadRegistry(f"{self.path} can't be read: {error}") from error
        try:
            document = self._yaml.load(text)
            agents = document["agents"]
            agents.fa.set_block_style()
            return document, {name: AgentRecord.model_validate(dict(entry)) for name, entry in agents.items()}
        except MarkedYAMLError as error:
            line = error.problem_mark.line + 1 if error.problem_mark else 1
            raise BadRegistry(
                f"{self.path}, line {line}: not YAML: {error.problem}; the last good state goes on"
            ) from error
        except (ValidationError, TypeError, KeyError, AttributeError) as error:
            raise BadRegistry(f"{self.path}: not a registry: {error}; the last good state goes on") from error

    def _stamp(self) -> tuple[int, int, int]:
        try:
            status = self.path.stat()
        except FileNotFoundError:
            return (0, 0, 0)
        return (status.st_ino, status.st_mtime_ns, status.st_size)


def _replace(path: Path, text: str) -> None:
    """Write a whole new file, then rename: a crash at any instant leaves the old one or the new one."""
    fresh = path.with_name(f".{path.name}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
