"""`registry.yaml` on disk: read by anybody at any time, replaced whole by its one writer."""

import io
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from ruamel.yaml import YAML

from registry.records import AgentRecord
from shared.errors import MusterError
from shared.yaml_text import NotYaml, line_of, load

VERSION = 1
HEADER = "# What runs, and what became of it. Kept by Muster's registrar; comments and keys of your own stay.\n"


Stamp = tuple[int, int, int]
"""Inode, time and size: what a file is known by."""


class BadRegistry(MusterError):
    """The file was edited into something that can't be read."""


class RegistryFile:
    """The records, read again whenever the file changed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._yaml = YAML(typ="rt")
        self._document: Any = None
        self._records: dict[str, AgentRecord] = {}
        self._seen: Stamp | None = None

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

    def write(self, changes: Mapping[str, AgentRecord], gone: Collection[str] = ()) -> None:
        """Put changed records in their place and take out those that are gone; what else is in the file stays."""
        self.records()
        for agent in gone:
            self._document["agents"].pop(agent, None)
        for agent, record in changes.items():
            entry = self._document["agents"].setdefault(agent, {})
            entry.update(record.model_dump(mode="json", exclude_none=True))
            for key in [key for key, value in record.model_dump().items() if value is None]:
                entry.pop(key, None)
        text = io.StringIO()
        self._yaml.dump(self._document, text)
        self._seen = _replace(self.path, text.getvalue())
        kept = {agent: record for agent, record in self._records.items() if agent not in gone}
        self._records = {**kept, **changes}

    def _read(self) -> tuple[Any, dict[str, AgentRecord]]:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            text = f"{HEADER}version: {VERSION}\nagents: {{}}\n"
        except (OSError, UnicodeDecodeError) as error:
            raise BadRegistry(f"{self.path} can't be read: {error}") from error
        try:
            document = load(text)
        except NotYaml as fault:
            raise self._bad(fault.line, f"not YAML: {fault.problem}") from fault
        try:
            agents = document["agents"]
            entries = agents.items()
            agents.fa.set_block_style()
        except (TypeError, KeyError, AttributeError) as error:
            raise self._bad(1, "it must have a mapping `agents`") from error
        return document, {str(name): self._record(document, name, entry) for name, entry in entries}

    def _record(self, document: Any, name: str, entry: Any) -> AgentRecord:
        try:
            return AgentRecord.model_validate(entry)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            where = ("agents", name, *fault["loc"])
            said = f"{'.'.join(map(str, where))}: {fault['msg']}"
            raise self._bad(line_of(document, where), said) from error

    def _bad(self, line: int, said: str) -> BadRegistry:
        return BadRegistry(f"{self.path}, line {line}: {said}; the last good state goes on")

    def _stamp(self) -> Stamp:
        try:
            return _stamp(self.path.stat())
        except FileNotFoundError:
            return (0, 0, 0)


def _stamp(status: os.stat_result) -> Stamp:
    return (status.st_ino, status.st_mtime_ns, status.st_size)


def _replace(path: Path, text: str) -> Stamp:
    """Write a whole new file, then rename: a crash at any instant leaves the old one or the new one.

    Answers what the new one is known by, taken before anybody else can edit it.
    """
    fresh = path.with_name(f".{path.name}.new")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
        stamp = _stamp(os.fstat(file.fileno()))
    fresh.replace(path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
    return stamp
