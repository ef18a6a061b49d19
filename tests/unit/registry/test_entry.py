"""The quick reader reads what ruamel reads, or nothing at all."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from registry import entry
from tests.unit.registry.handwriting import comments, plain_values, quoted_values

ENTRY = """\
  builder:  # mine
    status: running   # for now
    # a comment
    since: '2030-01-01T12:00:00Z'

    reason: "it's \\"new\\"\\n"
    pid: 7
    exit_status: -9
    spawn: 01j5kxyz
    conversation: 0b5e0001-1234-4abc-9def-0123456789ab
    drifts: [missing, 'a, b', "c"]
    earlier: []
    gone: null
    workspace: /work/a b
"""

pytestmark = pytest.mark.filterwarnings("ignore::ruamel.yaml.error.ReusedAnchorWarning")


def by_ruamel(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def agrees(text: str) -> bool:
    """Whether the quick reader took a text; if so it must be right."""
    read = entry.read_entry(text)
    if read is None:
        return False
    data = by_ruamel(text)
    assert repr({read[0]: read[1]}) == repr({str(key): value for key, value in data.items()}), text
    return True


@pytest.mark.parametrize(
    "text", [ENTRY, ENTRY.replace("\n", "\r\n"), ENTRY.removesuffix("\n"), ENTRY.replace("  ", " ")]
)
def test_what_we_write_is_read_by_the_line_reader(text: str) -> None:
    assert agrees(text)


@pytest.mark.parametrize(
    "line",
    [
        *(
            "x: a: b",
            "x: a #b",
            "x: a:",
            "x: 'a' b",
            "x: 'a",
            "x: |",
            "x: >",
            "x: &a b",
            "x: *a",
            "x: !!str a",
            "x: ? a",
        ),
        *(
            "x: {a: b}",
            "x: [a: b]",
            "x: [a, [b]]",
            "x: [a",
            "x: - a",
            "- a",
            "? x",
            "x",
            "x : a",
            "x:a",
            "'x': a",
            "<<: a",
        ),
        *(
            "x: 0x1f",
            "x: 1e3",
            "x: 1_000",
            "x: 0123",
            "x: 1.5",
            "x: 2030-01-01",
            "x: 2030-1-1 1:00:00",
            "x: .5",
            "x: ~",
        ),
        *("x: true", "x: True", "x: TRUE", "x: tRue", "x: Null", "x: NULL", "x: yes", "x: on", "x: =", "x: 12:30:45"),
        *(
            "true: a",
            "null: a",
            "on: a",
            "status: again",
            " x: deeper",
            "x: a\tb",
            "\tx: a",
            "x:\ta",
            "x: a\t# b",
            "x: @a",
        ),
        *(
            "x: [null, true, 7, 0x1]",
            "x: [a,]",
            "x: [ a , b ]",
            "x: [a b]",
            "x: []",
            "x: [,]",
            "x: ['a''b', \"\\u00e9\"]",
        ),
        *(
            'x: "\\ud83d\\ude00"',
            'x: "\\x41"',
            'x: "\\/"',
            'x: "a\\',
            "x: é",
            "x: \x85",
            "x: a\u2028b",
            "x: \ufeffa",
            "x: a\xa0",
        ),
        *(
            "x: 1" + "0" * 30,
            "x: +7",
            "x: -0",
            "x: 00",
            "x: 0",
            "x: -",
            "x: 1a",
            "x: 1 2",
            "x: 0b1",
            "x: 0o7",
            "x: 08",
            "x: 09_",
        ),
        *(
            "x: a # b: c",
            "x: 'a'  # 'b",
            "x: a  ",
            "x:",
            "x: # a",
            "x: a,b",
            "x: a]b}",
            "x: http://a/b#c?d=e&f",
            "x: C:\\a",
        ),
        *("x: 190:20:30", "x: 1.", "x: 1.e3", "x: 1e", "x: 2030-01-01x", "x: 2030-01-01T1", "x: _1", "x: +a", "x: +1a"),
    ],
)
@pytest.mark.parametrize("place", ["last", "first"])
def test_a_line_is_read_as_ruamel_reads_it_or_left_to_it(line: str, place: str) -> None:
    lines = ["status: running", line] if place == "last" else [line, "status: running"]
    text = "b:\n" + "".join(f"  {each}\n" for each in lines)
    try:
        by_ruamel(text)
    except (YAMLError, ValueError):
        assert entry.read_entry(text) is None, "a text that is no YAML is not taken for any"
    else:
        agrees(text)


@given(
    st.lists(
        st.tuples(st.sampled_from(["status", "pid", "x", "a-b"]), plain_values | quoted_values | st.text(max_size=6)),
        min_size=1,
        max_size=4,
    ),
    st.sampled_from(["", "  "]) | comments.map("  {}".format),
)
@settings(max_examples=300, deadline=None)
def test_any_lines_are_read_as_ruamel_reads_them_or_left_to_it(lines: list[tuple[str, str]], end: str) -> None:
    text = f"b:{end}\n" + "".join(f"  {key}: {value}{end}\n" for key, value in lines)
    try:
        by_ruamel(text)
    except (YAMLError, ValueError):
        assert entry.read_entry(text) is None
    else:
        agrees(text)


def test_a_top_level_line_is_read_by_the_line_reader() -> None:
    assert entry.read_key("note: kept   # why\n# more\n\n") == ("note", "kept")
    assert entry.read_key("after: [1, 2]\n") == ("after", [1, 2])
    assert entry.read_key("a: 1\nb: 2\n") is None
    assert entry.read_key("  a: 1\n") == ("a", 1)
