"""What is to be done to a registry, sorted by where it goes."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from registry.edits import GONE, Fields
from registry.units import Unit


@dataclass(frozen=True, slots=True)
class Put:
    """Set fields of an entry, which is added where there is none; GONE takes a field out."""

    section: str
    name: str
    fields: Fields

    def on(self, before: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of the entry afterwards."""
        after = {**before, **self.fields}
        return {key: value for key, value in after.items() if value is not GONE}


@dataclass(frozen=True, slots=True)
class Remove:
    """Take an entry out."""

    section: str
    name: str


@dataclass(frozen=True, slots=True)
class Renumber:
    """Set the version."""

    version: int


@dataclass(slots=True)
class Plan:
    """The edits of one pass, by where they go."""

    puts: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    removed: set[tuple[str, str]] = field(default_factory=set)
    added: dict[str, dict[str, dict[str, Any]]] = field(default_factory=lambda: defaultdict(dict))
    version: int | None = None


Edit = Put | Remove | Renumber


def planned(units: Sequence[Unit], edits: Sequence[Edit]) -> Plan:
    there = {(entry.section, entry.name) for unit in units for entry in unit.entries}
    plan = Plan()
    for edit in edits:
        match edit:
            case Renumber():
                plan.version = edit.version
            case Remove():
                plan.puts.pop((edit.section, edit.name), None)
                plan.added[edit.section].pop(edit.name, None)
                plan.removed |= {(edit.section, edit.name)} & there
            case Put():
                where = (edit.section, edit.name)
                if where in there and where not in plan.removed:
                    plan.puts.setdefault(where, {}).update(edit.fields)
                else:
                    plan.added[edit.section].setdefault(edit.name, {}).update(edit.fields)
    return plan
