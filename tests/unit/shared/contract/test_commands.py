"""Every verb has a handler in the service that owns it."""

import ast
from functools import cache
from pathlib import Path

import pytest
from pydantic import ValidationError

from shared.contract.commands import VERBS, Command, Comment, Poll, Send
from shared.contract.topics import EVERY_SERVICE

ROOT = Path(__file__).parents[4]


def folder(command: type[Command]) -> str:
    """Where its handler is. What every service answers is answered by the runtime."""
    return "shared/runtime/" if command.owner == EVERY_SERVICE else f"services/{command.owner}/"


@cache
def names_used_in(folder: str) -> frozenset[str]:
    """The names that its modules use. Imports, and objects that are made to be sent, do not count."""
    nodes = [node for path in (ROOT / folder).rglob("*.py") for node in ast.walk(ast.parse(path.read_text()))]
    made = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in made)


@pytest.mark.parametrize("command", VERBS.values(), ids=VERBS)
def test_every_verb_has_a_handler(command: type[Command]) -> None:
    assert command.__name__ in names_used_in(folder(command)), (
        f"the verb {command.verb} has no handler in {folder(command)}: add a case for {command.__name__} where the"
        " service takes its commands (docs/contributing.md, A verb)"
    )


def test_a_verb_without_a_handler_is_seen() -> None:
    assert Poll.__name__ not in names_used_in("services/registrar/")


def test_a_text_never_goes_into_a_dialog() -> None:
    with pytest.raises(ValidationError, match="a fingerprint needs `keys`"):
        Send(agent="builder", text="yes", fingerprint="f1")
    assert Send(agent="builder", keys=["1"], fingerprint="f1").fingerprint == "f1"


@pytest.mark.parametrize("text", ["", "  ", "\n", "x" * 4001])
def test_a_comment_says_something(text: str) -> None:
    with pytest.raises(ValidationError):
        Comment(agent="builder", text=text)
