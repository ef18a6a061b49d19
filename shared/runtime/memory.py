"""A service's memory: typed records that outlive the process, written to the journal with the turn that changed them.

Declare a table beside its record, a frozen dataclass or any type that pydantic can load and dump:
`AGENTS = MemoryTable("agent:", AgentMemory)`; then `turn.memory.find(AGENTS, "builder")`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import TypeAdapter, ValidationError

from shared.runtime.moments import Moment, Move, moved

T = TypeVar("T")


@dataclass(frozen=True)
class MemoryTable(Generic[T]):
    """One kind of record: the prefix of its keys, and its type. A table may hold one record without a name."""

    prefix: str
    kind: type[T]
    is_moment: bool = False
    """Whether each record is a moment of the past itself."""

    declared: ClassVar[list["MemoryTable[Any]"]] = []

    def __post_init__(self) -> None:
        self.declared.append(self)

    @cached_property
    def _adapter(self) -> TypeAdapter[T]:
        return TypeAdapter(self.kind)

    def key(self, name: str = "") -> str:
        return f"{self.prefix}{name}"

    def dump(self, value: T) -> Any:
        return self._adapter.dump_python(value, mode="json")

    def load(self, stored: Any) -> T:
        return self._adapter.validate_python(stored)

    def moved(self, value: T, move: Move) -> T:
        """The record after the clock was set: its moments of the past move too."""
        found: T = moved(Moment if self.is_moment else self.kind, value, move)
        return found


class Memory:
    """The records in a turn: what is committed, with the changes of this turn.

    A record is decoded once: as long as it does not change, `find` returns the same object.
    """

    def __init__(self, stored: Mapping[str, Any], report: Callable[[str, str], None] = lambda _key, _why: None) -> None:
        self._stored = dict(stored)
        self._decoded: dict[str, Any] = {}
        self._changed: dict[str, Any] = {}
        self._report = report
        """Called with the key of a record that can't be decoded, and the reason. Such a record counts as absent."""

    def find(self, table: MemoryTable[T], name: str = "") -> T | None:
        """The record with this name; None if there is none, or it can't be decoded."""
        key = table.key(name)
        if key not in self._decoded:
            self._decoded[key] = self._decode(table, key)
        found: T | None = self._decoded[key]
        return found

    def put(self, table: MemoryTable[T], value: T | None, name: str = "") -> None:
        """Store a record with the commit of this turn; None removes it. An equal record is not written again."""
        key = table.key(name)
        if self._value(key) is None if value is None else self.find(table, name) == value:
            return
        self._decoded[key] = value
        self._changed[key] = None if value is None else table.dump(value)

    def all(self, table: MemoryTable[T]) -> dict[str, T]:
        """Every record of a table, by name."""
        keys = [key for key in {**self._stored, **self._changed} if key.startswith(table.prefix)]
        found = {(name := key.removeprefix(table.prefix)): self.find(table, name) for key in keys}
        return {name: value for name, value in found.items() if value is not None}

    def _value(self, key: str) -> Any:
        return self._changed[key] if key in self._changed else self._stored.get(key)

    def _decode(self, table: MemoryTable[T], key: str) -> T | None:
        if (value := self._value(key)) is None:
            return None
        try:
            return table.load(value)
        except ValidationError as error:
            self._report(key, str(error.errors()[0]["msg"]))
            return None

    # --- for the runtime ---

    def newest_moment(self) -> float:
        """The latest moment that is remembered; 0 if none is."""
        found = [0.0]

        def note(moment: float) -> float:
            found.append(moment)
            return moment

        self.move(note)
        return max(found)

    def move(self, move: Move) -> None:
        """Move every remembered moment of the past."""
        for key in list(self._stored):
            # Another service may use the same prefix: what can't be read as this table's record is not one.
            for table in [each for each in MemoryTable.declared if key.startswith(each.prefix)]:
                try:
                    value = table.load(self._stored[key])
                except ValidationError:
                    continue
                if (after := table.moved(value, move)) != value:
                    self._changed[key] = table.dump(after)
                    self._decoded.pop(key, None)

    @property
    def changes(self) -> Mapping[str, Any]:
        """The values to commit, by key; None for removed ones."""
        return self._changed

    def committed(self) -> None:
        """Take the changes over as committed."""
        for key, value in self._changed.items():
            if value is None:
                self._stored.pop(key, None)
            else:
                self._stored[key] = value
        self._changed = {}

    def restore(self, changes: Mapping[str, Any]) -> None:
        """Replace the changes of this turn by these, from an earlier moment of it."""
        for key in self._changed:
            self._decoded.pop(key, None)
        self._changed = dict(changes)
