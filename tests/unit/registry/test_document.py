"""Edits in place: only what must change does, and the text then says exactly what it should."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from registry.document import Document
from registry.edits import GONE
from registry.planning import Edit, Put, Remove, Renumber
from tests.unit.registry.handwriting import KEYS, NAMES, Handwritten, files

SECTIONS = ("agents", "history")

pytestmark = pytest.mark.filterwarnings("ignore::ruamel.yaml.error.ReusedAnchorWarning")


def loaded(text: str) -> Any:
    """What anybody else's reader finds."""
    return YAML(typ="safe", pure=True).load(text)


def named(data: Any) -> dict[str, Any]:
    """Entries by the words of their names: `null` and `0123` are names here."""
    words = {None: "null", 123: "0123"}
    return {words.get(key, key): value for key, value in (data or {}).items()}


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.sampled_from(["running", "on", "0123", "2030-01-01", "a: b", " x", "", None, 7, -3, True, [], ["a", "b c"]])
fields = st.dictionaries(st.sampled_from([*KEYS, "new"]), values | words | st.just(GONE), min_size=1, max_size=3)
edits = st.lists(
    st.builds(Put, st.sampled_from(SECTIONS), st.sampled_from(NAMES), fields)
    | st.builds(Remove, st.sampled_from(SECTIONS), st.sampled_from(NAMES))
    | st.builds(Renumber, st.integers(1, 9)),
    min_size=1,
    max_size=4,
)


def expected(data: Any, made: Sequence[Edit]) -> dict[str, Any]:
    """The old data with the edits made, by the plainest means."""
    after = {**data}
    for section in SECTIONS:
        after[section] = named(data.get(section))
    for edit in made:
        match edit:
            case Renumber():
                after["version"] = edit.version
            case Remove():
                after[edit.section].pop(edit.name, None)
            case Put():
                entry = dict(after[edit.section].get(edit.name) or {})
                for key, value in edit.fields.items():
                    if value is GONE:
                        entry.pop(key, None)
                    else:
                        entry[key] = value
                after[edit.section][edit.name] = entry
    return after


def without_nulls(entry: Any) -> Any:
    """A field that is null is as good as one that is not there."""
    return {key: value for key, value in entry.items() if value is not None} if isinstance(entry, dict) else entry


def comparable(data: Any) -> str:
    tidy = {key: value for key, value in data.items() if key not in SECTIONS}
    for section in SECTIONS:
        tidy[section] = sorted(
            (name, sorted((without_nulls(each) or {}).items(), key=repr))
            if isinstance(each, dict) or each is None
            else (name, each)
            for name, each in named(data.get(section)).items()
        )
    return repr(sorted(tidy.items(), key=lambda pair: pair[0]))


def untouched(file: Handwritten, made: Sequence[Edit]) -> list[str]:
    """The lines that no edit is about."""
    removed = {(edit.section, edit.name) for edit in made if isinstance(edit, Remove)}
    put = {(edit.section, edit.name, key) for edit in made if isinstance(edit, Put) for key in edit.fields}
    flow = {(edit.section, edit.name) for edit in made if isinstance(edit, Put)}
    kept = []
    for line, owner in file.lines:
        is_flow = len(owner) == 2 and owner in flow and ("{" in line or "}" in line or line.rstrip().endswith(","))
        if owner[:2] in removed or owner[:3] in put or owner[-1:] == ("alias",) or is_flow or len(owner) == 1:
            continue
        if len(owner) == 2 and owner in flow and "," in line:
            continue
        kept.append(line)
    return kept


def in_order(wanted: Sequence[str], found: Sequence[str]) -> str | None:
    """The first line that is missing, if any."""
    rest = iter(found)
    return next((line for line in wanted if not any(line == each for each in rest)), None)


EMPTIED = """\
\ufeffagents:  # mine
 builder:  # mine
  status: running  # mine
  pid: running  # mine
history: {tester: {status: running, pid: 7}}  # mine
after: running  # mine
"""


@given(files(), edits)
@example(
    Handwritten(EMPTIED, (("after: running  # mine", ()),), blocks=False),
    [Put("history", "builder", {"status": GONE}), Remove("history", "tester")],
)
@settings(max_examples=300, deadline=None)
def test_an_edit_changes_what_it_must_and_nothing_else(file: Handwritten, made: list[Edit]) -> None:
    before = loaded(file.text)
    assume(all(not isinstance(edit, Put) or edit.fields for edit in made))
    document = Document.parse(file.text)
    assert document.text == file.text
    edited = document.edit(made)
    assert comparable(loaded(edited.text)) == comparable(expected(before, made)), edited.text
    wanted, found = untouched(file, made), edited.text.removeprefix("\ufeff").split("\n")
    found = [line.removesuffix("\r") for line in found]
    if file.blocks:  # a comment below a block text may have to move, not to become a part of it
        wanted = [line.strip() for line in wanted if line.strip()]
        found = [line.strip() for line in found]
    assert in_order(wanted, found) is None, edited.text
    if "\r\n" in file.text:
        assert edited.text.count("\n") == edited.text.count("\r\n")


