"""The AsyncAPI file says what the bus carries: it is current, whole, and real messages are what it says they are."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, get_args

import pytest
from jsonschema import Draft7Validator, ValidationError
from ruamel.yaml import YAML

from shared.contract import asyncapi_examples as examples
from shared.contract.asyncapi import DOCUMENT_TOPICS, FILE, document, render, schemas
from shared.contract.commands import VERBS, Command, Reply
from shared.contract.envelope import AgentEvent, Data, Event
from shared.contract.events.lifecycle import AgentStopped
from shared.contract.topics import COMMAND, REPLY, TOPICS, Topic, locate

ROOT = Path(__file__).parents[4]
BASE = ("prefix", "host")
DOCUMENT = document()
KINDS = [(row, kind) for row in DOCUMENT_TOPICS for kind in row.documents]


def named(value: Any) -> str | None:
    return value.__name__ if isinstance(value, type) else None


each_kind = pytest.mark.parametrize(("row", "kind"), KINDS, ids=lambda value: named(value) or value.pattern)
each_command = pytest.mark.parametrize("kind", VERBS.values(), ids=named)


def references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        yield from ([value["$ref"]] if "$ref" in value else [])
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from references(inner)


def resolve(reference: str) -> Any:
    assert reference.startswith("#/"), "everything is in the one file"
    found: Any = DOCUMENT
    for step in reference[2:].split("/"):
        found = found[step]
    return resolve(found["$ref"]) if set(found) == {"$ref"} else found


def check(message: str, payload: Any) -> None:
    """Validate as a program would that has nothing but the file."""
    Draft7Validator({**DOCUMENT["components"]["messages"][message]["payload"], **DOCUMENT}).validate(payload)


def without_optional(kind: type[Data]) -> Data:
    """The document with as little in it as can be."""
    full = examples.fill(kind)
    may_be_null = {name: None for name, f in kind.model_fields.items() if type(None) in get_args(f.annotation)}
    bare: Data = kind.model_validate({**full.model_dump(), **may_be_null})
    return bare


def test_the_file_is_current() -> None:
    assert FILE.read_text(encoding="utf-8") == render(DOCUMENT), "run: ./muster test --write"


def test_the_command_prints_the_same_in_every_process() -> None:
    """Nothing in it hangs on the time, on chance or on the order of a set."""
    for seed in ("1", "2"):
        run = [sys.executable, "-m", "shared.contract.asyncapi"]
        env = {"PYTHONPATH": str(ROOT), "PYTHONHASHSEED": seed, "PYTHONUTF8": "1"}
        printed = subprocess.run(run, env=env, cwd="/", capture_output=True, check=True)
        assert printed.stdout.decode() == render(DOCUMENT)


def test_the_yaml_reads_as_the_document_and_has_no_anchors() -> None:
    text = render(DOCUMENT)
    assert YAML(typ="safe", pure=True).load(text) == DOCUMENT
    assert not [line for line in text.splitlines() if ": &" in line or "- &" in line or ": *id" in line]


def test_every_reference_resolves() -> None:
    found = list(references(DOCUMENT))
    assert found
    for reference in found:
        assert resolve(reference)


def test_everything_in_the_components_is_used() -> None:
    used = set(references(DOCUMENT))
    for section, parts in DOCUMENT["components"].items():
        for name in parts:
            assert f"#/components/{section}/{name}" in used


@pytest.mark.parametrize("row", TOPICS, ids=lambda row: row.pattern)
def test_every_topic_row_is_a_channel(row: Topic) -> None:
    addresses = {channel["address"]: channel for channel in DOCUMENT["channels"].values()}
    verbs = VERBS if row is COMMAND else [""]
    for verb in verbs:
        address = "{prefix}/{host}/" + (row.pattern.replace("{verb}", verb) if verb else row.pattern)
        channel = addresses[address]
        assert {f"{{{name}}}" for name in channel["parameters"]} == {
            level for level in address.split("/") if level.startswith("{")
        }
        for parameter in channel["parameters"].values():
            assert resolve(parameter["$ref"])["description"]


def test_there_is_no_channel_that_is_not_in_the_table() -> None:
    for channel in DOCUMENT["channels"].values():
        name = channel["address"].format(
            prefix="muster", host="box", **{name: "some-id" for name in channel["parameters"] if name not in BASE}
        )
        assert locate(name, "muster") is not None


@each_kind
def test_every_kind_is_sent_on_its_row(row: Topic, kind: type[Data]) -> None:
    message = DOCUMENT["components"]["messages"][kind.__name__]
    assert message["summary"] == " ".join(str(kind.__doc__).split())
    name = kind.name() if issubclass(kind, Event) else "state"
    assert message["name"] == f"muster.{row.family}.{name}"
    senders = [
        operation
        for operation in DOCUMENT["operations"].values()
        if any(resolve(reference["$ref"]) == message for reference in operation["messages"])
    ]
    assert [operation["action"] for operation in senders] == ["send"]
    assert resolve(senders[0]["channel"]["$ref"])["address"].endswith(row.pattern)
    binding = resolve(senders[0]["bindings"]["$ref"])["mqtt"]
    assert (binding["qos"], binding["retain"], binding["bindingVersion"]) == (1, row.retain, "0.2.0")


@each_command
def test_every_verb_is_received_and_replied_to(kind: type[Command]) -> None:
    operation = DOCUMENT["operations"][kind.verb]
    assert operation["action"] == "receive"
    assert resolve(operation["channel"]["$ref"])["address"] == f"{{prefix}}/{{host}}/command/{kind.verb}"
    assert resolve(operation["bindings"]["$ref"])["mqtt"]["retain"] is False
    assert resolve(operation["reply"]["channel"]["$ref"])["address"] == f"{{prefix}}/{{host}}/{REPLY.pattern}"


@each_kind
def test_a_real_message_is_what_the_file_says(row: Topic, kind: type[Data]) -> None:
    payload = examples.document_example(row, kind)
    check(kind.__name__, payload)
    assert row.read(json.dumps(payload).encode()).data == examples.fill(kind)
    (shown,) = DOCUMENT["components"]["messages"][kind.__name__]["examples"]
    assert shown["payload"] == payload


@each_kind
def test_a_message_with_as_little_as_can_be_is_what_the_file_says(row: Topic, kind: type[Data]) -> None:
    bare = without_optional(kind)
    payload = examples.envelope(row, bare)
    check(kind.__name__, payload)
    assert row.read(json.dumps(payload).encode()).data == bare


@each_kind
def test_a_wrong_message_is_not(row: Topic, kind: type[Data]) -> None:
    good = examples.document_example(row, kind)
    about = [
        wrong
        for name in row.ids
        for wrong in (
            {**good, "data": {**good["data"], name: "Not an id"}},
            {**good, "data": {key: value for key, value in good["data"].items() if key != name}},
        )
    ]
    for wrong in (
        {**good, "type": "muster.drift.other"},
        {**good, "seq": -1},
        {key: value for key, value in good.items() if key != "specversion"},
        *about,
    ):
        with pytest.raises(ValidationError):
            check(kind.__name__, wrong)


@each_command
def test_a_command_is_what_the_file_says(kind: type[Command]) -> None:
    smallest = examples.command_example(kind)
    everything = {**smallest, "id": "c-1", "reply_to": "muster/box/reply/c-1", "by": "ada"}
    for payload in (smallest, everything):
        check(kind.__name__, payload)
        assert kind.model_validate_json(json.dumps(payload))
    wrongs: list[Any] = [*([{}] if smallest else []), {**smallest, "typo": 1}, {**smallest, "id": "Not an id"}, []]
    for wrong in wrongs:
        with pytest.raises(ValidationError):
            check(kind.__name__, wrong)


def test_a_reply_is_what_the_file_says() -> None:
    refused = Reply(id="c", verb="x", ok=False, said="no", code="refused", by="spawner", time=datetime.now(UTC))
    for payload in (examples.reply_example(), json.loads(refused.model_dump_json())):
        check("Reply", payload)
    with pytest.raises(ValidationError):
        check("Reply", {"id": "c", "verb": "x", "ok": True})


def test_a_field_of_any_type_gets_an_example() -> None:
    """A kind that is added later needs no help from here."""

    class Later(AgentEvent):
        kind: Literal["later"] = "later"
        tide: int | None
        wind: float
        crew: list[str]
        since: datetime
        calm: bool
        level: Literal["low", "high"]
        skipper: AgentStopped
        note: str = "none"

    made = examples.fill(Later)
    assert (made.tide, made.wind, made.crew, made.calm, made.level) == (1, 1.5, [], True, "low")
    assert (made.skipper.agent, made.note) == ("example", "none")
    assert "note" in schemas([Later], [])["Later"]["required"]
    assert "tide" not in schemas([Later], [])["Later"]["required"]
