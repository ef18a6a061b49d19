"""Generates the AsyncAPI 3.0 document of the bus from the topic table, the commands and their models.

`python -m shared.contract.asyncapi` prints it, `--write` writes `docs/asyncapi.yaml`. A test fails if that is outdated.
"""

import io
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema
from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import LiteralScalarString

from shared.contract import asyncapi_examples as examples
from shared.contract.commands import COMMAND_EXPIRES_AFTER_S, VERBS, Command, Reply
from shared.contract.envelope import Data, Envelope
from shared.contract.topics import COMMAND, EVERY_SERVICE, REPLY, TOPICS, Topic
from shared.generated import UntitledFields, publish
from shared.version import __version__

FILE = Path(__file__).parents[2] / "docs" / "asyncapi.yaml"
HEADER = "# Made from the models by `./muster test --write`; a test says that it is current.\n"

PLACE = "#/components/schemas"
ENVELOPE = "CloudEvent"

Document = dict[str, Any]
Schema = dict[str, Any]

ABOUT = f"""\
What the services of a Muster fleet say, and what they can be asked to do.

The point of view is the fleet's: `send` is what its services publish and you may subscribe to; `receive` is what
they take, that is, commands, which you may publish as `operator`. Services ask each other on the same topics.

Everything is JSON in UTF-8 over MQTT 3.1.1 with QoS 1. `mosquitto_sub -t 'muster/#' -v` shows it all, and
`muster broker` prints that command with address and password filled in.

- An **event** is a CloudEvents 1.0 document about something that happened; it is never retained. `seq` grows by
  one with each event of a `source` within an `epoch`: a lower one is a repeat, a gap is closed by `replay`.
- A **state** is retained: the newest is the truth. An empty payload takes it back: what it spoke of is gone.
- A **command** is bare JSON, so that it can be typed by hand. Unknown fields are refused. It must not be
  retained, acts once for each `id`, and is answered `expired` when it waited longer than {COMMAND_EXPIRES_AFTER_S} s.
- A **reply** says what came of a command, in a sentence. It comes on `reply/<id of the command>`, or where the
  command's `reply_to` says, which must be below `reply/` too.

Nobody sends nulls: a field without a value is left out. Readers pass over fields that they do not know, for hosts
may differ in version.
"""

SERVER = """\
The broker that `muster up` starts: on loopback only, on a port that is chosen once and then kept. A fleet file
may name another broker; topics and documents are the same there.
"""

ROLES = """\
One user for each role, with generated passwords in `.muster/credentials` beside the fleet file. Each service
writes its own topics; `viewer` reads everything; `operator` may also command. What a role may not do, the broker
drops in silence.
"""

AN_ID = "`[a-z0-9_-]`, 1 to 64 long"
PARAMETERS: Mapping[str, Document] = {
    "prefix": {"description": f"The first level of every topic, a setting; {AN_ID}.", "default": "muster"},
    "host": {"description": f"The machine, as its fleet file names it; {AN_ID}.", "examples": ["box"]},
    "command": {"description": f"The id of the command, or what its `reply_to` ends with; {AN_ID}."},
}

DOCUMENT_TOPICS = tuple(row for row in TOPICS if row not in (COMMAND, REPLY))


def document() -> Document:
    """The whole document as plain data."""
    return {
        "asyncapi": "3.0.0",
        "info": {"title": "Muster", "version": __version__, "description": ABOUT},
        "defaultContentType": "application/json",
        "servers": {"private": _server()},
        "channels": {
            **{_key(row): _channel(row) for row in DOCUMENT_TOPICS},
            **{_key(COMMAND, verb=verb): _command_channel(kind) for verb, kind in VERBS.items()},
            _key(REPLY): _channel(REPLY),
        },
        "operations": {
            **{f"send_{_key(row)}": _sends(row) for row in DOCUMENT_TOPICS},
            **{verb: _receives(kind) for verb, kind in VERBS.items()},
        },
        "components": {
            "parameters": {name: _parameter(name) for name in _parameter_names()},
            "messages": _messages(),
            "schemas": schemas([*(kind for row in DOCUMENT_TOPICS for kind in row.documents), Reply], VERBS.values()),
            "operationBindings": {"passing": _binding(retain=False), "retained": _binding(retain=True)},
            "securitySchemes": {"role": {"type": "userPassword", "description": ROLES}},
        },
    }


