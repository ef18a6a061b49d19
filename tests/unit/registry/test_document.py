"""A text is cut where its lines say so, and not at all where they may say something else."""

import pytest
from hypothesis import given, settings

from registry.document import SECTIONS, Document, cut
from registry.yaml_text import MalformedYaml
from tests.unit.registry.handwriting import Handwritten, files
from tests.unit.registry.test_edit import loaded, named

pytestmark = pytest.mark.filterwarnings("ignore::ruamel.yaml.error.ReusedAnchorWarning")

TEXT = """\
# top
version: 1
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


def test_every_entry_is_a_block() -> None:
    pieces = cut(TEXT)
    assert pieces is not None
    assert [piece.kind for piece in pieces] == ["filler", "key", "key", "header", "entry", "entry", "header"]
    assert "".join(piece.text for piece in pieces) == TEXT
    assert pieces[4].text == "  a:\n    status: running\n# left\n"


@given(files())
@settings(max_examples=100, deadline=None)
def test_the_blocks_together_are_the_text(file: Handwritten) -> None:
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
def test_an_ambiguous_text_is_not_cut(text: str) -> None:
    assert cut(text) is None


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("agents:\n  a: 'x\n  b: y'\n", None),
        ("agents:\n  a: {x: 1,\n  b: 2}\n", None),
        ('note: "x\nagents:\n  a: {}\n"\nagents: {}\n', None),
        ("agents:\n  a: {}\nd: &d {x: 1}\n", ["header", "entry", "key"]),
        ("agents:\n  a: &d {x: 1}\n  b: *d\n", None),
        ("d: &d {x: 1}\nagents:\n  a: *d\n", None),
        ("d: &d {x: 1}\nagents: {a: *d}\n", None),
        ("---\nagents:\n  a: {}\n", ["filler", "header", "entry"]),
        ("\ufeff# x\n---  # y\n# z\nagents:\n  a: {}\n", ["filler", "header", "entry"]),
        ("agents:\n  a:\n    x: &x 1\n    y: *x\n", ["header", "entry"]),
        ("agents: {a: {x: 1},\n  b: {}}\n", None),
        ("'agents':\n  a: {}\n", None),
        ("agents:\n    a:\n     x: |\n      agents:\n       b: 1\n", ["header", "entry"]),
        ("agents:\n  {a: {x: 1}}\n", None),
    ],
)
def test_a_wrong_cut_is_noticed(text: str, kinds: list[str] | None) -> None:
    document = Document.parse(text)
    assert ([block.kind for block in document.blocks] if document.blocks is not None else None) == kinds
    assert "a" in document.agents or 'note: "' in text


def test_blocks_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(MalformedYaml, match="`a` is there twice"):
        Document.parse("agents:\n  a:\n    x: 1\n  'a':\n    x: 1\n")


@given(files())
@settings(max_examples=200, deadline=None)
def test_a_document_is_read_as_ruamel_reads_it(file: Handwritten) -> None:
    data = loaded(file.text)
    document = Document.parse(file.text)
    for section in SECTIONS:
        read = {name: entry.value for name, entry in document.section(section).items()}
        assert repr(sorted(read.items())) == repr(sorted(named(data.get(section)).items()))
    assert document.keys.get("version") == data.get("version")


@pytest.mark.parametrize("opening", ["", "---\n", "%YAML 1.2\n---\n"])
def test_every_key_entry_and_field_has_a_place(opening: str) -> None:
    document = Document.parse(opening + TEXT)
    above = opening.count("\n")
    assert document.place("version") == (2 + above, 1)
    assert document.place("agents") == (6 + above, 1)
    assert document.place("agents", "a") == (8 + above, 3)
    assert document.place("agents", "a", "status") == (9 + above, 5)
    assert document.place("agents", "a", "no such field") == (8 + above, 3)
    assert document.place("agents", "b", "x") == (11 + above, 7)


def test_a_changed_anchor_changes_the_entries_that_use_it() -> None:
    text = "d: &d {owner: Ann}\nagents:\n  a:\n    <<: *d\n"
    after = Document.parse(text.replace("Ann", "Bob"), Document.parse(text))
    assert after.agents["a"].fields["owner"] == "Bob"