@given(files(), edits)
@settings(max_examples=100, deadline=None)
def test_an_edited_document_is_the_one_that_its_text_is_read_as(file: Handwritten, made: list[Edit]) -> None:
    document = Document.parse(file.text)
    edited = document.edit(made)
    for again in (Document.parse(edited.text), Document.parse(edited.text, document)):
        for section in SECTIONS:
            names = {name: repr(entry.value) for name, entry in edited.section(section).items()}
            assert {name: repr(entry.value) for name, entry in again.section(section).items()} == names
        assert again.version == edited.version


@given(files())
@settings(max_examples=200, deadline=None)
def test_a_document_is_read_as_anybody_else_reads_it(file: Handwritten) -> None:
    data = loaded(file.text)
    document = Document.parse(file.text)
    for section in SECTIONS:
        read = {name: entry.value for name, entry in document.section(section).items()}
        assert repr(sorted(read.items())) == repr(sorted(named(data.get(section)).items()))
    assert document.version == data.get("version")


# --- what an edit costs ---

SHARED = """\
defaults: &d {status: stopped, owner: Ann}
agents:
  a:
    <<: *d
    pid: 7
  b:
    <<: *d
  c: *d
"""


def test_only_the_entry_that_is_edited_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    document = Document.parse(SHARED)
    edited = document.edit([Put("agents", "a", {"status": "running", "pid": GONE})])
    assert edited.text == SHARED.replace("    pid: 7\n", "    status: running\n")
    assert edited.agents["b"] is document.agents["b"]
    again = Document.parse(edited.text, document)
    assert again.agents["b"] is document.agents["b"]
    assert again.agents["c"] is document.agents["c"]


def test_what_an_entry_shares_with_others_is_overridden_in_it() -> None:
    edited = Document.parse(SHARED).edit(
        [Put("agents", "b", {"owner": GONE}), Put("agents", "c", {"status": "running", "owner": GONE})]
    )
    assert edited.text == SHARED.replace("b:\n    <<: *d\n", "b:\n    <<: *d\n    owner: null\n").replace(
        "c: *d", "c: {<<: *d, status: running, owner: null}"
    )


def test_a_change_of_what_is_shared_concerns_those_who_share_it() -> None:
    document = Document.parse(SHARED)
    after = Document.parse(SHARED.replace("Ann", "Bob"), document)
    assert after.agents["b"].fields["owner"] == "Bob"


def test_an_alias_of_something_that_is_edited_becomes_a_copy_of_what_it_was() -> None:
    text = "agents:\n  a: &a\n    status: running\n    pid: &p 7\n  b: *a\n  c:\n    pid: *p\n"
    edited = Document.parse(text).edit([Put("agents", "a", {"status": "exited"})])
    assert edited.text == text.replace("b: *a", "b: {status: running, pid: 7}").replace("s: running\n", "s: exited\n")
    edited = Document.parse(text).edit([Put("agents", "a", {"pid": 8})])
    assert "    pid: 8\n  b: {status: running, pid: 7}\n  c:\n    pid: 7\n" in edited.text
    edited = Document.parse(text).edit([Remove("agents", "a")])
    assert edited.text == "agents:\n  b: {status: running, pid: 7}\n  c:\n    pid: 7\n"


def test_many_edits_cost_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"a{number}" for number in range(200)]
    document = Document.parse("agents:\n" + "".join(f"  {name}:\n    pid: 1\n    x: y\n" for name in names))
    edited = document.edit([Put("agents", name, {"pid": 2}) for name in names[:100]])
    assert edited.text.count("pid: 2") == 100
    assert all(edited.agents[name] is document.agents[name] for name in names[100:])


