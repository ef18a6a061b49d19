"""What to change in a text so that it says something new, and nothing else. Pure: places in, replacements out."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from registry.nodes import Node, column_of, is_explicit, line_end, line_start, next_line, pair_start, resolved
from registry.scalars import write

STEP = 2
"""How far our own lines are indented."""


class Gone:
    """Said of a field that an entry should not have."""


GONE: Final = Gone()

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Change:
    """A replacement, and what is not the same afterwards: aliases of that need a copy of what it was."""

    start: int
    end: int
    text: str
    touches: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Page:
    """A text to be edited, and how careful to be.

    Careful edits are for what would change something else: a line taken out below a block scalar that keeps blank
    lines, or one added behind a text that ends without a line break.
    """

    text: str
    eol: str
    careful: bool = False


def apply(text: str, changes: Iterable[Change]) -> str:
    parts: list[str] = []
    done = 0
    for change in sorted(changes, key=lambda each: (each.start, each.end)):
        if change.start < done:  # overlaps what was replaced already: neighbours share a comma
            done = max(done, change.end)
            continue
        parts += (text[done : change.start], change.text)
        done = change.end
    return "".join([*parts, text[done:]])


def with_copies(root: Node, changes: Sequence[Change]) -> list[Change]:
    """The changes, and a copy in the place of each alias whose anchor will not be what it was."""
    touched = {id(node) for change in changes for node in change.touches}
    spans = [(change.start, change.end) for change in changes if change.end > change.start]
    copies = []
    for node in root.all():
        if node.target is None or any(start <= node.start < end for start, end in spans):
            continue
        target = resolved(node)
        if id(target) in touched or any(start <= target.start and target.end <= end for start, end in spans):
            copies.append(Change(node.start, node.end, flow_text(target)))
    return [*changes, *copies]


def flow_text(node: Node) -> str:
    """A value on one line, as it is now."""
    node = resolved(node)
    tag = f"!<{node.tag}> " if node.tagged else ""
    if node.kind == "list":
        return f"{tag}[{', '.join(map(flow_text, node.items))}]"
    if node.kind == "map":
        return f"{tag}{{{', '.join(f'{flow_text(key)}: {flow_text(value)}' for key, value in node.pairs)}}}"
    if node.tag == "tag:yaml.org,2002:str":
        return tag + write(node.text, flow=True)
    if node.tagged:
        return tag + write(node.text, '"')
    return node.text or "null"


# --- one entry ---


def edit_entry(page: Page, value: Node, above: Sequence[Node], fields: Fields, merged: Collection[str]) -> list[Change]:
    """Set, add and remove fields of an entry. `merged` are those that it has from elsewhere, by `<<` or an alias."""
    path = (*above, value)
    if value.kind == "alias":
        pairs = [f"{write(key, flow=True)}: {_flow(new)}" for key, new in fields.items()]
        opened = Change(value.start, value.start, "{<<: ", path)
        return [opened, Change(value.end, value.end, f"{''.join(f', {pair}' for pair in pairs)}}}", path)]
    if value.kind != "map":
        wanted = {key: new for key, new in fields.items() if new is not GONE}
        return put_text(page, value, None, path, _flow_map(wanted))
    there = value.named()
    changes: list[Change] = []
    added: dict[str, Any] = {}
    going = [key for key, new in fields.items() if new is GONE and key in there]
    left = len(value.pairs) - len(going)
    for key, new in fields.items():
        if key not in there:
            if new is not GONE or key in merged:
                added[key] = None if new is GONE else new
        elif new is not GONE:
            changes += set_value(page, there[key], path, new, flow=value.flow)
        elif key in merged:
            changes += set_value(page, there[key], path, None, flow=value.flow)
        else:
            stays = not value.flow and not left and key == going[-1]
            changes += _remove(page, value, there[key], path, stays=stays)
    if added:
        changes += _add(page, value, path, added)
    return changes


def set_value(page: Page, pair: tuple[Node, Node], path: tuple[Node, ...], new: Any, *, flow: bool) -> list[Change]:
    key, value = pair
    like = value.style if value.kind == "scalar" else ""
    return put_text(page, value, key, (*path, value), write(new, like, flow=flow))


def put_text(page: Page, value: Node, key: Node | None, path: tuple[Node, ...], text: str) -> list[Change]:
    """Put words in the place of a value as they are."""
    if value.is_empty:
        if page.text[value.start - 1 : value.start] == ":" or key is None:
            return [Change(value.start, value.start, f" {text}", path)]
        if is_explicit(page.text, key):  # `? key` on a line of its own
            column = column_of(page.text, pair_start(page.text, key))
            return [Change(key.end, key.end, f"{page.eol}{' ' * column}: {text}", path)]
        return [Change(key.end, key.end, f": {text}", path)]
    glue = "" if page.text[value.start - 1 : value.start] in (" ", "\t", "\n") else " "
    if value.is_block and key is not None and line_start(page.text, value.start) > key.end:
        return _set_block(page, value, key, path, text)
    return [Change(value.start, value.end, glue + text, path)]


def _set_block(page: Page, value: Node, key: Node, path: tuple[Node, ...], text: str) -> list[Change]:
    """Put a value behind the key whose lines below it go; comments on lines of their own stay."""
    colon = page.text.index(":", key.end) + 1
    begin = line_start(page.text, value.start)
    end = line_end(page.text, value.end)
    leaves = [(node.start, node.end) for node in value.all() if node.kind in ("scalar", "alias")]
    kept = []
    at = begin
    while at < end:
        following = next_line(page.text, at)
        line = page.text[at:following]
        inside = any(start < at < stop for start, stop in leaves)
        if line.lstrip().startswith("#") and not inside:
            kept.append(line)
        at = following
    stop = at if kept else end
    if kept:
        return [Change(colon, colon, f" {text}", path), Change(begin, stop, "".join(kept), path)]
    return [Change(colon, colon, f" {text}", path), Change(_before_break(page.text, begin), end, "", path)]


def _before_break(text: str, position: int) -> int:
    """Where the break in front of a line begins."""
    return position - 2 if text[max(0, position - 2) : position] == "\r\n" else position - 1


def _remove(page: Page, mapping: Node, pair: tuple[Node, Node], path: tuple[Node, ...], *, stays: bool) -> list[Change]:
    """Take a field out; where that would take a person's comment along, it becomes `null`."""
    key, value = pair
    text = page.text
    end = max(key.end, value.end)
    if page.careful or stays or _bears_comment(text, key, value):
        return set_value(page, pair, path, None, flow=mapping.flow)
    if mapping.flow:
        span = _flow_span(text, key.start, end)
        if span is None:
            return set_value(page, pair, path, None, flow=True)
        return [Change(*span, "", (*path, value))]
    begin = line_start(text, key.start)
    if text[begin : key.start].strip() not in ("", "?"):
        return set_value(page, pair, path, None, flow=False)
    return [Change(begin, next_line(text, line_end(text, end)), "", (*path, value))]


