"""Edits in place: only what must change does, and the text then says exactly what it should."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from registry.document import SECTIONS, Document
from registry.edit import WHOLE_FILE, EntryKey, edit
from registry.entry import GONE, Fields
from tests.unit.registry.handwriting import KEYS, NAMES, Handwritten, files

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
keys = st.tuples(st.sampled_from(SECTIONS), st.sampled_from(NAMES))
puts = st.dictionaries(keys, fields, max_size=3)
removals = st.sets(keys, max_size=2)
Puts = Mapping[EntryKey, Fields]


def expected(data: Any, made: Puts, removed: Collection[EntryKey]) -> dict[str, Any]:
    """The old data with the edits made, by the plainest means."""
    after = {**data}
    for section in SECTIONS:
        after[section] = named(data.get(section))
    for section, name in removed:
        after[section].pop(name, None)
    for (section, name), changed in made.items():
        entry = {**(after[section].get(name) or {}), **changed}
        after[section][name] = {key: value for key, value in entry.items() if value is not GONE}
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
    return repr(sorted(tidy.items(), key=lambda pair: pair[0])).replace("'Z'", "'+00:00'")


def untouched(file: Handwritten, made: Puts, removed: Collection[EntryKey], rewritten: Sequence[str]) -> list[str]:
    """The lines that no edit is about, and that are not in something that was rewritten."""
    if any("." not in name for name in rewritten):
        return []
    gone = {*removed, *((name.partition(".")[0], name.partition(".")[2]) for name in rewritten)}
    put = {(*where, key) for where, changed in made.items() for key in changed}
    return [line for line, owner in file.lines if owner[:2] not in gone and owner[:3] not in put and len(owner) != 1]


def in_order(wanted: Sequence[str], found: Sequence[str]) -> str | None:
    """The first line that is missing, if any."""
    rest = iter(found)
    return next((line for line in wanted if not any(line == each for each in rest)), None)


def check(file: Handwritten, made: Puts, removed: Collection[EntryKey]) -> Sequence[str]:
    """Make the edits; what was rewritten."""
    before = loaded(file.text)
    document = Document.parse(file.text)
    assert document.text == file.text
    result = edit(document, made, removed)
    text = result.document.text
    assert comparable(loaded(text)) == comparable(expected(before, made, removed)), text
    wanted, found = untouched(file, made, removed, result.rewritten), text.removeprefix("\ufeff").split("\n")
    found = [line.removesuffix("\r") for line in found]
    if file.blocks:  # a comment below a block text may have to move, not to become a part of it
        wanted = [line.strip() for line in wanted if line.strip()]
        found = [line.strip() for line in found]
    assert in_order(wanted, found) is None, text
    if "\r\n" in file.text:
        assert text.count("\n") == text.count("\r\n")
    return result.rewritten


@given(files(rare=False), puts, removals)
@settings(max_examples=300, deadline=None)
def test_an_edit_of_ordinary_entries_changes_only_what_it_must(
    file: Handwritten, made: Puts, removed: set[EntryKey]
) -> None:
    assert check(file, made, removed) == ()


@given(files(), puts, removals)
@settings(max_examples=300, deadline=None)
def test_an_edit_of_any_entries_keeps_all_values_and_the_lines_of_the_others(
    file: Handwritten, made: Puts, removed: set[EntryKey]
) -> None:
    for name in check(file, made, removed):
        assert name == WHOLE_FILE or name.partition(".")[0] in file.text


@given(files(), puts, removals)
@settings(max_examples=100, deadline=None)
def test_an_edited_document_is_the_one_that_its_text_is_read_as(
    file: Handwritten, made: Puts, removed: set[EntryKey]
) -> None:
    document = Document.parse(file.text)
    edited = edit(document, made, removed).document
    for again in (Document.parse(edited.text), Document.parse(edited.text, document)):
        assert {where: repr(each.value) for where, each in again.entries.items()} == {
            where: repr(each.value) for where, each in edited.entries.items()
        }
        assert again.keys == edited.keys


# --- what an edit costs ---


def test_only_the_entry_that_is_edited_is_read_again() -> None:
    names = [f"a{number}" for number in range(200)]
    document = Document.parse("agents:\n" + "".join(f"  {name}:\n    pid: 1\n    x: y\n" for name in names))
    edited = edit(document, {("agents", name): {"pid": 2} for name in names[:100]}).document
    assert edited.text.count("pid: 2") == 100
    assert all(edited.agents[name] is document.agents[name] for name in names[100:])
    again = Document.parse(edited.text, document)
    assert all(again.agents[name] is document.agents[name] for name in names[100:])


# --- how an edit looks ---


@pytest.mark.parametrize(
    ("text", "made", "expected_text"),
    [
        ("agents: {}\n", {("agents", "a"): {"x": 1}}, "agents:\n  a:\n    x: 1\n"),
        ("agents: {} # none\n", {("agents", "a"): {"x": 1}}, "agents: # none\n  a:\n    x: 1\n"),
        ("agents:", {("agents", "a"): {"x": 1}}, "agents:\n  a:\n    x: 1\n"),
        ("x: 1\n", {("agents", "a"): {"x": 1}}, "x: 1\nagents:\n  a:\n    x: 1\n"),
        ("x: 1", {("agents", "a"): {"x": 1}}, "x: 1\nagents:\n  a:\n    x: 1\n"),
        ("", {("agents", "a"): {"x": 1}}, "agents:\n  a:\n    x: 1\n"),
        ("# c", {("agents", "a"): {"x": 1}}, "# c\nagents:\n  a:\n    x: 1\n"),
        (
            "agents:\n   a:\n      x: 1\n",
            {("agents", "b"): {"x": 1}},
            "agents:\n   a:\n      x: 1\n   b:\n      x: 1\n",
        ),
        ("agents:\n  a:\n    x: 1\n", None, "agents: {}\n"),
        ("agents:\n  # c\n  a:\n    x: 1\n  # d\n", None, "agents: {}\n  # c\n  # d\n"),
        (
            "agents:\n  a:\n    x: |\n      b",
            {("agents", "c"): {"z": 1}},
            "agents:\n  c:\n    z: 1\n  a:\n    x: |\n      b",
        ),
        (
            "agents:\n  a:\n    x: 1\n    # mine\n# next\n",
            {("agents", "b"): {"x": 1}},
            "agents:\n  a:\n    x: 1\n    # mine\n  b:\n    x: 1\n# next\n",
        ),
        ("agents:\n  a:\n    d:\n    - b\n", {("agents", "a"): {"d": ["c"]}}, "agents:\n  a:\n    d: [c]\n"),
        (
            "agents:\n  a:\n    d:  # why\n      # one\n      - b\n    e: 1\n",
            {("agents", "a"): {"d": ["c"]}},
            "agents:\n  a:\n    d: [c]  # why\n      # one\n    e: 1\n",
        ),
        (
            "agents:\n  a:\n    x: |  # why\n      b\n      # c\n    y: 1\n",
            {("agents", "a"): {"x": "d"}},
            "agents:\n  a:\n    x: d  # why\n    y: 1\n",
        ),
        (
            "agents:\r\n  a:\r\n    x: 1\r\n",
            {("agents", "a"): {"z": 1}},
            "agents:\r\n  a:\r\n    x: 1\r\n    z: 1\r\n",
        ),
        ("agents:\n  a:\n    x:   # c\n", {("agents", "a"): {"x": 1}}, "agents:\n  a:\n    x: 1   # c\n"),
        (
            "agents:\n  a:\n    'x': \"1\"  # c\n",
            {("agents", "a"): {"x": "2"}},
            "agents:\n  a:\n    'x': \"2\"  # c\n",
        ),
        ("agents:\n  a:\n    x: ~\n", {("agents", "a"): {"x": 1}}, "agents:\n  a:\n    x: 1\n"),
        ("agents:\n  a:\n    x: {b: c}\n", {("agents", "a"): {"x": 1}}, "agents:\n  a:\n    x: 1\n"),
    ],
)
def test_an_edit_looks_like_a_persons(text: str, made: Puts | None, expected_text: str) -> None:
    result = edit(Document.parse(text), made or {}, () if made else {("agents", "a")})
    assert (result.document.text, result.rewritten) == (expected_text, ())


# --- what is rewritten ---

SHARED = """\
# mine
defaults: &d {status: stopped, owner: Ann}
agents:
  a:
    <<: *d
    pid: 7
    # kept below a
  # about b
  b:
    status: running  # as it is
  c: *d  # lost
  # behind c
