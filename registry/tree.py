"""Any YAML, by ruamel's parser: what its safe loader reads, and where each thing stands.

Positions come from the parser's events. Composed nodes would not do: an alias shares the node of its anchor, and a
block collection ends only behind the comments that follow it.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import (
    AliasEvent,
    DocumentEndEvent,
    DocumentStartEvent,
    MappingEndEvent,
    MappingStartEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
    StreamStartEvent,
)
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from registry.nodes import Fault, Node, Tree, place_of

COLON = re.compile(r"\s*:")
DUPLICATE = re.compile(r'found duplicate key "(.*?)" with value', re.DOTALL)
DEEPEST = 100
"""ruamel takes time in the square of the depth, and the stack is not endless."""

UNDERLYING = (YAMLError, KeyError, ValueError, OverflowError, AttributeError, TypeError, AssertionError, IndexError)
"""ruamel lets the errors of what it builds with (a thirteenth month, `!!bool x`) through as they are."""


def read(text: str) -> Tree | None:
    """The one document of a text; None when there is nothing in it but comments. Raises Fault."""
    try:
        return _Reading(text).tree()
    except MarkedYAMLError as error:
        raise _fault(error) from error
    except ReaderError as error:
        line, column = place_of(text, error.position)
        raise Fault(line, column, f"it holds the control character {chr(error.character)!r}") from error
    except UNDERLYING as error:
        raise Fault(1, 1, in_short(error)) from error


def in_short(error: object) -> str:
    return " ".join(str(error).split())[:200] or "it can't be read"


def _fault(error: MarkedYAMLError) -> Fault:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    twice = DUPLICATE.match(str(error.problem)) if isinstance(error, DuplicateKeyError) else None
    return Fault(line, column, f"`{in_short(twice[1])}` is there twice" if twice else in_short(error.problem))


class _Reading:
    """One reading of one text. ruamel's nodes are made beside ours, for its constructor to make the values of."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.yaml = YAML(typ="safe", pure=True)
        self.events: Iterator[Any] = self.yaml.parse(text)
        self.anchors: dict[str, tuple[Node, Any]] = {}
        self.next = next(self.events)
        self.depth = 0

    def take(self, kind: type) -> Any:
        event = self.next
        assert isinstance(event, kind)  # noqa: S101 - the parser's own grammar
        if not isinstance(event, StreamEndEvent):
            self.next = next(self.events)
        return event

    def tree(self) -> Tree | None:
        self.take(StreamStartEvent)
        if isinstance(self.next, StreamEndEvent):
            return None
        self.take(DocumentStartEvent)
        root, theirs = self.node(0)
        self.take(DocumentEndEvent)
        if not isinstance(self.next, StreamEndEvent):
            mark = self.next.start_mark
            raise Fault(mark.line + 1, mark.column + 1, "a second document begins here, and there may be only one")
        return Tree(root, self.value(theirs))

    def value(self, theirs: Any) -> Any:
        constructor = self.yaml.constructor
        try:
            return constructor.construct_document(theirs)
        except MarkedYAMLError:
            raise
        except UNDERLYING as error:
            culprit = _first(theirs, lambda node: not _can_be_made(node))
            mark = (culprit or theirs).start_mark
            what = f"{culprit.value!r} is no {str(culprit.tag).rpartition(':')[2]}" if culprit else in_short(error)
            raise Fault(mark.line + 1, mark.column + 1, what) from error

    def node(self, behind: int) -> tuple[Node, Any]:
        """The next node, with ruamel's own. `behind` is where a node that was left out would stand."""
        event = self.next
        if isinstance(event, AliasEvent):
            return self.alias()
        if isinstance(event, ScalarEvent):
            return self.scalar(behind)
        if self.depth == DEEPEST:
            mark = event.start_mark
            raise Fault(mark.line + 1, mark.column + 1, f"it is nested more than {DEEPEST} levels deep")
        self.depth += 1
        made = self.sequence() if isinstance(event, SequenceStartEvent) else self.mapping()
        self.depth -= 1
        return made

    def alias(self) -> tuple[Node, Any]:
        event = self.take(AliasEvent)
        start, end = event.start_mark.index, event.end_mark.index
        if event.anchor not in self.anchors:
            line, column = place_of(self.text, start)
            raise Fault(line, column, f"nothing is called &{event.anchor} above this place")
        target, theirs = self.anchors[event.anchor]
        return Node("alias", start, end, end, target=target), theirs

    def scalar(self, behind: int) -> tuple[Node, Any]:
        event = self.take(ScalarEvent)
        start, end = event.start_mark.index, event.end_mark.index
        tag = event.ctag
        tagged = tag is not None and str(tag) != "!"
        if not tagged:
            tag = self.yaml.resolver.resolve(ScalarNode, event.value, event.implicit)
        if start == end:  # left out: the parser's mark may lie at whatever comes next
            start = end = behind
        after = end
        if event.style in ("|", ">"):
            end = self.last_of_block(start, end, event.value)
        node = Node(
            "scalar",
            start,
            end,
            after,
            style=event.style or "",
            text=event.value,
            tag=str(tag),
            tagged=tagged,
            anchor=event.anchor,
        )
        theirs = ScalarNode(tag, event.value, event.start_mark, event.end_mark, style=event.style, anchor=event.anchor)
        self.remember(node, theirs)
        return node, theirs

    def last_of_block(self, start: int, end: int, value: str) -> int:
        """Where the last line of a block scalar ends; blank lines behind it count only where they are kept."""
        written = self.text[start:end]
        header = written.split("\n", 1)[0].partition("#")[0]
        if "+" in header or value.rstrip("\n")[-1:] in (" ", "\t"):
            return start + len(re.sub(r"(\r\n|[\n\r\x85\u2028\u2029])\Z", "", written))
        return start + len(written.rstrip(" \t\r\n\x85\u2028\u2029"))

    def sequence(self) -> tuple[Node, Any]:
        event = self.take(SequenceStartEvent)
        tag, tagged = self.collection_tag(event, SequenceNode)
        start, end = event.start_mark.index, event.end_mark.index
        node = Node("list", start, end, end, flow=bool(event.flow_style), tag=str(tag), tagged=tagged)
        node.anchor = event.anchor
        theirs = SequenceNode(tag, [], event.start_mark, None, flow_style=event.flow_style, anchor=event.anchor)
        self.remember(node, theirs)
        while not isinstance(self.next, SequenceEndEvent):
            item, their_item = self.node(self.next.start_mark.index)
            node.items.append(item)
            theirs.value.append(their_item)
            node.end, node.after = item.end, item.after
        self.close(node, theirs, self.take(SequenceEndEvent))
        return node, theirs

    def mapping(self) -> tuple[Node, Any]:
        event = self.take(MappingStartEvent)
        tag, tagged = self.collection_tag(event, MappingNode)
        start, end = event.start_mark.index, event.end_mark.index
        node = Node("map", start, end, end, flow=bool(event.flow_style), tag=str(tag), tagged=tagged)
        node.anchor = event.anchor
        theirs = MappingNode(tag, [], event.start_mark, None, flow_style=event.flow_style, anchor=event.anchor)
        self.remember(node, theirs)
        while not isinstance(self.next, MappingEndEvent):
            key, their_key = self.node(self.next.start_mark.index)
            colon = COLON.match(self.text, key.end)
            value, their_value = self.node(colon.end() if colon else key.end)
            node.pairs.append((key, value))
            theirs.value.append((their_key, their_value))
            node.end, node.after = max(key.end, value.end), max(key.after, value.after)
        self.close(node, theirs, self.take(MappingEndEvent))
        return node, theirs

    def collection_tag(self, event: Any, kind: type) -> tuple[Any, bool]:
        if event.ctag is not None and str(event.ctag) != "!":
            return event.ctag, True
        return self.yaml.resolver.resolve(kind, None, event.implicit), False

    def remember(self, node: Node, theirs: Any) -> None:
        if node.anchor is not None:
            self.anchors[node.anchor] = (node, theirs)

    def close(self, node: Node, theirs: Any, event: Any) -> None:
        theirs.end_mark = event.end_mark
        if node.flow and event.end_mark.index > event.start_mark.index:
            node.end = node.after = event.end_mark.index


def _can_be_made(node: Any) -> bool:
    try:
        YAML(typ="safe", pure=True).constructor.construct_object(node)
    except UNDERLYING:
        return False
    return True


def _first(node: Any, wanted: Callable[[Any], bool], seen: set[int] | None = None) -> Any:
    """The first scalar of a tree that is so."""
    seen = set() if seen is None else seen
    if id(node) in seen:
        return None
    seen.add(id(node))
    if isinstance(node, ScalarNode):
        return node if wanted(node) else None
    inner = node.value if isinstance(node, SequenceNode) else [each for pair in node.value for each in pair]
    return next((found for each in inner if (found := _first(each, wanted, seen)) is not None), None)