def _bears_comment(text: str, key: Node, value: Node) -> bool:
    end = max(key.end, value.end)
    if "#" in text[end : line_end(text, end)]:
        return True
    between = text[key.end : value.start]
    if "#" in between:
        return True
    if value.style in ("|", ">"):
        return "#" in text[value.start : line_end(text, value.start)]
    if value.kind not in ("list", "map"):
        return False
    done = value.start
    for leaf in sorted((node for node in value.all() if node.kind in ("scalar", "alias")), key=lambda each: each.start):
        if "#" in text[done : leaf.start]:
            return True
        done = max(done, leaf.end)
    return "#" in text[done : value.end]


def _flow_span(text: str, start: int, end: int) -> tuple[int, int] | None:
    """A pair in braces with one of its commas; None where that is not plain to see."""
    behind = re.compile(r"[ \t]*,[ \t]*").match(text, end)
    if behind:
        begin = line_start(text, start)
        if not text[begin:start].strip() and behind.end() == line_end(text, behind.end()):
            return begin, next_line(text, behind.end())
        return start, behind.end()
    before = text[:start].rstrip()
    if before.endswith(","):
        return len(before) - 1, end
    return (start, end) if before.endswith("{") else None


def _add(page: Page, mapping: Node, path: tuple[Node, ...], fields: Fields) -> list[Change]:
    text = page.text
    if mapping.flow:
        pairs = ", ".join(f"{write(key, flow=True)}: {_flow(new)}" for key, new in fields.items())
        return [_into_braces(mapping, pairs, path)]
    first = mapping.pairs[0][0]
    begin = line_start(text, first.start)
    column = column_of(text, pair_start(text, first))
    lines = "".join(f"{' ' * column}{write(key, flow=True)}: {write(new)}{page.eol}" for key, new in fields.items())
    if page.careful and not text[begin : first.start].strip():
        return [Change(begin, begin, lines, path)]
    return [new_lines(text, mapping, lines, page.eol, path)]


