"""A text is cut where its lines say so, and not at all where they may say something else."""

import pytest
from hypothesis import given, settings

from registry.document import Document
from registry.lines import cut
from registry.nodes import Fault
from tests.unit.registry.handwriting import Handwritten, files

TEXT = """\
# top
version: 2
note:
- a
- b
agents:  # here
  # about a
  a:
    status: running
# left
  b: {x: 1}
history: {}
"""


def test_every_entry_is_a_piece() -> None:
    pieces = cut(TEXT)
    assert pieces is not None
    assert [piece.kind for piece in pieces] == ["filler", "top", "top", "header", "entry", "entry", "header"]
    assert "".join(piece.text for piece in pieces) == TEXT
    assert pieces[4].text == "  a:\n    status: running\n# left\n"


@given(files())
@settings(max_examples=100, deadline=None)
def test_the_pieces_are_the_text(file: Handwritten) -> None:
    pieces = cut(file.text)
    assert pieces is None or "".join(piece.text for piece in pieces) == file.text


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\n---\nagents: {}\n",
        "--- {}\n",
        "agents: {}\n...\n",
        "%YAML 1.1\n---\nagents: {}\n",
        "agents:\n  ? a\n  : {}\n",
        "? agents\n: {}\n",
        "agents:\r  a: {}\r",
        "agents: {}\nx: a\x85b\n",
        "agents: {}\nx: a\u2028b\n",
        "agents: {}\n  a: {}\n",
        "  x: 1\nagents: {}\n",
    ],
)
def test_what_may_be_something_else_is_not_cut(text: str) -> None:
    assert cut(text) is None


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("agents:\n  a: 'x\n  b: y'\n", ["whole"]),
        ("agents:\n  a: {x: 1,\n  b: 2}\n", ["whole"]),
        ('note: "x\nagents:\n  a: {}\n"\nagents: {}\n', ["whole"]),
        ("agents:\n  a: *d\nd: &d {x: 1}\n".replace("*d", "{}"), ["header", "entry", "top"]),
        ("agents:\n  a: &d {x: 1}\n  b: *d\n", ["whole"]),
        ("d: &d {x: 1}\nagents:\n  a: *d\n", ["top", "header", "entry"]),
        ("d: &d {x: 1}\ne: *d\nagents: {a: *d}\n", ["top", "top", "section"]),
        ("---\nagents:\n  a: {}\n", ["filler", "header", "entry"]),
        ("\ufeff# x\n---  # y\n# z\nagents:\n  a: {}\n", ["filler", "header", "entry"]),
        ("agents:\n  a:\n    x: &x 1\n    y: *x\n", ["header", "entry"]),
        ("agents: {a: {x: 1},\n  b: {}}\n", ["section"]),
        ("'agents':\n  a: {}\n", ["section"]),
        ("agents:\n    a:\n     x: |\n      agents:\n       b: 1\n", ["header", "entry"]),
    ],
)
def test_a_cut_through_something_is_noticed(text: str, kinds: list[str]) -> None:
    document = Document.parse(text)
    assert [unit.kind for unit in document.units] == kinds
    assert set(document.agents) <= {"a", "b"}


def test_pieces_that_only_together_are_wrong_are_wrong() -> None:
    with pytest.raises(Fault, match="`a` is there twice"):
        Document.parse("agents:\n  a:\n    x: 1\n  'a':\n    x: 1\n")
