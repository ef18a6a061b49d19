"""A value that is written reads back as the same value, for ruamel and for the quick reader alike."""

from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from registry.entry import read_entry
from registry.yaml_text import is_plain, write

texts = st.text(st.characters()) | st.text(
    st.sampled_from(list(" :#-'\"\\,[]{}&*!|>%@`?=<~\t\n\r\x85\u2028\ufeffaé🎈0.e_"))
)
ODD = [
    *(
        "null",
        "~",
        "true",
        "on",
        "No",
        "y",
        "0123",
        "0x1f",
        "1e3",
        "1_000",
        ".5",
        "-",
        "--",
        "---",
        "...",
        "2030-01-01",
    ),
    *(
        "2030-01-01T12:00:00Z",
        "a: b",
        "a:",
        ":a",
        "a #b",
        "a#b",
        " x",
        "x ",
        "",
        "'",
        '"',
        "it's",
        "a\nb",
        "\t",
        "\x00",
    ),
    *("é", "🎈", "\ud800", "\ud83d\ude00", "\x85", "\u2028", "\ufeff", "\x7f", "=", "<<", "%3", "@a", "!a", "&a", "*a"),
    *("[a]", "{a", "a]", "a, b", "? a", "-1", "+1", "1", "0b1", "0o7", "01j5kabc", "1e3e", "12:30:45", "nan", ".inf"),
]


def by_ruamel(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def is_read_back(value: Any, quote: str) -> bool:
    """Whether ruamel and the line reader take what is written for the same value, in block and in flow style."""
    block, flow = write(value, quote), write(value, quote, flow=True)
    read = read_entry(f"a:\n  b: {block}\n")
    has_surrogates = isinstance(value, str) and any(0xD800 <= ord(each) < 0xE000 for each in value)
    by_lines = has_surrogates if read is None else read == ("a", {"b": value}) and type(read[1]["b"]) is type(value)
    in_block = by_ruamel(f"a:\n  b: {block}\n") == {"a": {"b": value}}
    in_flow = by_ruamel(f"a: {{b: {flow}, c: 1}}\n") == {"a": {"b": value, "c": 1}}
    return by_lines and in_block and in_flow and "\n" not in block + flow


@pytest.mark.parametrize("text", ODD)
@pytest.mark.parametrize("like", ["", "'", '"'])
def test_an_odd_text_is_read_back(text: str, like: str) -> None:
    assert is_read_back(text, like)


@given(texts, st.sampled_from(["", "'", '"', "|"]))
@settings(max_examples=300, deadline=None)
def test_any_text_is_read_back(text: str, like: str) -> None:
    assert is_read_back(text, like)


@given(st.none() | st.booleans() | st.integers(-(10**17), 10**17) | st.lists(texts, max_size=3))
@example(["a b", "c", "null", "1", ""])
@settings(max_examples=200, deadline=None)
def test_any_other_value_is_read_back(value: Any) -> None:
    text = write(value)
    assert by_ruamel(f"a:\n  b: {text}\n") == {"a": {"b": value}}
    read = read_entry(f"a:\n  b: {text}\n")
    assert read is None or read == ("a", {"b": value})
    assert read is None or type(read[1]["b"]) is type(value)


@pytest.mark.parametrize(
    ("text", "like", "written"),
    [
        ("running", "", "running"),
        ("running", "'", "'running'"),
        ("running", '"', '"running"'),
        ("it's", "'", "'it''s'"),
        ("a\nb", "'", '"a\\nb"'),
        ("null", "", "'null'"),
        ("/work/a b", "", "/work/a b"),
        ("2030-01-01T12:00:00Z", "", "'2030-01-01T12:00:00Z'"),
        ("01j5kxyz", "", "01j5kxyz"),
        ("0123-abcd", "", "'0123-abcd'"),
    ],
)
def test_existing_quotes_stay(text: str, like: str, written: str) -> None:
    assert write(text, like) == written


@pytest.mark.parametrize("name", ["null", "on", "1", "0x1f", "2030-01-01", "-", "-a", "1e3"])
def test_a_name_that_looks_like_something_else_is_quoted(name: str) -> None:
    assert not is_plain(name, flow=True)
    assert by_ruamel(f"{write(name, flow=True)}: 1") == {name: 1}
