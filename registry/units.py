"""The pieces of a registry that are read, kept and edited one by one."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from registry import plain
from registry.lines import SECTIONS, Piece, is_filler
from registry.nodes import Fault, Node, Tree, place_of, resolved


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """One entry of `agents` or `history`. The same object stays as long as its text does."""

    section: str
    name: str
    value: Any
    """What stands behind its name: a mapping, if the entry is any good."""
    own: frozenset[str]
    """The fields that are written in the entry itself, not merged into it from elsewhere."""

    @property
    def fields(self) -> Mapping[str, Any]:
        return self.value if isinstance(self.value, dict) else {}


@dataclass(frozen=True, slots=True, eq=False)
class Unit:
    """A part of the text that can be read alone, and what it says."""

    kind: str
    """As of its piece, or `whole` for a text that can't be cut."""
    text: str
    section: str
    entries: tuple[Entry, ...] = ()
    top: tuple[tuple[str, Any], ...] = ()
    """The top-level keys that it has, with the value of those that are no section."""
    context: str = ""
    """What it had to be read with, for the anchors in it: nothing, if it can be read alone."""


class Unsound(Exception):
    """A piece can't be read alone."""


def read_unit(piece: Piece) -> Unit:
    """What a piece says by itself. Raises Unsound."""
    match piece.kind:
        case "filler":
            return Unit("filler", piece.text, "")
        case "header":
            return Unit("header", piece.text, piece.section, top=((piece.section, None),))
        case "entry":
            read = plain.read_entry(piece.text)
            if read is not None:
                name, fields = read
                entry = Entry(piece.section, name, fields, frozenset(fields))
                return Unit("entry", piece.text, piece.section, (entry,))
        case "top":
            line = plain.read_line(piece.text)
            if line is not None:
                return Unit("top", piece.text, "", top=(line,))
    return _read_by_parser(piece)


def _read_by_parser(piece: Piece) -> Unit:
    try:
        return _read_with(piece, "")
    except Fault as fault:
        if not piece.context or "*" not in piece.text:
            raise Unsound from fault
    try:
        return _read_with(piece, piece.context)
    except Fault as fault:
        raise Unsound from fault


def _read_with(piece: Piece, context: str) -> Unit:
    tree = parsed_with(piece.text, piece.section if piece.kind == "entry" else "", context)
    if tree is None or tree.root.kind != "map" or tree.root.flow or len(tree.root.pairs) != 1:
        raise Unsound
    ((key, value),) = tree.root.pairs
    if key.kind != "scalar" or key.tag == "tag:yaml.org,2002:merge":
        raise Unsound
    ((_, data),) = tree.value.items()
    if piece.kind == "entry":
        return Unit("entry", piece.text, piece.section, (entry_of(piece.section, key, value, data),), context=context)
    if key.text in SECTIONS:
        entries = section_entries(piece.text, key.text, value, data)
        return Unit("section", piece.text, key.text, entries, top=((key.text, None),), context=context)
    return Unit("top", piece.text, "", top=((key.text, data),), context=context)


def read_whole(text: str) -> Unit:
    """A text that can't be cut, by the parser. Raises Fault."""
    tree = parsed(text)
    if tree is None:
        return Unit("whole", text, "")
    if tree.root.kind != "map":
        raise Fault(*place_of(text, tree.root.start), "it must be a mapping, with a mapping `agents` in it")
    entries: list[Entry] = []
    top: list[tuple[str, Any]] = []
    for name, (key, value) in tree.root.named().items():
        data = _found(tree.value, resolved(key))
        top.append((name, None if name in SECTIONS else data))
        if name in SECTIONS:
            entries += section_entries(text, resolved(key).text, value, data)
    return Unit("whole", text, "", tuple(entries), tuple(top))


def section_entries(text: str, section: str, value: Node, data: Any) -> tuple[Entry, ...]:
    if value.is_null:
        return ()
    if value.kind == "alias":
        raise Fault(*place_of(text, value.start), f"`{section}` must be written out here, not be an alias")
    if value.kind != "map" or not isinstance(data, dict):
        raise Fault(*place_of(text, value.start), f"`{section}` must be a mapping")
    entries: dict[str, Entry] = {}
    for key, each in value.pairs:
        name = resolved(key)
        if name.kind != "scalar" or name.tag == "tag:yaml.org,2002:merge":
            raise Fault(*place_of(text, key.start), f"`{section}` must have the names themselves as its keys")
        if name.text in entries:
            raise Fault(*place_of(text, key.start), f"`{name.text}` is there twice")
        entries[name.text] = entry_of(section, name, each, _found(data, name))
    return tuple(entries.values())


def _found(data: Any, key: Node) -> Any:
    """The value of a key, which may have been read as a number, a date or nothing at all."""
    if not isinstance(data, dict):
        return None
    if key.text in data:
        return data[key.text]
    wanted = parsed(f"[{key.text}]")
    return data.get(wanted.value[0]) if wanted is not None else None


def entry_of(section: str, key: Node, value: Node, data: Any) -> Entry:
    fields = {str(name): each for name, each in data.items()} if isinstance(data, dict) else data
    own = frozenset(value.named()) if value.kind == "map" else frozenset()
    return Entry(section, key.text, fields, own)


def tree_of(unit: Unit) -> Tree:
    """Where everything in a unit stands."""
    tree = None
    if unit.kind == "entry":
        tree = plain.tree_of_entry(unit.text)
    elif unit.kind == "top":
        tree = plain.tree_of_line(unit.text)
    if tree is None:
        tree = parsed_with(unit.text, unit.section if unit.kind == "entry" else "", unit.context)
    if tree is None:
        raise Fault(1, 1, "there is nothing in it")
    return tree


def parsed_with(text: str, section: str, context: str) -> Tree | None:
    """A text read below others whose anchors it uses; places are those in the text itself."""
    if not context:
        return parsed(text)
    prefix = context + (f"{section}:\n" if section else "")
    tree = parsed(prefix + text)
    if tree is None:
        return None
    root, value = tree.root, tree.value
    key, inner = root.pairs[-1]
    if section:
        if inner.kind != "map" or key.end > len(prefix):
            raise Unsound
        root, value = inner, value[section]
    else:
        root = Node("map", key.start, inner.end, inner.after, pairs=[(key, inner)], tag=root.tag)
        value = {key.text: _found(value, key)}
    if min(each.start for pair in root.pairs for each in pair) < len(prefix):
        raise Unsound
    for node in root.all():
        node.start, node.end, node.after = node.start - len(prefix), node.end - len(prefix), node.after - len(prefix)
    return Tree(root, value)


def parsed(text: str) -> Tree | None:
    """By the parser, which is imported only for a text that needs it: that costs more than reading a whole registry."""
    from registry.tree import read  # noqa: PLC0415

    return None if is_filler(text) else read(text)
