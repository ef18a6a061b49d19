"""Entries as records: each validated once, as long as its text stays the same. Pure."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from registry.document import Document, RegistryEntry
from registry.entry import GONE
from shared.contract.ids import is_id
from shared.errors import MusterError

Record = TypeVar("Record", bound=BaseModel)

ALWAYS_WRITTEN = frozenset({"level"})


class BadRegistry(MusterError):
    """The file can't be read, or a person's edit made it invalid."""

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(f"{message}; the last good state goes on")
        self.line = line
        self.column = column

    @classmethod
    def at(cls, path: Path, line: int, column: int, problem: str) -> "BadRegistry":
        """Something is wrong at a place in the file; lines and columns count from 1."""
        return cls(f"{path}, line {line}, column {column}: {problem}", line, column)


class Validated(Generic[Record]):
    """The records of one section."""

    def __init__(self, model: type[Record]) -> None:
        self._model = model
        self._known: dict[RegistryEntry, Record] = {}
        self.by_name: Mapping[str, Record] = {}

    def take(
        self,
        entries: Mapping[str, RegistryEntry],
        document: Document,
        path: Path,
        *,
        written: Mapping[str, Record] | None = None,
        skip_invalid: bool = False,
    ) -> Mapping[str, Record]:
        """Validate what is new. Raises BadRegistry with its place in the file; then the records stay as they were.

        An entry that says what was written is given that very record: who wrote it sees at once that it is the same.
        """
        fresh: dict[RegistryEntry, Record] = {}
        for entry in entries.values():
            try:
                found = self._known.get(entry) or self._record(entry, document, path)
                wanted = written.get(entry.name) if written is not None else None
                fresh[entry] = wanted if wanted is not None and wanted == found else found
            except BadRegistry:
                if not skip_invalid:
                    raise
        self._known = fresh
        self.by_name = {entry.name: record for entry, record in fresh.items()}
        return self.by_name

    def known(self, entry: RegistryEntry | None) -> Record | None:
        return self._known.get(entry) if entry is not None else None

    def _record(self, entry: RegistryEntry, document: Document, path: Path) -> Record:
        where = f"{entry.section}.{entry.name}"
        place = (entry.section, entry.name)
        if not is_id(entry.name):
            problem = f"{where}: a name has only a-z, 0-9, - and _, and at most 64 of them"
            raise BadRegistry.at(path, *document.place(*place), problem)
        if not isinstance(entry.value, dict):
            raise BadRegistry.at(path, *document.place(*place), f"{where}: it must be a mapping")
        try:
            return self._model.model_validate(entry.fields)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            problem = f"{'.'.join([where, *map(str, first['loc'])])}: {' '.join(first['msg'].split())}"
            field = map(str, first["loc"][:1])
            raise BadRegistry.at(path, *document.place(*place, *field), problem) from error


def changed_fields(record: BaseModel, entry: RegistryEntry | None, known: BaseModel | None) -> dict[str, Any]:
    """What to set in an entry, and what to remove, for it to say what a record says.

    `known` is the record that the entry says now: a value that a person wrote in another way is left alone.
    """
    wanted = record.model_dump(mode="json")
    before = known.model_dump(mode="json") if known is not None else {}
    there = entry.fields if entry is not None else {}
    fields: dict[str, Any] = {}
    for name, value in wanted.items():
        if _is_left_out(record, name, value):
            if there.get(name) is not None and not (name in before and before[name] == value):
                fields[name] = GONE
        elif name not in there or before.get(name, GONE) != value:
            fields[name] = value
    return fields


def _is_left_out(record: BaseModel, name: str, value: Any) -> bool:
    """An empty field is not written, unless it is required."""
    is_required = type(record).model_fields[name].is_required() or name in ALWAYS_WRITTEN
    return value in (None, "", []) and not is_required
