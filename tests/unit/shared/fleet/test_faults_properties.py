"""Whatever a fleet file holds: it is a fleet, or one sentence for each fault, and never a trace."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from shared.fleet import BadFleetFile, Declaration, load_fleet
from shared.fleet.faults import keys_at
from shared.fleet.section import Section
from tests.unit.shared.fleet.test_faults import fault

OF_OTHERS = r"Input should|String should|pydantic|<class|Error|Traceback"
"""Words that are not Muster's."""


def said_about(path: Path) -> str | None:
    """What is wrong with a file; None when nothing is."""
    try:
        load_fleet(path)
    except BadFleetFile as bad:
        return str(bad)
    return None


# --- what is not YAML ---


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("agents:\n  a: [\n", 3, ""),
        ("agents:\n\ta:\n", 2, "'\\t'"),
        ("host: a\nhost: b\n", 2, "the key 'host' is there twice"),
        ("agents:\n  a:\n    role: x\n  a:\n    role: y\n", 4, "the key 'a' is there twice"),
        ("host: 'a\n", 2, ""),
        ("host: @box\n", 1, "'@'"),
        ("a: *nobody\n", 1, "an alias (*) names nothing"),
        ("host: a\n---\nhost: b\n", 2, "there must be one document"),
        ("host: a\0b\n", 1, "control character"),
        ("host: \x07\n", 1, "control character"),
        ("\0\0\0\0", 1, "control character"),
        ("agents:\n  a:\n    prompt: 2030-13-45\n", 1, "put quotes around it"),
        ("a: !!bool maybe\n", 1, "a tag (!) does not fit"),
        ("a: !!int x\n", 1, "put quotes around it"),
        ("a: {<<: x}\n", 1, "expected a mapping"),
        ("[" * 5_000, 1, "nested too deeply"),
        ("{a: " * 5_000, 1, "nested too deeply"),
    ],
)
def test_what_is_not_yaml_is_said_with_its_line(tmp_path: Path, text: str, line: int, says: str) -> None:
    said = fault(tmp_path, text)
    assert said.startswith(f"{tmp_path / 'fleet.yaml'}, line {line}: not YAML: ")
    assert says in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("text", ["hello\n", "- a\n- b\n", "7\n", "true\n", "2030-01-01\n"])
def test_a_file_that_is_no_mapping_is_a_fault(tmp_path: Path, text: str) -> None:
    assert "line 1: the file must be a mapping" in fault(tmp_path, text)


@pytest.mark.parametrize("written", [b"host: box\nprefix: \xff\n", "host: box\n# ä\n".encode("latin-1")])
def test_bytes_that_are_no_text_are_a_fault(tmp_path: Path, written: bytes) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_bytes(written)
    with pytest.raises(BadFleetFile, match=r"fleet\.yaml, line 2: it can't be read: this is no text in UTF-8"):
        load_fleet(path)


def test_a_file_with_a_byte_order_mark_and_windows_lines_is_read(tmp_path: Path) -> None:
    path = tmp_path / "fleet.yaml"
    path.write_bytes("\ufeffhost: box\r\nagents:\r\n  a:\r\n".encode())
    assert load_fleet(path).space.host == "box"


def test_a_file_that_would_take_long_to_read_is_a_fault(tmp_path: Path) -> None:
    said = fault(tmp_path, "#" + "x" * 2_000_000)
    assert "is larger than a fleet file can be: 2000001 bytes" in said


def test_a_directory_is_a_fault(tmp_path: Path) -> None:
    with pytest.raises(BadFleetFile, match="can't be read: Is a directory"):
        load_fleet(tmp_path)


@pytest.mark.parametrize("value", ["false", "no", "0", '""', "[]"])
def test_only_an_agent_with_nothing_behind_it_has_defaults(tmp_path: Path, value: str) -> None:
    """`builder: false` reads like an agent that is switched off: it must not be started."""
    assert "agents.builder" in fault(tmp_path, f"agents:\n  builder: {value}\n")