# --- servers and channels ---


def _server() -> Document:
    return {
        "host": "127.0.0.1:{port}",
        "protocol": "mqtt",
        "protocolVersion": "3.1.1",
        "description": SERVER,
        "variables": {"port": {"description": "`muster broker` prints it.", "examples": ["20883"]}},
        "security": [_ref("#/components/securitySchemes/role")],
    }


def _channel(row: Topic) -> Document:
    retained = " Retained; an empty payload means that it is gone." if row.retain else ""
    return {
        "address": _address(row),
        "summary": _sentence(row.says),
        "description": f"Written by {_writers(row)}.{retained}",
        "parameters": _parameters(row),
        "messages": {kind.__name__: _ref(f"#/components/messages/{kind.__name__}") for kind in row.documents},
    }


def _command_channel(kind: type[Command]) -> Document:
    owner = "the service it names" if kind.owner == EVERY_SERVICE else f"the {kind.owner}"
    return {
        "address": _address(COMMAND, verb=kind.verb),
        "summary": _summary(kind),
        "description": f"{_sentence(COMMAND.says)} Carried out by {owner}.",
        "parameters": _parameters(COMMAND, verb=kind.verb),
        "messages": {kind.__name__: _ref(f"#/components/messages/{kind.__name__}")},
    }


def _key(row: Topic, **ids: str) -> str:
    """`agent/{agent}/state` is `agent_state`."""
    return "_".join(level for level in _filled(row, ids).split("/") if "{" not in level)


def _address(row: Topic, **ids: str) -> str:
    return f"{{prefix}}/{{host}}/{_filled(row, ids)}"


def _filled(row: Topic, ids: Mapping[str, str]) -> str:
    """The pattern with these ids filled in; the others stay."""
    return re.sub(r"\{(\w+)\}", lambda found: ids.get(found[1], found[0]), row.pattern)


def _parameters(row: Topic, **ids: str) -> Document:
    names = ("prefix", "host", *(name for name in row.ids if name not in ids))
    return {name: _ref(f"#/components/parameters/{name}") for name in names}


def _parameter_names() -> list[str]:
    return list(dict.fromkeys(("prefix", "host", *(name for row in (*DOCUMENT_TOPICS, REPLY) for name in row.ids))))


def _parameter(name: str) -> Document:
    if name in PARAMETERS:
        return dict(PARAMETERS[name])
    sample = {"examples": [examples.SAMPLES[name]]} if name in examples.SAMPLES else {}
    described = f"The id of the {name}; {AN_ID}."
    return {"description": described, **sample, "location": "$message.payload#/subject"}


def _writers(row: Topic) -> str:
    return " and ".join("each service" if writer == EVERY_SERVICE else f"the {writer}" for writer in row.writers)


# --- operations ---


def _sends(row: Topic) -> Document:
    return {
        "action": "send",
        "channel": _ref(f"#/channels/{_key(row)}"),
        "summary": _sentence(row.says),
        "bindings": _ref(f"#/components/operationBindings/{'retained' if row.retain else 'passing'}"),
        "messages": [_ref(f"#/channels/{_key(row)}/messages/{kind.__name__}") for kind in row.documents],
    }


def _receives(kind: type[Command]) -> Document:
    channel, reply = f"#/channels/{_key(COMMAND, verb=kind.verb)}", f"#/channels/{_key(REPLY)}"
    return {
        "action": "receive",
        "channel": _ref(channel),
        "summary": _summary(kind),
        "bindings": _ref("#/components/operationBindings/passing"),
        "messages": [_ref(f"{channel}/messages/{kind.__name__}")],
        # No `address` with `$message.payload#/reply_to`: that is for channels without an address.
        "reply": {"channel": _ref(reply), "messages": [_ref(f"{reply}/messages/{Reply.__name__}")]},
    }


