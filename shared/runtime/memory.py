"""What a service remembers over its restarts: typed records, kept in the journal with the turn that changed them."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")


@dataclass(frozen=True)
class MemoryTable(Generic[T]):
    """One kind of record: the class of its values, and what their keys begin with. A record has a name, or is alone."""

    prefix: str
    kind: type[T]

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self.kind)

    def key(self, name: str = "") -> str:
        return f"{self.prefix}{name}"

    def dump(self, value: T) -> Any:
        return self._adapter.dump_python(value, mode="json")

    def load(self, stored: Any) -> T:
        return self._adapter.validate_python(stored)


class Memory(Mapping[str, Any]):
    """The records as they are in this turn: what was committed, and over it what this turn has changed.

    A record is decoded once, and is the same object for as long as it says the same.
    """

    def __init__(self, stored: Mapping[str, Any], report: Callable[[str, str], None] = lambda _key, _why: None) -> None:
        self._stored = dict(stored)
        self._decoded: dict[str, Any] = {}
        self._changed: dict[str, Any] = {}
        self._report = report
        """Called with the key of a record that can't be read, which counts as absent, and with the reason."""

    def find(self, table: MemoryTable[T], name: str = "") -> T | None:
        key = table.key(name)
        if key not in self._decoded:
            self._decoded[key] = self._decode(table, key)
        found: T | None = self._decoded[key]
        return found

    def put(self, table: MemoryTable[T], value: T | None, name: str = "") -> None:
        """Remember a record; None forgets it. What is the same as before is not written."""
        key = table.key(name)
        if self.raw(key) is None if value is None else self.find(table, name) == value:
            return
        self._decoded[key] = value
        self._changed[key] = None if value is None else table.dump(value)

    def all(self, table: MemoryTable[T]) -> dict[str, T]:
        """Every record of a table, by name."""
        names = [key.removeprefix(table.prefix) for key in self._now() if key.startswith(table.prefix)]
        found = {name: self.find(table, name) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def _now(self) -> Iterator[str]:
        yield from (key for key in {**self._stored, **self._changed} if self._changed.get(key, self) is not None)

    def raw(self, key: str) -> Any:
        return self._changed[key] if key in self._changed else self._stored.get(key)

    def put_raw(self, key: str, value: Any) -> None:
        self._decoded.pop(key, None)
        self._changed[key] = value

    def _decode(self, table: MemoryTable[T], key: str) -> T | None:
        stored = self._changed.get(key, self._stored.get(key))
        if stored is None:
            return None
        try:
            return table.load(stored)
        except ValidationError as error:
            self._report(key, str(error.errors()[0]["msg"]))
            return None

    def __getitem__(self, key: str) -> Any:
        return self._stored[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._stored)

    def __len__(self) -> int:
        return len(self._stored)

    # --- for the runtime ---

    @property
    def changes(self) -> Mapping[str, Any]:
        """What is to be committed; None for what is forgotten."""
        return self._changed

    def committed(self) -> None:
        for key, value in self._changed.items():
            if value is None:
                self._stored.pop(key, None)
            else:
                self._stored[key] = value
        self._changed = {}

    def restore(self, changes: Mapping[str, Any]) -> None:
        """Go back to what this turn had changed at an earlier moment."""
        for key in self._changed:
            self._decoded.pop(key, None)
        self._changed = dict(changes)
