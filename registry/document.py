"""A registry's text and what it says.

Immutable: an edit gives a new one, and what it does not touch is not read again.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

from registry.lines import SECTIONS, Piece, cut
from registry.nodes import Fault, Node, place_of
from registry.planning import Edit, Put, Remove
from registry.rewriting import rewrite
from registry.units import Entry, Unit, Unsound, read_unit, read_whole, tree_of


class EditRefused(Exception):
    """The text is written so that it can't be changed in this place without changing something else."""


@dataclass(frozen=True, eq=False)
class Document:
    """What a registry says, and its text to the last byte."""

    units: tuple[Unit, ...]

    @classmethod
    def parse(cls, text: str, before: "Document | None" = None) -> Self:
        """Read a text; what is in `before` with the same words is taken from there. Raises Fault."""
        units = _by_pieces(text, before)
        return cls(units if units is not None else (_whole(text, before),))

    @cached_property
    def text(self) -> str:
        return "".join(unit.text for unit in self.units)

    @cached_property
    def agents(self) -> Mapping[str, Entry]:
        return self._entries("agents")

    @cached_property
    def history(self) -> Mapping[str, Entry]:
        return self._entries("history")

    def section(self, name: str) -> Mapping[str, Entry]:
        return self.agents if name == "agents" else self.history

    @cached_property
    def version(self) -> Any:
        """The value of `version`, whatever it is; None where there is none."""
        return self._top.get("version")

    def has(self, key: str) -> bool:
        """Whether there is such a top-level key."""
        return key in self._top

    def edit(self, edits: Sequence[Edit]) -> "Document":
        """The document with the edits made, each in its place. Raises EditRefused, for very odd texts."""
        for careful in (False, True):
            try:
                pieces = rewrite(self.units, self.text, edits, careful=careful)
                edited = self._with(pieces)
            except (Fault, Unsound):
                continue
            if self._holds(edited, edits):
                return edited
        raise EditRefused

    def place(self, section: str, name: str | None = None, field: str | None = None) -> tuple[int, int]:
        """The line and the column of a section, of an entry or of a field, as far as it is written; counted from 1."""
        at = 0
        for unit in self.units:
            if (found := _position(unit, section, name, field)) is not None:
                return place_of(self.text, at + found)
            at += len(unit.text)
        return self.place(section) if name is not None else (1, 1)

    @cached_property
    def _top(self) -> Mapping[str, Any]:
        return {key: value for unit in self.units for key, value in unit.top}

    def _entries(self, section: str) -> dict[str, Entry]:
        return {entry.name: entry for unit in self.units for entry in unit.entries if entry.section == section}

    def _with(self, pieces: Sequence[Unit | Piece | str]) -> "Document":
        if len(pieces) == 1 and isinstance(pieces[0], str):
            return Document.parse(pieces[0])
        units = tuple(each if isinstance(each, Unit) else read_unit(each) for each in _pieces(pieces))
        return Document(units)

    def _holds(self, edited: "Document", edits: Sequence[Edit]) -> bool:
        """Whether an edited text says what it should, and of all else what it said before."""
        wanted: dict[tuple[str, str], dict[str, Any] | None] = {}
        for edit in edits:
            if isinstance(edit, Put):
                where = (edit.section, edit.name)
                wanted[where] = edit.on(wanted[where] or {} if where in wanted else self._fields(*where))
            elif isinstance(edit, Remove):
                wanted[edit.section, edit.name] = None
        for section in SECTIONS:
            old, new = self.section(section), edited.section(section)
            names = {*old, *(name for where, name in wanted if where == section)}
            names -= {name for where, name in wanted if where == section and wanted[where, name] is None}
            if new.keys() != names:
                return False
            for name, entry in new.items():
                if (section, name) in wanted:
                    if not _same(wanted[section, name], entry.value):
                        return False
                elif entry is not old[name] and not _same(old[name].value, entry.value):
                    return False
        return all(
            _same(value, edited._top.get(key)) for key, value in self._top.items() if key not in (*SECTIONS, "version")
        )

    def _fields(self, section: str, name: str) -> Mapping[str, Any]:
        entry = self.section(section).get(name)
        return entry.fields if entry is not None else {}


def _pieces(pieces: Sequence[Unit | Piece | str]) -> Iterator[Unit | Piece]:
    for each in pieces:
        assert not isinstance(each, str)  # noqa: S101 - a whole text stands alone
        yield each


def _same(wanted: Any, found: Any) -> bool:
    """Whether two values are the same to a reader; a field that is null is as good as none."""
    if not isinstance(wanted, dict) or not isinstance(found, dict):
        return repr(wanted) == repr(found)
    keys = {*wanted, *found}
    return all(repr(wanted.get(key)) == repr(found.get(key)) for key in keys)


def _by_pieces(text: str, before: Document | None) -> tuple[Unit, ...] | None:
    pieces = cut(text)
    if pieces is None:
        return None
    known = {(unit.section, unit.text): unit for unit in before.units} if before is not None else {}
    units: list[Unit] = []
    names: set[tuple[str, str]] = set()
    for piece in pieces:
        try:
            unit = _known(known, piece) or read_unit(piece)
        except Unsound:
            return None
        for key in [*(("", key) for key, _ in unit.top), *((each.section, each.name) for each in unit.entries)]:
            if key in names:
                return None
            names.add(key)
        units.append(unit)
    return tuple(units)


def _known(known: Mapping[tuple[str, str], Unit], piece: Piece) -> Unit | None:
    """The unit that a piece was read as before, where it would be read as the same again."""
    unit = known.get((piece.section, piece.text))
    if unit is None or unit.kind != piece.kind or unit.context not in ("", piece.context):
        return None
    return unit


def _whole(text: str, before: Document | None) -> Unit:
    if before is not None and len(before.units) == 1 and before.units[0].kind == "whole" and before.text == text:
        return before.units[0]
    return read_whole(text)


def _position(unit: Unit, section: str, name: str | None, field: str | None) -> int | None:
    """Where in a unit something is written; None if it is elsewhere."""
    if name is None:
        if all(key != section for key, _ in unit.top):
            return None
        return 0 if unit.kind == "header" else _key(tree_of(unit).root, section)
    if all(entry.section != section or entry.name != name for entry in unit.entries):
        return None
    root = tree_of(unit).root
    if unit.kind == "whole":
        root = root.named()[section][1]
    elif unit.kind == "section":
        root = root.pairs[0][1]
    key, value = root.named()[name]
    inner = value.named() if value.kind == "map" else {}
    return inner[field][0].start if field in inner else key.start


def _key(root: Node, name: str) -> int:
    return root.named()[name][0].start
