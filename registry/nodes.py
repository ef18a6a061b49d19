"""Where things stand in a YAML text: the shape that edits work on, whoever read it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")

TEXT_TAG = "tag:yaml.org,2002:str"


@dataclass(slots=True, eq=False)
class Node:
    """A value and its place. Positions count characters from the beginning of the text that was read."""

    kind: Literal["scalar", "list", "map", "alias"]
    start: int
    """Its first character; an anchor or a tag in front of it belongs to it."""
    end: int
    """Behind its last character of content."""
    after: int
    """Behind all that belongs to it: a block scalar's trailing blank lines too."""
    style: str = ""
    """How a scalar is written: `'`, `"`, `|`, `>` or nothing for a plain one."""
    flow: bool = False
    """Whether a collection stands in brackets."""
    text: str = ""
    tag: str = TEXT_TAG
    tagged: bool = False
    """Whether a person wrote the tag."""
    anchor: str | None = None
    items: list["Node"] = field(default_factory=list)
    pairs: list[tuple["Node", "Node"]] = field(default_factory=list)
    target: "Node | None" = None
    """What an alias stands for."""

    @property
    def is_null(self) -> bool:
        return self.kind == "scalar" and self.tag == "tag:yaml.org,2002:null"

    @property
    def is_empty(self) -> bool:
        """A value that was left out."""
        return self.kind == "scalar" and self.start == self.end

    @property
    def is_block(self) -> bool:
        """Whether it takes lines of its own below its key."""
        return (self.kind in ("list", "map") and not self.flow) or self.style in ("|", ">")

    def named(self) -> dict[str, tuple["Node", "Node"]]:
        """The pairs of a mapping by the words of their keys."""
        return {resolved(key).text: (key, value) for key, value in self.pairs if resolved(key).kind == "scalar"}

    def all(self) -> Iterator["Node"]:
        """Itself and all that is written inside of it; aliases are not followed."""
        yield self
        for item in self.items:
            yield from item.all()
        for key, value in self.pairs:
            yield from key.all()
            yield from value.all()


def resolved(node: Node) -> Node:
    while node.target is not None:
        node = node.target
    return node


@dataclass(frozen=True, slots=True)
class Tree:
    """A text as it was read: the values, and where they stand."""

    root: Node
    value: Any


class Fault(Exception):
    """What is wrong with a text, and where; lines and columns count from 1."""

    def __init__(self, line: int, column: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line
        self.column = column
        self.problem = problem


def place_of(text: str, position: int) -> tuple[int, int]:
    """The line and the column of a position, counted from 1."""
    line, start = 1, 0
    for found in re.compile(r"\n|\r(?!\n)").finditer(text, 0, position):
        line, start = line + 1, found.end()
    return line, position - start + 1 - text.count("\ufeff", start, position)


def line_start(text: str, position: int) -> int:
    """Where the line of a position begins."""
    while position > 0 and text[position - 1] not in "\n\r\x85\u2028\u2029":
        position -= 1
    return position


def is_explicit(text: str, key: Node) -> bool:
    """Whether a key is written `? key`."""
    return text[line_start(text, key.start) : key.start].strip(" \t\ufeff") == "?"


def pair_start(text: str, key: Node) -> int:
    """Where a key begins, with the `?` that may stand in front of it."""
    return text.index("?", line_start(text, key.start)) if is_explicit(text, key) else key.start


def column_of(text: str, position: int) -> int:
    """The column of a position, counted from 0; a byte order mark takes none."""
    begin = line_start(text, position)
    return position - begin - text.count("\ufeff", begin, position)


def line_end(text: str, position: int) -> int:
    """Where the line of a position ends: at its break, or at the end of the text."""
    found = BREAK.search(text, position)
    return found.start() if found else len(text)


def next_line(text: str, position: int) -> int:
    """Where the line behind that of a position begins."""
    found = BREAK.search(text, position)
    return found.end() if found else len(text)