def new_lines(text: str, behind: Node, lines: str, eol: str, path: tuple[Node, ...]) -> Change:
    """Lines behind a block value, in front of the comments and blank lines that follow it."""
    at = behind.after if _begins_line(text, behind.after) else next_line(text, line_end(text, behind.after))
    return Change(at, at, lines if _begins_line(text, at) else f"{eol}{without_break(lines)}", path)


def _begins_line(text: str, position: int) -> bool:
    return position == 0 or text[position - 1] in "\n\r\x85\u2028\u2029"


def _into_braces(mapping: Node, pairs: str, path: tuple[Node, ...]) -> Change:
    if not mapping.pairs:
        return Change(mapping.end - 1, mapping.end - 1, pairs, path)
    key, value = mapping.pairs[-1]
    end = max(key.end, value.end)
    return Change(end, end, f", {pairs}", path)


def _flow(value: Any) -> str:
    return write(None if value is GONE else value, flow=True)


def _flow_map(fields: Fields) -> str:
    return f"{{{', '.join(f'{write(key, flow=True)}: {_flow(value)}' for key, value in fields.items())}}}"


# --- entries of a section ---


def entry_lines(name: str, fields: Fields, indent: int, step: int, eol: str) -> str:
    """A new entry as lines."""
    inner = " " * (indent + step)
    empty = "" if any(new is not GONE for new in fields.values()) else " {}"
    lines = [f"{' ' * indent}{write(name, flow=True)}:{empty}"]
    lines += [f"{inner}{write(key, flow=True)}: {write(new)}" for key, new in fields.items() if new is not GONE]
    return "".join(f"{line}{eol}" for line in lines)


def entry_pair(name: str, fields: Fields) -> str:
    """A new entry for a section in braces."""
    return f"{write(name, flow=True)}: {_flow_map({key: new for key, new in fields.items() if new is not GONE})}"


def behind_comments(text: str, position: int, indent: int) -> int:
    """Behind the comments that follow a place and are indented deeper than `indent`: they belong to what is above."""
    at = best = position
    while at < len(text):
        following = next_line(text, at)
        line = text[at:following]
        stripped = line.strip()
        if stripped and not (stripped.startswith("#") and len(line) - len(line.lstrip(" ")) > indent):
            break
        if stripped:
            best = following
        at = following
    return best


def without_break(text: str) -> str:
    return re.sub(r"\r?\n\Z", "", text)


def filler_end(text: str, position: int) -> int:
    """Behind the comments and blank lines that follow a place."""
    while position < len(text):
        following = next_line(text, position)
        line = text[position:following].strip()
        if line and not line.startswith("#"):
            break
        position = following
    return position


def kept_apart(filler: str, eol: str) -> str:
    """Comments that would be taken for a part of a text above them, without their indentation and the blank lines."""
    return "".join(f"{line.strip()}{eol}" for line in filler.splitlines() if line.strip())
