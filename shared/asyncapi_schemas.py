"""The models as JSON schemas, for the AsyncAPI file: documents as services write them, commands as they are read."""

from collections.abc import Iterable
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

from shared.events import Data, Envelope

PLACE = "#/components/schemas"
ENVELOPE = "CloudEvent"

Schema = dict[str, Any]


class _Plain(GenerateJsonSchema):
    """Fields are called what they are called: a title that repeats the name is noise."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        del schema
        return False


def schemas(written: Iterable[type[BaseModel]], read: Iterable[type[BaseModel]]) -> Schema:
    """By name: the envelope, then every model and what it refers to."""
    written, read = [Envelope[Data], *written], list(read)
    _, found = models_json_schema(
        [(model, "validation") for model in (*written, *read)],
        ref_template=f"{PLACE}/{{model}}",
        schema_generator=_Plain,
    )
    named: dict[str, Schema] = found["$defs"]
    for schema in named.values():
        _without_nulls(schema)
    for model in written:
        _as_written(named[_name(model)], model)
    envelope = _envelope(named.pop(_name(Envelope[Data])))
    del named[_name(Data)]
    return {ENVELOPE: envelope, **dict(sorted(named.items()))}


def _name(model: type[BaseModel]) -> str:
    """As pydantic spells it in references."""
    return model.__name__.replace("[", "_").replace("]", "_")


def _without_nulls(schema: Schema) -> None:
    """Nobody sends a null: what would be one is left out. So `X or null` is X, and not required."""
    for name, field in schema.get("properties", {}).items():
        choices = [choice for choice in field.get("anyOf", ()) if choice.get("type") != "null"]
        if len(choices) == 1:
            rest = {key: value for key, value in field.items() if key != "anyOf" and (key, value) != ("default", None)}
            schema["properties"][name] = {**choices[0], **rest}


def _as_written(schema: Schema, model: type[BaseModel]) -> None:
    """A service writes every field that is not null, those with a default too."""
    fields = model.model_fields
    schema["required"] = [name for name in fields if type(None) not in get_args(fields[name].annotation)]
    for field in schema["properties"].values():
        field.pop("default", None)


def _envelope(schema: Schema) -> Schema:
    schema["properties"]["data"] = {"type": "object", "description": "What is told; its fields follow from `type`."}
    return {**schema, "title": ENVELOPE}
