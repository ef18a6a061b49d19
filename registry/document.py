"""The registry's text, and what it says. Pure.

The text is cut into blocks by its lines: comments, top-level keys, section headers and entries. Each block that can be
read alone is read alone, fast, and not again as long as its text stays the same. If one block can't be read alone, the
cut may be wrong: then the parser reads the text as a whole.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from registry import entry
from registry.yaml_text import MalformedYaml, has_odd

SECTIONS = ("agents", "history")

BlockKind = Literal["filler", "key", "header", "entry", "section"]


@dataclass(frozen=True, slots=True, eq=False)
class RegistryEntry:
    """One entry of `agents` or `history`. It stays the same object as long as its text does."""

    section: str
    name: str
    value: Any
    """A mapping, if the entry is valid."""

    @property
    def fields(self) -> Mapping[str, Any]:
        return {str(key): value for key, value in self.value.items()} if isinstance(self.value, dict) else {}


@dataclass(frozen=True, slots=True, eq=False)
class TextBlock:
    """A part of the text that was read alone."""

    kind: BlockKind
    text: str
    section: str = ""
    entry: RegistryEntry | None = None
    key: tuple[str, Any] | None = None
    """A top-level key of a person's own, or `version`, with its value."""

    @property
    def value(self) -> Any:
        return self.entry.value if self.entry is not None else self.key


class Cut(NamedTuple):
    """A part of the text that is not read yet."""

    kind: BlockKind
    text: str
    section: str = ""


