"""The AsyncAPI file against the schema that the AsyncAPI project publishes."""

import copy
import json
from typing import Any

import pytest
from jsonschema import Draft7Validator

from shared.contract.asyncapi import document
from tests.fixtures.packages import npm_package

SPECS = (
    "@asyncapi/specs",
    "6.11.1",
    "sha512-A3WBLqAKGoJ2+6FWFtpjBlCQ1oFCcs4GxF7zsIGvNqp/klGUHjlA3aAcZ9XMMpLGE8zPeYDz2x9FmO6DSuKraQ==",
)


@pytest.fixture(scope="module")
def official() -> Draft7Validator:
    schema = json.loads((npm_package(*SPECS) / "schemas" / "3.0.0-without-$id.json").read_text())
    return Draft7Validator(schema)


def test_the_document_is_valid_asyncapi(official: Draft7Validator) -> None:
    faults = [f"{error.json_path}: {error.message[:300]}" for error in official.iter_errors(document())]
    assert not faults


@pytest.mark.parametrize(
    ("where", "wrong"),
    [
        (("operations", "spawn", "action"), "publish"),
        (("components", "parameters", "agent", "schema"), {"type": "string"}),
        (("components", "operationBindings", "passing", "mqtt", "qos"), 3),
        (("components", "schemas", "Spawn", "type"), "thing"),
        (("servers", "private", "protocol"), None),
    ],
)
def test_the_official_schema_would_notice(official: Draft7Validator, where: tuple[str, ...], wrong: Any) -> None:
    spoiled = copy.deepcopy(document())
    *path, last = where
    inner = spoiled
    for step in path:
        inner = inner[step]
    inner[last] = wrong
    assert not official.is_valid(spoiled)
