"""Any valid YAML, by ruamel: the fallback for what the line reader does not take.

It is some fifty times slower than the line reader, and its import alone costs more than reading a whole registry: it
is imported when a text needs it.
"""

import io
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.constructor import DuplicateKeyError
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.events import CollectionEndEvent, CollectionStartEvent
from ruamel.yaml.nodes import MappingNode, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from registry.yaml_text import MalformedYaml, position

_MERGE = "tag:yaml.org,2002:merge"
_NULL = "tag:yaml.org,2002:null"
_BUILD_ERRORS = (YAMLError, KeyError, ValueError, OverflowError, AttributeError, TypeError, AssertionError, IndexError)
"""ruamel passes on the errors of what it builds with (a thirteenth month, `!!bool x`)."""
_MESSAGE_LENGTH = 200
DEPTH_AT_MOST = 100
"""Reported for a text that is too deep for Python's stack."""


def load_pair(text: str) -> tuple[str, Any]:
    """The key and the value of a text that is one `key: value` in block style. Raises MalformedYaml."""
    root = _compose(text)
    if not isinstance(root, MappingNode) or root.flow_style or len(root.value) != 1:
        raise MalformedYaml(1, 1, "it must be one key with its value")
    ((key, value),) = root.value
    return _key_text(key), _build(value)


def load_registry(text: str, sections: Sequence[str]) -> dict[str, Any]:
    """The top-level values by their keys; a section is a dict of its entries by name. Raises MalformedYaml."""
    root = _compose(text)
    if root is None:
        return {}
    if not isinstance(root, MappingNode):
        raise _malformed(root, "it must be a mapping, with a mapping `agents` in it")
    found: dict[str, Any] = {}
    for name, node in _named(root):
        found[name] = _section(name, node) if name in sections else _build(node)
    return found


def place(text: str, path: Sequence[str]) -> tuple[int, int]:
    """The line and the column of the key at the end of a path, as far as the path exists."""
    node, at = _compose(text), (1, 1)
    for name in path:
        pairs = node.value if isinstance(node, MappingNode) else []
        pair = next((each for each in pairs if getattr(each[0], "value", None) == name), None)
        if pair is None:
            break
        mark, node = pair[0].start_mark, pair[1]
        at = (mark.line + 1, mark.column + 1)
    return at


def dump_pair(key: Any, value: Any) -> list[str]:
    """A key and any value as lines in block style."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.allow_unicode = True
    yaml.width = 1 << 16
    text = io.StringIO()
    yaml.dump({key: value}, text)
    return text.getvalue().removesuffix("...\n").splitlines()


def _compose(text: str) -> Any:
    """The tree of nodes; None for a text without content."""
    try:
        return YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as error:
        raise _marked(error) from error
    except ReaderError as error:
        line, column = position(text, error.position)
        raise MalformedYaml(line, column, f"it holds the control character {chr(error.character)!r}") from error
    except RecursionError as error:
        raise _too_deep(text) from error
    except _BUILD_ERRORS as error:
        raise MalformedYaml(1, 1, _in_short(error)) from error


def _too_deep(text: str) -> MalformedYaml:
    depth = 0
    for event in YAML(typ="safe", pure=True).parse(text):
        depth += isinstance(event, CollectionStartEvent) - isinstance(event, CollectionEndEvent)
        if depth > DEPTH_AT_MOST:
            return _malformed(event, f"it is nested more than {DEPTH_AT_MOST} levels deep")
    return MalformedYaml(1, 1, "it is nested too deeply")


def _named(mapping: Any) -> Iterator[tuple[str, Any]]:
    seen: set[str] = set()
    for key, value in mapping.value:
        name = _key_text(key)
        if name in seen:
            raise _malformed(key, f"`{_in_short(name)}` is there twice")
        seen.add(name)
        yield name, value


def _key_text(key: Any) -> str:
    if not isinstance(key, ScalarNode) or key.tag == _MERGE:
        raise _malformed(key, "the keys here must be names")
    return str(key.value)


def _section(name: str, node: Any) -> dict[str, Any]:
    if isinstance(node, ScalarNode) and node.tag == _NULL:
        return {}
    if not isinstance(node, MappingNode):
        raise _malformed(node, f"`{name}` must be a mapping")
    return {each: _build(value) for each, value in _named(node)}


def _build(node: Any) -> Any:
    """The value of a node. Raises MalformedYaml at the scalar that can't be one."""
    try:
        return YAML(typ="safe", pure=True).constructor.construct_document(node)
    except MarkedYAMLError as error:
        raise _marked(error) from error
    except RecursionError as error:
        raise _malformed(node, "it is nested too deeply") from error
    except _BUILD_ERRORS as error:
        if isinstance(node, ScalarNode):
            raise _malformed(node, f"{node.value!r} is no {str(node.tag).rpartition(':')[2]}") from error
        for inner in node.value if isinstance(node, SequenceNode) else chain.from_iterable(node.value):
            _build(inner)
        raise _malformed(node, _in_short(error)) from error


def _malformed(node: Any, problem: str) -> MalformedYaml:
    return MalformedYaml(node.start_mark.line + 1, node.start_mark.column + 1, problem)


def _marked(error: MarkedYAMLError) -> MalformedYaml:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    problem = str(error.problem)
    if isinstance(error, DuplicateKeyError):
        key = problem.partition('found duplicate key "')[2].partition('" with value')[0]
        problem = f"`{_in_short(key)}` is there twice"
    return MalformedYaml(line, column, _in_short(problem))


def _in_short(error: object) -> str:
    return " ".join(str(error).split())[:_MESSAGE_LENGTH] or "it can't be read"