@dataclass(frozen=True, eq=False)
class Document:
    """Immutable: an edit makes a new one."""

    text: str
    blocks: tuple[TextBlock, ...] | None
    """None for a text that only the parser could read."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """The top-level keys with their values; None for a section."""
    entries: Mapping[tuple[str, str], RegistryEntry] = field(default_factory=dict)
    """By section and name, in their order."""

    @classmethod
    def parse(cls, text: str, before: "Document | None" = None) -> "Document":
        """Read a text. Blocks that `before` has too are taken from there. Raises MalformedYaml."""
        blocks = _read_blocks(text, before)
        return cls.of_blocks(blocks, text) if blocks is not None else _read_as_whole(text)

    @classmethod
    def of_blocks(cls, blocks: tuple[TextBlock, ...], text: str | None = None) -> "Document":
        keys: dict[str, Any] = {}
        entries: dict[tuple[str, str], RegistryEntry] = {}
        for block in blocks:
            if block.entry is not None:
                entries[block.section, block.entry.name] = block.entry
            elif block.key is not None:
                keys[block.key[0]] = block.key[1]
            elif block.kind == "header":
                keys[block.section] = None
        return cls("".join(block.text for block in blocks) if text is None else text, blocks, keys, entries)

    @cached_property
    def agents(self) -> Mapping[str, RegistryEntry]:
        return self.section("agents")

    @cached_property
    def history(self) -> Mapping[str, RegistryEntry]:
        return self.section("history")

    def section(self, section: str) -> dict[str, RegistryEntry]:
        return {name: each for (where, name), each in self.entries.items() if where == section}

    def place(self, *path: str) -> tuple[int, int]:
        """The line and the column of a key, of an entry or of a field, as far as it is written; counted from 1."""
        from registry import parser  # noqa: PLC0415 - rarely needed

        if self.blocks is None:
            return parser.place(self.text, path)
        line = 1
        for block in self.blocks:
            if block.entry is not None and (block.section, block.entry.name) == path[:2]:
                below, column = parser.place(block.text, path[1:])
                return line + below - 1, column
            if len(path) == 1 and path[0] == (block.key[0] if block.key is not None else block.section):
                return line, 1
            line += block.text.count("\n")
        return 1, 1


# --- cutting ---

_DOCUMENT_MARKS = ("\n---", "\n...", "\n%")
_TOP = re.compile(r"\n(?=[^ \t#\r\n])(?!-[ \r\n])")
_FIRST = re.compile(r"(?=[^ \t#\r\n])(?!-[ \r\n])")
_SECTION = re.compile(rf"({'|'.join(SECTIONS)}):(?=[ \r\n]|\Z)")
_HEADER = re.compile(r"[a-z]+:(?P<empty> *\{ *\})?(?: +#[^\r\n]*| *)(?:\r?\n|\Z)")
_FILLER = re.compile(r"(?: *(?:#[^\r\n]*)?\r?\n)*(?: *(?:#[^\r\n]*)?\Z)?")
_OPENING = re.compile(r"\ufeff?(?:(?: *(?:#[^\r\n]*)?\r?\n)*---(?: +#[^\r\n]*| *)\r?\n)?")
"""A byte order mark, and the line `---` in front of the document."""
_INDENT = re.compile(r" *")


def cut(text: str) -> list[Cut] | None:
    """The blocks in their order; None if the lines do not show how the text is built."""
    opening = _OPENING.match(text)
    top = opening.end() if opening else 0
    if _is_odd(text, top):
        return None
    begins = [top] if _FIRST.match(text, top) else []
    begins += [found.end() for found in _TOP.finditer(text, top)]
    first = begins[0] if begins else len(text)
    if not is_filler(text[top:first]):
        return None
    cuts = [Cut("filler", text[:first])] if first else []
    for begin, end in pairwise([*begins, len(text)]):
        if text[begin] in "?:":
            return None
        section = _SECTION.match(text, begin)
        if section is None:
            cuts.append(Cut("key", text[begin:end]))
        elif (entries := _cut_section(text[begin:end], section[1])) is not None:
            cuts += entries
        else:
            return None
    return cuts


def is_filler(text: str) -> bool:
    """Whether a text has only comments and blank lines."""
    found = _FILLER.match(text)
    return found is not None and found.end() == len(text)


def braces(header: str) -> tuple[int, int]:
    """Where the braces of `agents: {}` are, or would be."""
    found = _HEADER.match(header)
    if found is not None and found["empty"] is not None:
        return found.span("empty")
    colon = header.index(":") + 1
    return colon, colon


def _is_odd(text: str, begin: int) -> bool:
    """Whether lines may be something else than they look like."""
    if has_odd(text, begin) or text.count("\r") != text.count("\r\n"):
        return True
    return text.startswith(("---", "...", "%"), begin) or any(text.find(mark, begin) >= 0 for mark in _DOCUMENT_MARKS)


def _cut_section(text: str, section: str) -> list[Cut] | None:
    header = _HEADER.match(text)
    if header is None:
        return [Cut("section", text, section)]
    filler = _FILLER.match(text, header.end())
    first = filler.end() if filler else header.end()
    if first >= len(text):
        return [Cut("header", text, section)]
    if header["empty"] is not None:
        return None
    spaces = _INDENT.match(text, first)
    indent = len(spaces[0]) if spaces else 0
    begins = [
        first,
        *(found.start() + 1 for found in re.compile(rf"\n {{{indent}}}(?=[^ #\r\n])").finditer(text, first)),
    ]
    if not indent or any(text[begin + indent] in "?:" for begin in begins):
        return None
    entries = (Cut("entry", text[begin:end], section) for begin, end in pairwise([*begins, len(text)]))
    return [Cut("header", text[:first], section), *entries]


# --- reading ---


def read_block(kind: BlockKind, text: str, section: str = "") -> TextBlock:
    """A block by itself. Raises MalformedYaml."""
    match kind:
        case "filler" | "header":
            return TextBlock(kind, text, section)
        case "entry":
            name, value = entry.read_entry(text) or _parsed_pair(text)
            return TextBlock(kind, text, section, entry=RegistryEntry(section, name, value))
        case "key":
            key, value = entry.read_key(text) or _parsed_pair(text)
            if key not in SECTIONS:
                return TextBlock(kind, text, key=(key, value))
    raise MalformedYaml(1, 1, "a section in another style than the usual one is not read alone")


def _parsed_pair(text: str) -> tuple[str, Any]:
    from registry import parser  # noqa: PLC0415 - rarely needed

    return parser.load_pair(text)


def _read_blocks(text: str, before: Document | None) -> tuple[TextBlock, ...] | None:
    cuts = cut(text)
    if cuts is None:
        return None
    known = {(each.section, each.text): each for each in (before.blocks or () if before is not None else ())}
    blocks: list[TextBlock] = []
    names: set[tuple[str, str]] = set()
    for each in cuts:
        block = known.get((each.section, each.text))
        try:
            if block is None or block.kind != each.kind:
                block = read_block(*each)
        except MalformedYaml:
            return None
        if (name := _name(block)) in names:
            return None
        if name is not None:
            names.add(name)
        blocks.append(block)
    return tuple(blocks)


def _name(block: TextBlock) -> tuple[str, str] | None:
    """What must not be there twice."""
    if block.entry is not None:
        return block.section, block.entry.name
    if block.key is not None:
        return "", block.key[0]
    return ("", block.section) if block.section else None


def _read_as_whole(text: str) -> Document:
    if is_filler(text):
        return Document(text, (TextBlock("filler", text),))
    from registry import parser  # noqa: PLC0415 - rarely needed

    found = parser.load_registry(text, SECTIONS)
    keys = {key: None if key in SECTIONS else value for key, value in found.items()}
    entries = {
        (section, name): RegistryEntry(section, name, value)
        for section in SECTIONS
        for name, value in found.get(section, {}).items()
    }
    return Document(text, None, keys, entries)


def values(document: Document) -> dict[tuple[str, ...], Any]:
    """All that a document says, by where it says it."""
    top: dict[tuple[str, ...], Any] = {(key,): value for key, value in document.keys.items()}
    return {**top, **{where: each.value for where, each in document.entries.items()}}
