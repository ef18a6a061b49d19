"""Entries as records: each validated once, for as long as its text stays the same."""

import contextlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from registry.document import Document
from registry.edits import GONE
from registry.faults import BadRegistry
from registry.units import Entry
from shared.ids import is_id

Record = TypeVar("Record", bound=BaseModel)

ALWAYS_WRITTEN = frozenset({"level"})


class Validated(Generic[Record]):
    """The records of one section."""

    def __init__(self, model: type[Record]) -> None:
        self._model = model
        self._known: dict[Entry, Record] = {}
        self.by_name: Mapping[str, Record] = {}

    def take(self, entries: Mapping[str, Entry], written: Document, path: Path) -> None:
        """Validate what is new. Raises BadRegistry with the place in `written`, and then keeps what was known."""
        known = self._known
        fresh = {entry: known.get(entry) or self._record(entry, written, path) for entry in entries.values()}
        self._known = fresh
        self.by_name = {entry.name: record for entry, record in fresh.items()}

    def understood(self, entries: Mapping[str, Entry], written: Document, path: Path) -> Mapping[str, Record]:
        """Those that are valid, by name; the others are passed over."""
        fresh: dict[Entry, Record] = {}
        for entry in entries.values():
            with contextlib.suppress(BadRegistry):
                fresh[entry] = self._known.get(entry) or self._record(entry, written, path)
        self._known = fresh
        return {entry.name: record for entry, record in fresh.items()}

    def known(self, entry: Entry | None) -> Record | None:
        return self._known.get(entry) if entry is not None else None

    def _record(self, entry: Entry, written: Document, path: Path) -> Record:
        where = f"{entry.section}.{entry.name}"
        if not is_id(entry.name):
            said = f"{where}: a name has only a-z, 0-9, - and _, and at most 64 of them"
            raise BadRegistry.at(path, *written.place(entry.section, entry.name), said)
        if not isinstance(entry.value, dict):
            said = f"{where}: it must be a mapping"
            raise BadRegistry.at(path, *written.place(entry.section, entry.name), said)
        try:
            return self._model.model_validate(entry.value)
        except ValidationError as error:
            fault = error.errors(include_url=False)[0]
            key = str(fault["loc"][0]) if fault["loc"] else None
            said = f"{'.'.join([where, *map(str, fault['loc'])])}: {' '.join(fault['msg'].split())}"
            raise BadRegistry.at(path, *written.place(entry.section, entry.name, key), said) from error


def fields_of(record: BaseModel, entry: Entry | None, known: BaseModel | None) -> dict[str, Any]:
    """What to set in an entry, and what to take out, for it to say what a record says."""
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
    """Nothing is not written: but what must be there, or is always there, is."""
    must = type(record).model_fields[name].is_required() or name in ALWAYS_WRITTEN
    return value in (None, "", []) and not must
