"""Reads YAML with comments and positions. Every fault has a line and a short description."""

from collections.abc import Sequence
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError


class NotYaml(Exception):
    """A text that is not YAML: the line, and what is wrong there."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line
        self.problem = problem


def load(text: str) -> Any:
    """The document with its comments. Raises NotYaml."""
    try:
        return YAML(typ="rt").load(text)
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise NotYaml(mark.line + 1 if mark else 1, error.problem or "it can't be read") from error
    except ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise NotYaml(line, f"it holds the control character {error.character!r}") from error
    except (YAMLError, ValueError, OverflowError, RecursionError, AttributeError, TypeError) as error:
        # ruamel passes on errors of the values that it builds, a thirteenth month for example.
        raise NotYaml(1, " ".join(str(error).split())[:200]) from error


def line_of(document: Any, where: Sequence[Any]) -> int:
    """The line of a place in a document, or of the nearest existing place above it."""
    line = 1
    node = document
    for step in where:
        if not hasattr(node, "lc"):
            break
        try:
            position = node.lc.item if isinstance(step, int) else node.lc.key
            line = position(step)[0] + 1
            node = node[step]
        except (KeyError, IndexError, TypeError):
            break
    return line