"""


def test_entries_that_use_aliases_are_rewritten_and_no_others() -> None:
    result = edit(Document.parse(SHARED), {("agents", "b"): {"pid": 8}})
    assert result.rewritten == ("agents.a", "agents.c")
    assert (
        result.document.text
        == """\
# mine
defaults: &d {status: stopped, owner: Ann}
agents:
  a:
    status: stopped
    owner: Ann
    pid: 7
    # kept below a
  # about b
  b:
    status: running  # as it is
    pid: 8
  c:
    status: stopped
    owner: Ann
  # behind c
"""
    )


@pytest.mark.parametrize(
    ("text", "rewritten", "expected_text"),
    [
        ("agents:\n  a: {x: 1}  # c\n  # d\n", "agents.a", "agents:\n  a:\n    x: 2\n  # d\n"),
        (
            "agents:\n  a:\n    x: &x 1\n    w: |+\n      b\n# c\n\nz: 1\n",
            "agents.a",
            'agents:\n  a:\n    x: 2\n    w: "b\\n"\n# c\n\nz: 1\n',
        ),
        ("agents:\n  a:\n    x: &x 1\n", "agents.a", "agents:\n  a:\n    x: 2\n"),
        ("agents:\n  a:\n    x: !!str 1\n    y: 0.5\n", "agents.a", "agents:\n  a:\n    x: 2\n    y: 0.5\n"),
        ("agents: {a: {x: 1}}  # c\nz: 1\n", "agents", "agents:\n  a:\n    x: 2\nz: 1\n"),
        ("{agents: {a: {x: 1}}, z: [{k: 1}]}\n", WHOLE_FILE, "agents:\n  a:\n    x: 2\nz:\n- k: 1\n"),
        ("# mine\n? agents\n: {a: {x: 1}}\n", WHOLE_FILE, "# mine\nagents:\n  a:\n    x: 2\n"),
        ("agents:\n  ? a\n  : {x: 1}\n", WHOLE_FILE, "agents:\n  a:\n    x: 2\n"),
        ("agents:\n  a: {x: 1}\n  b: 7\n...\n", WHOLE_FILE, "agents:\n  a:\n    x: 2\n  b: 7\n"),
    ],
)
def test_other_styles_are_rewritten_as_a_whole_and_named(text: str, rewritten: str, expected_text: str) -> None:
    result = edit(Document.parse(text), {("agents", "a"): {"x": 2}})
    assert (result.document.text, result.rewritten) == (expected_text, (rewritten,))


def test_an_entry_without_fields_left_is_an_empty_mapping() -> None:
    result = edit(Document.parse("agents:\n  a:\n    x: 1\n"), {("agents", "b"): {"x": GONE}})
    assert result.document.text == "agents:\n  a:\n    x: 1\n  b: {}\n"
    result = edit(Document.parse("agents:\n  a:\n    x: 1\n"), {("agents", "a"): {"x": GONE}})
    assert result.document.text == "agents:\n  a:\n    x: null\n"
    assert result.rewritten == ()
