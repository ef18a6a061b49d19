"""Edits of the registry's text: each in its place, and nothing else changes. Pure.

An entry in ordinary block style is edited by position. Each edited block is read again, and must say what it should.
An entry that can't be edited so (flow style, anchors, aliases, tags) is rewritten as a whole in plain block style, and
the result names it, so that a person can be told.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from registry.document import SECTIONS, Cut, Document, TextBlock, braces, cut, read_block, values
from registry.entry import (
    FIELD,
    GONE,
    STEP,
    Fields,
    NotEditable,
    content_end,
    edit_entry,
    entry_text,
    field_text,
    indents,
    own_end,
)
from registry.yaml_text import MalformedYaml, read_name

WHOLE_FILE = "the whole file"

EntryKey = tuple[str, str]
"""The section and the name of an entry."""


@dataclass(frozen=True)
class EditedDocument:
    document: Document
    rewritten: tuple[str, ...] = ()
    """What could not be edited in place, and is in plain block style now."""


class EditRefused(Exception):
    """The text can't say what it should, not even rewritten."""


def edit(document: Document, puts: Mapping[EntryKey, Fields], removed: Collection[EntryKey] = ()) -> EditedDocument:
    """The document without the `removed` entries, and with the fields of `puts` set; GONE removes a field.

    An entry that is not there, or is removed, is added. Raises EditRefused.
    """
    eol = "\r\n" if document.text.endswith("\r", 0, max(document.text.find("\n"), 0)) else "\n"
    start, rewritten = (document, list[str]()) if document.blocks is not None else _in_blocks(document, eol)
    work = _Pass(eol, rewritten)
    try:
        work.run(start, puts, removed)
    except MalformedYaml as error:
        raise EditRefused from error
    return EditedDocument(Document.of_blocks(tuple(work.out)), tuple(work.rewritten))


def _with_fields(before: Any, fields: Fields) -> dict[Any, Any]:
    after = {**(before if isinstance(before, dict) else {}), **fields}
    return {key: value for key, value in after.items() if value is not GONE}


# --- one pass over the blocks ---


@dataclass(slots=True)
class _Pass:
    eol: str
    rewritten: list[str]
    out: list[TextBlock] = field(default_factory=list)

    def run(self, document: Document, puts: Mapping[EntryKey, Fields], removed: Collection[EntryKey]) -> None:
        for block in document.blocks or ():
            where = (block.section, block.entry.name) if block.entry is not None else None
            if where is None:
                self.out.append(block)
            elif where in removed:
                self._keep_filler(block.text[content_end(block.text) :])
            else:
                self.out.append(self._edited(block, puts[where]) if where in puts else block)
        added: dict[str, dict[str, Fields]] = defaultdict(dict)
        for (section, name), fields in puts.items():
            if (section, name) in removed or (section, name) not in document.entries:
                added[section][name] = fields
        for section, entries in added.items():
            self._add(section, entries)
        for section in {*added, *(section for section, name in removed if (section, name) in document.entries)}:
            self._fit_header(section)

    def _edited(self, block: TextBlock, fields: Fields) -> TextBlock:
        wanted = _with_fields(block.value, fields)
        try:
            edited = read_block("entry", edit_entry(block.text, fields, self.eol), block.section)
        except (NotEditable, MalformedYaml):
            edited = block
        return edited if is_same(edited.value, wanted) else self._rewritten(block, wanted)

    def _rewritten(self, block: TextBlock, wanted: Mapping[Any, Any]) -> TextBlock:
        name = block.entry.name if block.entry is not None else ""
        text = entry_text(name, wanted, *indents(block.text), self.eol) + block.text[content_end(block.text) :]
        self.rewritten.append(f"{block.section}.{name}")
        return _checked(read_block("entry", text, block.section), wanted)

    def _keep_filler(self, filler: str) -> None:
        """Comments behind an entry that is removed now follow what is above it."""
        if filler:
            above = self.out.pop()
            kept = _extended(above, filler) or _extended(above, _flush_left(filler, self.eol))
            if kept is None:
                raise EditRefused
            self.out.append(kept)

    def _add(self, section: str, added: Mapping[str, Fields]) -> None:
        """New entries go behind the last one of their section and the comments that belong to it."""
        places = [place for place, block in enumerate(self.out) if block.section == section]
        if not places:
            self._add_section(section, added)
            return
        last = self.out[places[-1]]
        indent, step = indents(last.text) if last.kind == "entry" else (STEP, STEP)
        new = self._new_entries(section, added, indent, step)
        at = own_end(last.text)
        above = self._terminated(TextBlock(last.kind, last.text[:at], section, last.entry))
        if above is None:  # a line break behind it would change its last value
            first = places[1]
            self.out[first:first] = new
            return
        if above.text != last.text:
            new[-1] = read_block("entry", new[-1].text + last.text[at:], section)
        else:
            above = last
        self.out[places[-1] : places[-1] + 1] = [above, *new]

    def _add_section(self, section: str, added: Mapping[str, Fields]) -> None:
        new = [TextBlock("header", f"{section}:{self.eol}", section), *self._new_entries(section, added, STEP, STEP)]
        last = self._terminated(self.out[-1]) if self.out else None
        if last is not None:
            self.out[-1:] = [last, *new]
        else:  # there is no text yet, or a line break behind it would change its last value
            first = next((place for place, block in enumerate(self.out) if block.kind != "filler"), len(self.out))
            self.out[first:first] = new

    def _new_entries(self, section: str, added: Mapping[str, Fields], indent: int, step: int) -> list[TextBlock]:
        made = []
        for name, fields in added.items():
            wanted = _with_fields({}, fields)
            block = read_block("entry", entry_text(name, wanted, indent, step, self.eol), section)
            made.append(_checked(block, wanted))
        return made

    def _terminated(self, block: TextBlock) -> TextBlock | None:
        """The block with a line break at its end; None if that changes what it says."""
        return _extended(block, "" if not block.text or block.text.endswith("\n") else self.eol)

    def _fit_header(self, section: str) -> None:
        """A section without entries is written `agents: {}`, and one with entries without the braces."""
        is_empty = not any(block.entry is not None and block.section == section for block in self.out)
        for place, block in enumerate(self.out):
            if block.kind == "header" and block.section == section:
                start, end = braces(block.text)
                if (start == end) == is_empty:
                    text = block.text[:start] + (" {}" if is_empty else "") + block.text[end:]
                    self.out[place] = TextBlock("header", text, section)


