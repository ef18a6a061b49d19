"""A user's settings: what was put in comes out again, and all else stays as it was written."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.agents.hooks.settings_text import BadJson, BadSettings, added, commands_in, parse, taken_out

OURS, THEIRS = "ours", "theirs"
EVENTS = ("SessionStart", "PreToolUse", "Stop")


def entry(command: str) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": command, "timeout": 5}]}


ENTRIES = {event: entry(OURS) for event in EVENTS}


def is_ours(command: str) -> bool:
    return command == OURS


def plain(text: str) -> Any:
    """What Python's own reader makes of a text without comments."""
    return json.loads(text.removeprefix("\ufeff"))


WRITTEN = [
    "{}",
    "{}\n",
    "{\n}\n",
    "{ }",
    '{"a":1}',
    '{"a":1,"hooks":{}}',
    '{\n  "a": 1\n}\n',
    '{\n\t"a": 1,\n\t"hooks": {\n\t\t"Stop": []\n\t}\n}\n',
    '{\n    "hooks": {\n        "Stop": [\n        ]\n    },\n    "z": "ü 漢字 \\u00e9"\n}',
    '{"hooks": {"Stop": [{"hooks": [{"type": "command", "command": "theirs"}]}]}}',
    '{\r\n  "hooks": {\r\n    "Other": [ ]\r\n  }\r\n}\r\n',
    '\ufeff{\n   "odd":   [1,2 ,3],\n\n "hooks" : { "PreToolUse":[ {"matcher":"Bash" , "hooks":[]} ] } }',
    '{"hooks": {"Stop": [], "PreToolUse": [], "SessionStart": []}}',
]
COMMENTED = [
    '// mine\n{\n  // a note, with a comma\n  "a": 1, // why\n  /* and\n more */ "b": [1, 2,],\n}\n// the end',
    '{\n  "hooks": {\n    // "Stop": [],\n    "Stop": [\n      {"hooks": []}, // last, one\n    ],\n  },\n}\n',
    "{\n  // nothing yet\n}\n",
    '{ "a": 1 /* , */ }',
    '{ "a": "// no comment, \\" /* " }',
]


@pytest.mark.parametrize("text", [*WRITTEN, *COMMENTED])
def test_what_was_put_in_comes_out_and_leaves_every_byte(text: str) -> None:
    with_ours = added(text, ENTRIES)
    assert with_ours != text
    found = commands_in(with_ours)
    assert [found[event].count(OURS) for event in EVENTS] == [1, 1, 1]
    assert taken_out(with_ours, is_ours) == text
    assert taken_out(text, is_ours) == text


@pytest.mark.parametrize("text", WRITTEN)
def test_nothing_else_means_anything_else(text: str) -> None:
    before, after = plain(text), plain(added(text, ENTRIES))
    for event in EVENTS:
        assert after["hooks"][event].pop() == entry(OURS)
        if not after["hooks"][event] and event not in before.get("hooks", {}):
            del after["hooks"][event]
    if not after["hooks"] and "hooks" not in before:
        del after["hooks"]
    assert after == before


def test_a_document_that_was_made_for_it_goes_with_it() -> None:
    with_ours = added(None, ENTRIES)
    assert plain(with_ours) == {"hooks": {event: [entry(OURS)] for event in EVENTS}}
    assert taken_out(with_ours, is_ours) is None


@pytest.mark.parametrize("text", ["", "\n", "\ufeff", " ", "\r\n\t"])
def test_a_blank_text_is_the_same_blank_text_again(text: str) -> None:
    with_ours = added(text, ENTRIES)
    assert plain(with_ours) == {"hooks": {event: [entry(OURS)] for event in EVENTS}}
    assert taken_out(with_ours, is_ours) == text


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_document_with_nothing_else_that_was_written_anew_goes(end: str) -> None:
    anew = json.dumps(plain(added("", ENTRIES)), indent=2) + end
    assert taken_out(anew, is_ours) is None


