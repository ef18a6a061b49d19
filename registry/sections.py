"""Edits of texts with more than one entry, by the places that the parser gives."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from registry.edits import (
    STEP,
    Change,
    Page,
    apply,
    edit_entry,
    entry_lines,
    entry_pair,
    filler_end,
    kept_apart,
    new_lines,
    put_text,
    set_value,
    with_copies,
)
from registry.lines import SECTIONS
from registry.nodes import Node, column_of, line_end, line_start, next_line, pair_start
from registry.planning import Plan
from registry.units import Entry, Unit, tree_of

_TO_COMMA = re.compile(r"(?:\s|#[^\r\n]*+)*+,")


def edit_tree(unit: Unit, plan: Plan, page: Page) -> str:
    """The text of an entry, of a section or of a whole registry with the edits that are about it."""
    if unit.kind == "whole" and not unit.top:
        return _from_nothing(plan, page)
    root = tree_of(unit).root
    changes: list[Change] = []
    entries = {(each.section, each.name): each for each in unit.entries}
    if unit.kind == "entry":
        ((_, value),) = root.pairs
        return apply(page.text, with_copies(root, _put_fields(page, unit.entries[0], value, (root,), plan)))
    for section in SECTIONS:
        pair = root.named().get(section)
        if pair is not None:
            changes += _edit_section(page, root, pair, section, entries, plan)
        elif unit.kind == "whole" and plan.added.get(section):
            changes.append(_new_section(page, root, section, plan.added[section]))
    if unit.kind == "whole" and plan.version is not None:
        changes += _set_version(page, root, plan.version)
    return apply(page.text, with_copies(root, changes))


def _from_nothing(plan: Plan, page: Page) -> str:
    """A text that holds no more than comments."""
    text = page.text if not page.text or page.text.endswith("\n") else page.text + page.eol
    if plan.version is not None:
        text += f"version: {plan.version}{page.eol}"
    for section, added in plan.added.items():
        entries = "".join(entry_lines(name, new, STEP, STEP, page.eol) for name, new in added.items())
        text += f"{section}:{page.eol}{entries}" if added else ""
    return text


def _put_fields(page: Page, entry: Entry, value: Node, above: tuple[Node, ...], plan: Plan) -> list[Change]:
    fields = plan.puts.get((entry.section, entry.name))
    if not fields:
        return []
    merged = _merged(value)
    return edit_entry(page, value, above, fields, merged)


def _merged(value: Node) -> set[str]:
    """The fields that a mapping has from others, by `<<`."""
    names: set[str] = set()
    waiting = [pair[1] for pair in value.pairs if pair[0].tag == "tag:yaml.org,2002:merge"]
    waiting += [value.target] if value.target is not None else []
    seen: set[int] = set()
    while waiting:
        node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        waiting += [*node.items, *([node.target] if node.target else [])]
        waiting += [pair[1] for pair in node.pairs if pair[0].tag == "tag:yaml.org,2002:merge"]
        names |= node.named().keys()
    return names


def _edit_section(
    page: Page,
    root: Node,
    pair: tuple[Node, Node],
    section: str,
    entries: Mapping[tuple[str, str], Entry],
    plan: Plan,
) -> list[Change]:
    key, value = pair
    there = value.named() if value.kind == "map" else {}
    changes: list[Change] = []
    gone = [name for name in there if (section, name) in plan.removed]
    added = plan.added.get(section, {})
    if gone and len(gone) == len(there) and (value.flow or not added):
        return put_text(page, value, key, (root, value), _in_braces(added))
    for name, (name_node, each) in there.items():
        if name not in gone:
            changes += _put_fields(page, entries[section, name], each, (root, value), plan)
        elif not value.flow:
            changes.append(_remove_entry(page, name_node, each, (root, value)))
    if value.flow and gone:
        changes += _remove_pairs(page, value, gone, (root, value))
    if added:
        left = [pair for name, pair in there.items() if name not in gone]
        changes += _add_entries(page, root, key, value, left, added)
    return changes


def _remove_pairs(page: Page, section: Node, gone: Collection[str], path: tuple[Node, ...]) -> Iterator[Change]:
    """Take entries out of braces, each with a comma: the one in front of it, if something stays there."""
    text = page.text
    front = None
    stays = False
    for name, (key, value) in section.named().items():
        end = _end(key, value)
        behind = _comma(text, end)
        if name not in gone:
            front, stays = behind, True
            continue
        touches = (*path, value)
        if stays and front is not None and not text[front + 1 : key.start].strip():
            yield Change(front, end, "", touches)
            front = behind
        elif behind is not None and not text[end:behind].strip():
            yield Change(key.start, _past_blanks(text, behind + 1), "", touches)
            front = front if stays else None
        else:  # comments around it stay
            yield Change(key.start, end, "", touches)
            comma = front if stays else behind
            if comma is not None:
                yield Change(comma, comma + 1, "", touches)
            front = behind if stays else None


def _comma(text: str, position: int) -> int | None:
    """The comma behind a place, with nothing but comments between."""
    found = _TO_COMMA.match(text, position)
    return found.end() - 1 if found else None


def _past_blanks(text: str, position: int) -> int:
    """Where the next thing on the line stands, if it is no comment: that needs the blank in front of it."""
    at = position
    while text.startswith((" ", "\t"), at):
        at += 1
    return position if text.startswith(("#", "\r", "\n"), at) else at


def _end(key: Node, value: Node) -> int:
    return max(key.end, value.end)


def _remove_entry(page: Page, key: Node, value: Node, path: tuple[Node, ...]) -> Change:
    text = page.text
    end = max(key.end, value.end)
    begin, behind_it = line_start(text, key.start), next_line(text, line_end(text, end))
    if page.careful:
        rest = filler_end(text, behind_it)
        return Change(begin, rest, kept_apart(text[behind_it:rest], page.eol), (*path, value))
    return Change(begin, behind_it, "", (*path, value))


def _add_entries(
    page: Page,
    root: Node,
    key: Node,
    value: Node,
    left: Sequence[tuple[Node, Node]],
    added: Mapping[str, Mapping[str, Any]],
) -> list[Change]:
    path = (root, value)
    text = page.text
    if value.kind == "map" and value.pairs and not value.flow:
        first = value.pairs[0][0]
        begin = line_start(text, first.start)
        indent = column_of(text, pair_start(text, first))
        last = value.pairs[-1][1]
        step = STEP
        if last.kind == "map" and not last.flow:
            step = max(1, column_of(text, pair_start(text, last.pairs[0][0])) - indent)
        lines = "".join(entry_lines(name, new, indent, step, page.eol) for name, new in added.items())
        if page.careful:
            return [Change(begin, begin, lines, path)]
        return [new_lines(text, value, lines, page.eol, path)]
    if left:
        end = _end(*left[-1])
        glue = " " if text[end - 1] == ":" else ""
        return [Change(end, end, f"{glue}, {_pairs(added)}", path)]
    return put_text(page, value, key, path, _in_braces(added))


def _pairs(added: Mapping[str, Mapping[str, Any]]) -> str:
    return ", ".join(entry_pair(name, new) for name, new in added.items())


def _in_braces(added: Mapping[str, Mapping[str, Any]]) -> str:
    return f"{{{_pairs(added)}}}"


def _new_section(page: Page, root: Node, section: str, added: Mapping[str, Mapping[str, Any]]) -> Change:
    if root.flow:
        new = f"{section}: {_in_braces(added)}"
        if not root.pairs:
            return Change(root.end - 1, root.end - 1, new, (root,))
        key, value = root.pairs[-1]
        end = max(key.end, value.end)
        return Change(end, end, f", {new}", (root,))
    first = root.pairs[0][0]
    begin = line_start(page.text, first.start)
    indent = column_of(page.text, pair_start(page.text, first))
    lines = f"{' ' * indent}{section}:{page.eol}"
    lines += "".join(entry_lines(name, new, indent + STEP, STEP, page.eol) for name, new in added.items())
    if page.careful:
        return Change(begin + _bom(page.text, begin), begin + _bom(page.text, begin), lines, (root,))
    return new_lines(page.text, root, lines, page.eol, (root,))


def _set_version(page: Page, root: Node, version: int) -> list[Change]:
    pair = root.named().get("version")
    if pair is not None:
        return set_value(page, pair, (root,), version, flow=root.flow)
    first = pair_start(page.text, root.pairs[0][0])
    if root.flow:
        return [Change(first, first, f"version: {version}, ", (root,))]
    begin = line_start(page.text, first)
    begin += _bom(page.text, begin)
    return [Change(begin, begin, f"{' ' * column_of(page.text, first)}version: {version}{page.eol}", (root,))]


def _bom(text: str, position: int) -> int:
    return 1 if text[position : position + 1] == "\ufeff" else 0