def _extended(block: TextBlock, more: str) -> TextBlock | None:
    """The block with more lines at its end; None if that changes what it says."""
    extended = read_block(block.kind, block.text + more, block.section)
    return extended if repr(extended.value) == repr(block.value) else None


def _flush_left(filler: str, eol: str) -> str:
    """Comments without their indentation, so that they can't become a part of a block scalar above them."""
    return "".join(f"{line.strip()}{eol}" for line in filler.splitlines() if line.strip())


def _checked(block: TextBlock, wanted: Any) -> TextBlock:
    if not is_same(block.value, wanted):
        raise EditRefused
    return block


def is_same(found: Any, wanted: Any) -> bool:
    """Whether two values are the same to a reader; a field that is null is as good as none."""
    if not isinstance(wanted, dict) or not isinstance(found, dict):
        return _is_equal(wanted, found)
    return all(_is_equal(wanted.get(key), found.get(key)) for key in {*wanted, *found})


def _is_equal(one: Any, other: Any) -> bool:
    """By what is written of the values: `==` holds for 1 and true, and not for two NaNs."""
    if repr(one) == repr(other):
        return True
    from registry import parser  # noqa: PLC0415 - rarely needed

    return type(one) is type(other) and parser.dump_pair("", one) == parser.dump_pair("", other)


# --- texts that are not in blocks ---

_FIRST_COMMENTS = re.compile(r"(?:#[^\r\n]*\r?\n|\r?\n)*")


def _in_blocks(document: Document, eol: str) -> tuple[Document, list[str]]:
    """The same document in blocks: those that can't be read alone are rewritten, or else the whole file is."""
    for rewrite in (_rewrite_blocks, _rewrite_all):
        try:
            text, rewritten = rewrite(document, eol)
            made = Document.parse(text)
        except (NotEditable, MalformedYaml):
            continue
        if made.blocks is not None and is_same(values(made), values(document)):
            return made, rewritten
    raise EditRefused


def _rewrite_blocks(document: Document, eol: str) -> tuple[str, list[str]]:
    parts: list[str] = []
    rewritten: list[str] = []
    cuts = cut(document.text)
    if cuts is None:
        raise NotEditable
    for each in cuts:
        try:
            parts.append(read_block(*each).text)
        except MalformedYaml:
            name, text = _rewritten_cut(document, each, eol)
            parts.append(text + each.text[content_end(each.text) :])
            rewritten.append(name)
    return "".join(parts), rewritten


def _rewritten_cut(document: Document, each: Cut, eol: str) -> tuple[str, str]:
    """The name and the new text of a block that can't be read alone."""
    found = FIELD.match(each.text)
    if found is None:
        raise NotEditable
    name = read_name(found[1])
    if each.kind == "entry":
        return f"{each.section}.{name}", _entry_text(document, each.section, name, *indents(each.text), eol)
    return name, _top_text(document, name, eol)


def _rewrite_all(document: Document, eol: str) -> tuple[str, list[str]]:
    comments = _FIRST_COMMENTS.match(document.text)
    parts = [comments[0] if comments else "", *(_top_text(document, key, eol) for key in document.keys)]
    return "".join(parts), [WHOLE_FILE]


def _top_text(document: Document, key: str, eol: str) -> str:
    if key not in SECTIONS:
        return "".join(f"{line}{eol}" for line in field_text(key, document.keys[key]))
    entries = [_entry_text(document, key, name, STEP, STEP, eol) for name in document.section(key)]
    return "".join([f"{key}:{'' if entries else ' {}'}{eol}", *entries])


def _entry_text(document: Document, section: str, name: str, indent: int, step: int, eol: str) -> str:
    found = document.entries.get((section, name))
    if found is None:
        raise NotEditable
    if isinstance(found.value, dict):
        return entry_text(name, found.value, indent, step, eol)
    return "".join(f"{' ' * indent}{line}{eol}" for line in field_text(name, found.value))