@pytest.mark.parametrize("indent", [None, 2, 4])
@pytest.mark.parametrize("text", WRITTEN)
def test_after_another_program_has_written_it_anew_all_else_stays(text: str, indent: int | None) -> None:
    anew = json.dumps({"first": [], **plain(added(text, ENTRIES)), "last": {}}, indent=indent)
    rest = taken_out(anew, is_ours)
    assert rest is not None
    assert OURS not in json.dumps(commands_in(rest))
    left = {key: value for key, value in plain(rest).items() if key != "hooks"}
    assert left == {"first": [], **{key: value for key, value in plain(text).items() if key != "hooks"}, "last": {}}
    theirs = plain(rest).get("hooks", {})
    assert {event: groups for event, groups in theirs.items() if groups} == {
        event: groups for event, groups in plain(text).get("hooks", {}).items() if groups
    }


def test_a_command_among_those_of_others_is_taken_out_alone() -> None:
    text = '{"hooks": {"Stop": [{"hooks": [{"command": "theirs"}, {"command": "ours"}, {"command": "more"}]}]}}'
    assert taken_out(text, is_ours) == (
        '{"hooks": {"Stop": [{"hooks": [{"command": "theirs"}, {"command": "more"}]}]}}'
    )


def test_of_a_key_that_is_there_twice_the_last_counts() -> None:
    text = '{"hooks": {"Stop": [1]}, "hooks": {"Stop": []}}'
    assert plain(added(text, {"Stop": entry(OURS)}))["hooks"]["Stop"] == [entry(OURS)]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "line 1: it is not an object"),
        ('{\n"a" 1}', "line 2: a : was expected"),
        ('{\n\n"a": }', "line 3: a value was expected"),
        ('{"a": 1} x', "line 1: something follows the end"),
        ('{"a": 1\n"b": 2}', "line 2: a comma or } was expected"),
        ("{'a': 1}", "line 1: a key in double quotes or } was expected"),
        ('{"a": "x\n', "line 1: invalid control character at"),
        ('{"a": [1 2]}', "line 1: a comma or ] was expected"),
        ('{\n"hooks": []}', "line 2: `hooks` is not an object"),
        ('{"hooks": {\n"Stop": {}}}', "line 2: `hooks.Stop` is not a list"),
        ("{" * 5_000, "line 1: a key in double quotes or } was expected"),
        ('{"a":' * 50_000, "it is nested too deep"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(BadSettings) as refused:
        added(text, ENTRIES)
    assert str(refused.value) == said
    with pytest.raises(BadSettings) as refused:
        taken_out(text, is_ours)
    assert str(refused.value) == said


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
groups = st.lists(st.just(entry(THEIRS)) | st.just({"matcher": "x", "hooks": []}), max_size=2)
documents = st.builds(
    lambda rest, hooks: {**rest, **({} if hooks is None else {"hooks": hooks})},
    st.dictionaries(st.text().filter(lambda key: key != "hooks"), values, max_size=3),
    st.none() | st.dictionaries(st.sampled_from([*EVENTS, "Other"]), groups, max_size=4),
)


@given(documents, st.sampled_from([None, 1, 2, 4, "\t"]), st.booleans())
def test_any_document_is_read_and_restored(
    document: dict[str, Any], indent: int | str | None, ascii_only: bool
) -> None:
    text = json.dumps(document, indent=indent, ensure_ascii=ascii_only)
    with_ours = added(text, ENTRIES)
    assert taken_out(with_ours, is_ours) == text
    assert all(plain(with_ours)["hooks"][event][-1] == entry(OURS) for event in EVENTS)


@given(st.text('{}[]",:/*\\ \n0a-t', max_size=20))
def test_no_text_makes_the_reader_stumble(text: str) -> None:
    try:
        parse(text)
    except BadJson:
        with pytest.raises(json.JSONDecodeError):
            json.loads(text)