@pytest.mark.parametrize(
    ("text", "edit", "expected_text"),
    [
        ("agents: {}\n", Put("agents", "a", {"x": 1}), "agents:\n  a:\n    x: 1\n"),
        ("agents: {} # none\n", Put("agents", "a", {"x": 1}), "agents: # none\n  a:\n    x: 1\n"),
        ("agents:", Put("agents", "a", {"x": 1}), "agents:\n  a:\n    x: 1"),
        ("x: 1\n", Put("agents", "a", {"x": 1}), "x: 1\nagents:\n  a:\n    x: 1\n"),
        ("x: 1", Put("agents", "a", {"x": 1}), "x: 1\nagents:\n  a:\n    x: 1"),
        ("", Put("agents", "a", {"x": 1}), "agents:\n  a:\n    x: 1\n"),
        ("# c", Renumber(2), "# c\nversion: 2"),
        ("{agents: {}}\n", Put("agents", "a", {"x": 1}), "{agents: {a: {x: 1}}}\n"),
        (
            "agents:\n   a:\n      x: 1\n",
            Put("agents", "b", {"x": 1}),
            "agents:\n   a:\n      x: 1\n   b:\n      x: 1\n",
        ),
        ("agents:\n  a:\n    x: 1\n", Remove("agents", "a"), "agents: {}\n"),
        ("agents:\n  # c\n  a:\n    x: 1\n  # d\n", Remove("agents", "a"), "agents: {}\n  # c\n  # d\n"),
        (
            "agents:\n  a:\n    x: |\n      b",
            Put("agents", "a", {"z": 1}),
            "agents:\n  a:\n    z: 1\n    x: |\n      b",
        ),
        (
            "agents:\n  a:\n    x: |\n      b",
            Put("agents", "c", {"z": 1}),
            "agents:\n  c:\n    z: 1\n  a:\n    x: |\n      b",
        ),
        ("agents:\n  a:\n    d:\n    - b\n", Put("agents", "a", {"d": ["c"]}), "agents:\n  a:\n    d: [c]\n"),
        (
            "agents:\r\n  a:\r\n    x: 1\r\n",
            Put("agents", "a", {"z": 1}),
            "agents:\r\n  a:\r\n    x: 1\r\n    z: 1\r\n",
        ),
        ("agents:\n  a:\n    x:   # c\n", Put("agents", "a", {"x": 1}), "agents:\n  a:\n    x: 1   # c\n"),
        ('agents:\n  a: {"x":1}\n', Put("agents", "a", {"x": 2}), 'agents:\n  a: {"x": 2}\n'),
    ],
)
def test_an_edit_is_made_as_a_person_would(text: str, edit: Edit, expected_text: str) -> None:
    assert Document.parse(text).edit([edit]).text == expected_text


IN_BRACES = "{agents: {a: {x: 1}, b: {x: 2}, c: {x: 3}}, z: 1}\n"


@pytest.mark.parametrize(
    ("text", "removed", "expected_section"),
    [
        (IN_BRACES, "abc", "{d: {v: 1}}"),
        (IN_BRACES, "bc", "{a: {x: 1}, d: {v: 1}}"),
        (IN_BRACES, "ab", "{c: {x: 3}, d: {v: 1}}"),
        (IN_BRACES, "ac", "{b: {x: 2}, d: {v: 1}}"),
        (IN_BRACES.replace("3}}", "3},}"), "abc", "{d: {v: 1}}"),
        (IN_BRACES.replace("3}}", "3},}"), "bc", "{a: {x: 1}, d: {v: 1},}"),
        (IN_BRACES.replace(" b:", " # why,\n b:"), "b", "{a: {x: 1}, # why,\n c: {x: 3}, d: {v: 1}}"),
        (IN_BRACES.replace(" c:", " # why,\n c:"), "c", "{a: {x: 1}, b: {x: 2}, d: {v: 1} # why,\n }"),
        (IN_BRACES.replace(", b:", " # why\n , b:"), "a", "{ # why\n  b: {x: 2}, c: {x: 3}, d: {v: 1}}"),
        (IN_BRACES.replace(", b:", " # why\n , b:"), "ab", "{ # why\n  c: {x: 3}, d: {v: 1}}"),
        (IN_BRACES.replace(", c:", " # why\n , c:"), "bc", "{a: {x: 1}, d: {v: 1} # why\n }"),
        (IN_BRACES.replace("b: {x: 2}", "b: "), "c", "{a: {x: 1}, b: , d: {v: 1} }"),
    ],
)
def test_entries_in_braces_come_and_go_in_one_edit(text: str, removed: str, expected_section: str) -> None:
    document = Document.parse(text)
    gone = [Remove("agents", name) for name in removed]
    expected_text = f"{{agents: {expected_section}, z: 1}}\n"
    assert document.edit([*gone, Put("agents", "d", {"v": 1})]).text == expected_text
    assert document.edit([Put("agents", "d", {"v": 1}), *gone]).text == expected_text


def test_an_entry_that_nothing_is_left_of_is_an_empty_one() -> None:
    new = Put("agents", "b", {"x": GONE})
    assert Document.parse("agents: {a: {x: 1}}\n").edit([new]).text == "agents: {a: {x: 1}, b: {}}\n"
    assert Document.parse("agents:\n  a:\n    x: 1\n").edit([new]).text == "agents:\n  a:\n    x: 1\n  b: {}\n"
