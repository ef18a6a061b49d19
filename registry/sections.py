"""Edits of texts with more than one entry, by the places that the parser gives."""

from collections.abc import Mapping
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
    if gone and len(gone) == len(there) and not added:
        return put_text(page, value, key, (root, value), "{}")
    for name, (name_node, each) in there.items():
        if name in gone:
            changes.append(_remove_entry(page, value, name_node, each, (root, value)))
        else:
            changes += _put_fields(page, entries[section, name], each, (root, value), plan)
    if added:
        changes += _add_entries(page, root, key, value, added)
    return changes


def _remove_entry(page: Page, section: Node, key: Node, value: Node, path: tuple[Node, ...]) -> Change:
    text = page.text
    end = max(key.end, value.end)
    if section.flow:
        before = text[: key.start].rstrip()
        behind = text[end:]
        stripped = behind.lstrip()
        if stripped.startswith(","):
            return Change(key.start, end + len(behind) - len(stripped) + 1, "", (*path, value))
        start = len(before) - 1 if before.endswith(",") else key.start
        return Change(start, end, "", (*path, value))
    begin, behind_it = line_start(text, key.start), next_line(text, line_end(text, end))
    if page.careful:
        rest = filler_end(text, behind_it)
        return Change(begin, rest, kept_apart(text[behind_it:rest], page.eol), (*path, value))
    return Change(begin, behind_it, "", (*path, value))


def _add_entries(
    page: Page, root: Node, key: Node, value: Node, added: Mapping[str, Mapping[str, Any]]
) -> list[Change]:
    path = (root, value)
    text = page.text
    pairs = ", ".join(entry_pair(name, new) for name, new in added.items())
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
    if value.kind == "map" and value.pairs:
        last_key, last = value.pairs[-1]
        end = max(last_key.end, last.end)
        return [Change(end, end, f", {pairs}", path)]
    return put_text(page, value, key, path, f"{{{pairs}}}")


def _new_section(page: Page, root: Node, section: str, added: Mapping[str, Mapping[str, Any]]) -> Change:
    if root.flow:
        pairs = ", ".join(entry_pair(name, new) for name, new in added.items())
        new = f"{section}: {{{pairs}}}"
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