# --- a wrong type at every place there is ---


def places(model: Any = Declaration, where: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every key that can be set."""
    for key, field in model.model_fields.items():
        yield (*where, key)
        yield from _below(field.annotation, (*where, key))


def _below(annotation: Any, where: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield from places(annotation, where)
        return
    inner = [each for each in get_args(annotation) if isinstance(each, type) and issubclass(each, Section)]
    for each in inner:
        step: tuple[Any, ...] = ()
        if "dict[" in str(annotation):
            step = ("x",)
        elif "list[" in str(annotation):
            step = (0,)
        yield from places(each, (*where, *step))


PLACES = list(dict.fromkeys(places()))
WRONG: list[Any] = [
    None,
    [],
    ["a", ["b"]],
    {},
    {"a": {"b": "c"}},
    7,
    -1,
    0.5,
    True,
    "",
    "a",
    "\n",
    {7: 8},
    [None],
    {"": 1},
]


def test_every_section_was_found() -> None:
    assert ("agents", "x", "restart", "burst") in PLACES
    assert ("backends", "x", "screen", "dialogs", 0, "match") in PLACES
    assert ("loops", "x", "phases", 0, "kickoff") in PLACES
    assert len(PLACES) > 120


def document_with(where: tuple[Any, ...], value: Any) -> Any:
    for step in reversed(where):
        value = [value] if step == 0 else {step: value}
    return value


@pytest.mark.parametrize("where", PLACES, ids=lambda where: ".".join(map(str, where)))
def test_a_wrong_type_at_any_place_is_a_sentence(tmp_path: Path, where: tuple[Any, ...]) -> None:
    path = tmp_path / "fleet.yaml"
    refused = 0
    for wrong in WRONG:
        with path.open("w") as file:
            YAML().dump(document_with(where, wrong), file)
        said = said_about(path)
        refused += said is not None
        assert all(re.match(rf"{path}, line \d+: \S+: .+", line) for line in (said or "").splitlines()), said
        assert not re.search(OF_OTHERS, said or "")
    assert refused >= 4, "no place takes all of these"


def test_the_keys_at_a_place_are_found_through_names_and_lists() -> None:
    assert keys_at(("loops", "x", "phases", 0)) == ["kickoff", "models", "name"]
    assert "every_s" in keys_at(("agents", "x", "wake"))
    assert keys_at(("agents", "x", "env")) == []


# --- any text ---

KEYS = (
    "host prefix tmux broker polls backends agents builder dir restart argv env like x 1 << defaults services"
    " workspaces loops wake prompt prompt_file roles"
)
SCALARS = "~ 7 -1 .nan true demo [] {} ' 2030-01-01 *a &a off | > .. ~nobody @ %"
keys = st.sampled_from([*KEYS.split(), "a b"])
scalars = st.sampled_from(
    [*SCALARS.split(), "", "&a b", "!x y", "!!bool x", "!!int y", "!!set {a}", "!!omap [a: b]", "? a", '"\\ud800"']
)
lines = st.tuples(st.integers(0, 3), keys, scalars).map(lambda drawn: f"{'  ' * drawn[0]}{drawn[1]}: {drawn[2]}")


@pytest.mark.filterwarnings("ignore::ruamel.yaml.error.ReusedAnchorWarning")
@given(st.lists(lines, max_size=8).map("\n".join) | st.text(max_size=40))
@settings(max_examples=200, deadline=None)
@example("a: !!bool x")
@example('host: "\\ud800"')
@example('agents: {a: {role: "\\ud800"}, "\\ud800": }')
@example("agents: &a {b: *a}")
@example("agents: {a: &a {env: *a}}")
def test_any_text_is_a_fleet_or_a_fault(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any-fleet.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    said = said_about(path) or ""
    assert all(str(path) in line for line in said.splitlines())
    assert not re.search(OF_OTHERS, said)
