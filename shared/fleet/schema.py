"""Generates the JSON Schema of the fleet file, for editors, from its models.

`python -m shared.fleet.schema` prints it, `--write` writes `docs/fleet.schema.json`. A test fails if that is outdated.
What `check` finds (unknown names, for example) is not in the schema.
"""

import ast
import inspect
import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from shared.fleet.declaration import AgentKind, Declaration
from shared.fleet.section import Section
from shared.generated import UntitledFields, publish

FILE = Path(__file__).parents[2] / "docs" / "fleet.schema.json"
DIALECT = "http://json-schema.org/draft-07/schema#"
"""The newest one that all YAML editors support."""

Schema = dict[str, Any]

NULL: Schema = {"type": "null"}
NOTES = ("format", "writeOnly")
"""Annotations that editors do not know (`path`), or that say nothing to them (`writeOnly` for secrets)."""
MAY_BE_BARE = ("agents", "backends")
TRUE_OR_FALSE = [{"type": "boolean"}, {"enum": ["on", "off", "yes", "no"]}]

_BOTH_PROMPTS = {"prompt": {"type": "string", "minLength": 1}, "prompt_file": {"type": "string"}}
RULES: Mapping[str, Schema] = {
    "Agent": {"not": {"required": list(_BOTH_PROMPTS), "properties": _BOTH_PROMPTS}},
    "Wake": {"oneOf": [{"required": [key], "properties": {key: {"not": NULL}}} for key in ("every_s", "cron")]},
}
"""What the models check by code, by model."""


class _Described(UntitledFields):
    def model_schema(self, schema: Any) -> Schema:
        """Add the docstring of each key. Pydantic could do that itself, but in every start of every service."""
        made = super().model_schema(schema)
        for key, says in _said_of_keys(schema["cls"]).items():
            made.get("properties", {}).get(key, {}).setdefault("description", says)
        return made


def _said_of_keys(section: type) -> Schema:
    """The docstring of each key, from the class or its bases."""
    said: Schema = {}
    for each in reversed(section.mro()):
        if issubclass(each, Section):
            said |= dict(_said_in(each))
    return said


def _said_in(section: type[Section]) -> Iterator[tuple[str, str]]:
    source = ast.parse(textwrap.dedent(inspect.getsource(section)))
    definition = next(node for node in source.body if isinstance(node, ast.ClassDef))
    for key, below in pairwise(definition.body):
        match key, below:
            case ast.AnnAssign(target=ast.Name(name)), ast.Expr(ast.Constant(str(says))):
                yield name, inspect.cleandoc(says)


def schema() -> Schema:
    made = Declaration.model_json_schema(schema_generator=_Described, ref_template="#/definitions/{model}")
    definitions = {name: _readable(found) for name, found in sorted(made.pop("$defs").items())}
    for name, found in definitions.items():
        found["title"] = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).capitalize()
        found.update(RULES.get(name, {}))
    definitions[AgentKind.__name__]["enum"].remove(AgentKind.SERVICE.value)
    whole = _readable(made)
    for key in MAY_BE_BARE:
        names = whole["properties"][key]
        names["additionalProperties"] = {"anyOf": [names["additionalProperties"], NULL]}
    return {"$schema": DIALECT, **whole, "title": "Muster fleet file", "definitions": definitions}


def _readable(node: Any) -> Any:
    """Pydantic's schema in draft 7, and without annotations that only Python knows."""
    if isinstance(node, list):
        return [_readable(each) for each in node]
    if not isinstance(node, dict):
        return node
    found: Schema = {
        key: {name: _readable(each) for name, each in value.items()} if key == "properties" else _readable(value)
        for key, value in node.items()
        if key not in NOTES
    }
    if isinstance(found.get("default"), dict | None):
        found.pop("default", None)  # the keys of a section have their own defaults
    if isinstance(found.get("description"), str):
        found["description"] = " ".join(found["description"].split())
    if "$ref" in found and len(found) > 1:
        found["allOf"] = [{"$ref": found.pop("$ref")}]  # draft 7 ignores everything beside a reference
    if found.get("type") == "boolean":
        found["anyOf"] = TRUE_OR_FALSE
        del found["type"]
    if isinstance(found.get("patternProperties"), dict):
        ((pattern, value),) = found.pop("patternProperties").items()
        found |= {"propertyNames": {"pattern": pattern, **found.get("propertyNames", {})}}
        found["additionalProperties"] = value
    return found


def render(given: Schema) -> str:
    return json.dumps(given, indent=2) + "\n"


def main() -> int:
    return publish(
        FILE,
        render(schema()),
        prog="python -m shared.fleet.schema",
        description="Describe the fleet file as a JSON Schema.",
    )


if __name__ == "__main__":
    sys.exit(main())
