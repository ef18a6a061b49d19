"""The JSON Schema of the fleet file: current, takes what the loader takes, and refuses what it can see is wrong."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft7Validator

from services.cli.init import TEMPLATE
from shared.fleet import BadFleetFile, load_fleet
from shared.fleet.declaration import RestartPolicy
from shared.fleet.schema import FILE, render, schema
from shared.system.yaml_text import load
from tests.unit.cli.test_init import uncommented
from tests.unit.shared.fleet.test_faults import SEEN_BY_SCHEMA
from tests.unit.shared.fleet.test_fleet import GOOD, write

SCHEMA = schema()
ROOT = Path(__file__).parents[4]


def refusals(document: Any) -> list[str]:
    """What an editor would underline."""
    return [fault.message for fault in Draft7Validator(SCHEMA).iter_errors(document)]


def test_the_published_file_is_current() -> None:
    assert FILE.read_text(encoding="utf-8") == render(SCHEMA), "run: ./muster test --write"


def test_the_command_prints_it() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "shared.fleet.schema"], capture_output=True, text=True, check=True, cwd=ROOT
    )
    assert json.loads(done.stdout) == SCHEMA


def test_it_is_a_schema_that_names_no_place() -> None:
    Draft7Validator.check_schema(SCHEMA)
    assert SCHEMA["title"] == "Muster fleet file"
    assert "$id" not in SCHEMA


def parts(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        yield node
        node = list(node.values())
    if isinstance(node, list):
        for each in node:
            yield from parts(each)


def test_every_section_is_closed_and_has_a_title() -> None:
    for section in (SCHEMA, *SCHEMA["definitions"].values()):
        assert section["title"]
        if "properties" in section:
            assert section["additionalProperties"] is False
    for part in parts(SCHEMA):
        assert "patternProperties" not in part
        assert not {"format", "writeOnly"} & part.keys()
        if "propertyNames" in part:
            assert isinstance(part["additionalProperties"], dict)


def test_every_key_is_explained() -> None:
    definitions = SCHEMA["definitions"]
    for name, section in {"": SCHEMA, **definitions}.items():
        for key, found in section.get("properties", {}).items():
            references = [part["$ref"].rpartition("/")[2] for part in parts(found) if "$ref" in part]
            explained = [found.get("description"), *(definitions[each].get("description") for each in references)]
            assert any(explained), f"{name}.{key}"


def test_every_reference_leads_somewhere() -> None:
    names = {part["$ref"] for part in parts(SCHEMA) if "$ref" in part}
    assert names == {f"#/definitions/{name}" for name in SCHEMA["definitions"]}


@pytest.mark.parametrize(
    "text", [*GOOD.values(), TEMPLATE, uncommented(TEMPLATE)], ids=[*GOOD, "template", "all of it"]
)
def test_what_the_loader_takes_the_schema_takes(tmp_path: Path, text: str) -> None:
    path = write(tmp_path, text)
    load_fleet(path)
    assert refusals(load(path.read_text()) or {}) == []


@pytest.mark.parametrize("text", [row[0] for row in SEEN_BY_SCHEMA])
def test_what_a_schema_can_see_it_refuses(tmp_path: Path, text: str) -> None:
    assert refusals(load(write(tmp_path, text).read_text()))


def test_the_defaults_that_an_editor_shows_are_the_true_ones() -> None:
    policy = {key: found["default"] for key, found in SCHEMA["definitions"]["RestartPolicy"]["properties"].items()}
    assert policy == RestartPolicy().model_dump()
    shown = {key: found["default"] for key, found in SCHEMA["properties"].items() if "default" in found}
    assert shown == {"version": 1, "prefix": "muster", "workspaces": ["."]}


values = st.sampled_from([None, True, 0, 7, -1, 0.5, "", "x", "demo", "off", [], ["x"], {}, {"x": "y"}])
keys = {
    "host": values,
    "version": values,
    "tmux": values | st.fixed_dictionaries({}, optional={"socket": values, "width": values}),
    "workspaces": values,
    "polls": values | st.fixed_dictionaries({}, optional={"alone_s": values}),
    "agents": values
    | st.dictionaries(
        st.sampled_from(["a", "B", "a b"]),
        values
        | st.fixed_dictionaries(
            {},
            optional={
                "prompt": values,
                "prompt_file": values,
                "enabled": values,
                "env": values,
                "restart": values,
                "wake": values | st.fixed_dictionaries({}, optional={"every_s": values, "cron": values}),
            },
        ),
        max_size=2,
    ),
}


@given(st.fixed_dictionaries({}, optional=keys))
@settings(max_examples=200, deadline=None)
def test_what_the_schema_takes_the_loader_takes(
    tmp_path_factory: pytest.TempPathFactory, document: dict[str, Any]
) -> None:
    """But for names and places, which are good here: nobody is told that all is well and finds that it is not."""
    path = tmp_path_factory.getbasetemp() / "schema-fleet.yaml"
    path.write_text(json.dumps(document))
    try:
        load_fleet(path)
    except BadFleetFile as bad:
        loads = "outside the allowed workspaces" in str(bad)
    else:
        loads = True
    assert loads or refusals(document)