def _binding(*, retain: bool) -> Document:
    return {"mqtt": {"qos": 1, "retain": retain, "bindingVersion": "0.2.0"}}


# --- messages ---


def _messages() -> Document:
    documents = {kind.__name__: _envelope_message(row, kind) for row in DOCUMENT_TOPICS for kind in row.documents}
    commands = {
        kind.__name__: _bare_message(kind, kind.verb, examples.command_example(kind)) for kind in VERBS.values()
    }
    return {**documents, **commands, Reply.__name__: _bare_message(Reply, "reply", examples.reply_example())}


def _envelope_message(row: Topic, kind: type[Any]) -> Document:
    example = examples.document_example(row, kind)
    known = {"type": {"const": example["type"]}, "data": _ref(f"{PLACE}/{kind.__name__}")}
    return {
        "name": example["type"],
        "title": _words(kind),
        "summary": _summary(kind),
        "contentType": "application/cloudevents+json",
        "payload": {"allOf": [_ref(f"{PLACE}/{ENVELOPE}"), {"type": "object", "properties": known}]},
        "examples": [{"payload": example}],
    }


def _bare_message(kind: type[Any], name: str, example: Document) -> Document:
    return {
        "name": name,
        "title": _words(kind),
        "summary": _summary(kind),
        "contentType": "application/json",
        "payload": _ref(f"{PLACE}/{kind.__name__}"),
        "examples": [{"payload": example}],
    }


def _summary(kind: type[Any]) -> str:
    return " ".join((kind.__doc__ or kind.__name__).split())


def _words(kind: type[Any]) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", kind.__name__).capitalize()


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."


def _ref(target: str) -> Document:
    return {"$ref": target}


# --- schemas ---


def schemas(written: Iterable[type[BaseModel]], read: Iterable[type[BaseModel]]) -> Schema:
    """The schemas by name: the envelope, then every model and what it refers to."""
    written, read = [Envelope[Data], *written], list(read)
    _, found = models_json_schema(
        [(model, "validation") for model in (*written, *read)],
        ref_template=f"{PLACE}/{{model}}",
        schema_generator=UntitledFields,
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
    """The name that pydantic uses in references."""
    return model.__name__.replace("[", "_").replace("]", "_")


def _without_nulls(schema: Schema) -> None:
    """Nulls are never sent, the field is left out instead. So `X or null` becomes an optional X."""
    for name, field in schema.get("properties", {}).items():
        choices = [choice for choice in field.get("anyOf", ()) if choice.get("type") != "null"]
        if len(choices) == 1:
            rest = {key: value for key, value in field.items() if key != "anyOf" and (key, value) != ("default", None)}
            schema["properties"][name] = {**choices[0], **rest}


def _as_written(schema: Schema, model: type[BaseModel]) -> None:
    """Services write every field that is not null, so fields with a default are required too."""
    fields = model.model_fields
    schema["required"] = [name for name in fields if type(None) not in get_args(fields[name].annotation)]
    for field in schema["properties"].values():
        field.pop("default", None)


def _envelope(schema: Schema) -> Schema:
    schema["properties"]["data"] = {"type": "object", "description": "What is told; its fields follow from `type`."}
    return {**schema, "title": ENVELOPE}


# --- as text ---


def render(given: Document) -> str:
    """The document as readable YAML: in its own order, long texts as blocks, no anchors."""
    yaml = YAML()
    yaml.width = 118
    yaml.indent(mapping=2, sequence=4, offset=2)
    yaml.representer.ignore_aliases = lambda *_: True
    text = io.StringIO()
    yaml.dump(_readable(given), text)
    return HEADER + text.getvalue()


def _readable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _readable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_readable(inner) for inner in value]
    return LiteralScalarString(value) if isinstance(value, str) and "\n" in value else value


def main() -> int:
    return publish(
        FILE,
        render(document()),
        prog="python -m shared.contract.asyncapi",
        description="Describe the bus as AsyncAPI 3.",
    )


if __name__ == "__main__":
    sys.exit(main())
