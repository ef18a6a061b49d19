"""One plausible document of each kind for the AsyncAPI file, written by the code that services use.

A new kind needs no line here: a field's value is looked up by its name, or follows from its type.
"""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from shared.contract.commands import Command, Reply
from shared.contract.envelope import Data, Event
from shared.contract.topics import DEFAULT_OWNER, EVERY_SERVICE, Space, Topic
from shared.contract.writer import DocumentWriter
from shared.version import __version__

SPACE = Space("box")
TIME = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
EPOCH = "1kfc0v5m2a7e9d4h8tq"
ID = "1kfc1x8n3b6f0g5j7wr"
CAUSE = "1kfc1x6j9k2q5r8s0va"

SAMPLES: Mapping[str, Any] = {
    "account": "claude",
    "agent": "builder",
    "attempt": 1,
    "backend": "demo",
    "connection": 7,
    "exit_status": 1,
    "health": {"steps": 1024, "errors": 0},
    "pane": "%3",
    "pid": 4711,
    "reason": "asked for by ada",
    "replaces": "1kfc0w3p6c9h2k5m8xs",
    "service": "spawner",
    "session": "builder",
    "spawn": "1kfc1x7q4d0j3n6p9yt",
    "version": __version__,
    "workspace": "/home/ada/shop",
    "conversation": "7f3c2b1a-5d4e-4c6b-9a8f-0e1d2c3b4a59",
    "Send.text": "run the tests",
    "AgentFatal.reason": "it is not logged in; it is held until a person has mended that",
    "AgentProgress.summary": "12 of 40 tests pass",
    "AgentFinished.summary": "all tests pass",
    "AgentStalled.reason": "idle for 1800 s",
    "AgentUnresponsive.reason": "it is said to work, and has written nothing for 900 s",
    "AgentWoken.reason": "every 3600 s",
    "LimitHit.reason": "its weekly limit is reached, and resets at 2026-02-02 09:00 UTC",
    "LimitLifted.reason": "it was resumed after its weekly limit had lifted",
    "LimitNear.reason": "You've used 92% of your weekly limit",
    "author": "builder",
    "branch": "main",
    "commit": "9c1185a5c5e9fc54612808977ee8f548b2258d31",
    "loop": "main",
    "number": 2,
    "path": "inbox/builder.md",
    "pattern": "claim",
    "phase": "draft",
    "phases": 3,
    "remote": "git@example.com:team/thing.git",
    "role": "build",
    "subject": "claim: the draft is ready",
    "to": ["reviewer"],
    "BranchRewritten.now": "1b6453892473a467d07372d45eb05abc2031647a",
    "BranchRewritten.was": "9c1185a5c5e9fc54612808977ee8f548b2258d31",
    "BranchRewritten.reason": "3 commits are no longer on main, 3 are new; 1 of the new ones were told before",
    "CommitsSummedUp.commits": 512,
    "CommitsSummedUp.first": "9c1185a5c5e9fc54612808977ee8f548b2258d31",
    "CommitsSummedUp.last": "1b6453892473a467d07372d45eb05abc2031647a",
    "CommitsSummedUp.matched": {"claim": 40},
    "KickoffFailed.reason": "the template prompts/phase.md (`kickoff`) can't be read: No such file or directory",
    "MessageDropped.reason": "it could not be said for 7 days: it does not run",
    "MessageDropped.text": "builder committed 9c1185a5c5: claim: the draft is ready",
    "MessageWaits.reason": "its usage limit is reached",
    "PhaseAdvanced.reason": "the status file says 'STATUS: DONE outline'",
    "PhaseAdvanced.was": "outline",
    "PhaseDone.reason": "the status file says 'STATUS: DONE draft'",
    "RemoteUnreachable.reason": "it did not answer within 20 s",
    "SequenceCompleted.reason": "the status file says 'STATUS: DONE polish'",
    "StatusSeen.path": "STATUS.md",
    "StatusSeen.reason": "the phase is done",
    "StatusSeen.said": "STATUS: DONE draft",
    "WorkReviewed.pattern": "review",
    "WorkReviewed.subject": "review: the draft is fine",
    "WorkReviewed.to": ["builder"],
    "CommitMatched.pattern": "blocked",
    "CommitMatched.subject": "blocked: the key is missing",
    "LimitStuck.reason": "it was asked 3 times to go on, and is limited still",
    "AgentGaveUp.reason": "it died 6 times within 60 s",
    "AgentRestarted.reason": "its program ended with status 1",
}
"""By field name, or by model and field name."""


def document_example(row: Topic, kind: type[Data]) -> dict[str, Any]:
    """An envelope as the service that owns the row publishes it."""
    return envelope(row, fill(kind))


def envelope(row: Topic, data: Data) -> dict[str, Any]:
    writer = DocumentWriter(SPACE, DEFAULT_OWNER if EVERY_SERVICE in row.writers else row.writers[0], EPOCH)
    if isinstance(data, Event):
        _, payload = writer.event(data, seq=42, time=TIME, cause=CAUSE)
    else:
        _, payload = writer.state(data, seq=42, time=TIME)
    return {**json.loads(payload), "id": ID}  # a fixed id, so that the file stays the same


def command_example(kind: type[Command]) -> dict[str, Any]:
    """A command with only the fields that it needs."""
    return _json(fill(kind), exclude_unset=True)


def reply_example() -> dict[str, Any]:
    return _json(Reply(id=CAUSE, verb="spawn", ok=True, said="builder was started", by=DEFAULT_OWNER, time=TIME))


def fill(model: type[BaseModel]) -> Any:
    """The model with a value in every required field; of events and states, also in most optional ones."""
    is_command = issubclass(model, Command)
    values = {
        name: _sample(model, name, field)
        for name, field in model.model_fields.items()
        if field.is_required() or f"{model.__name__}.{name}" in SAMPLES or (not is_command and not field.default)
    }
    return model.model_validate({name: value for name, value in values.items() if value is not None})


def _sample(model: type[BaseModel], name: str, field: FieldInfo) -> Any:
    known = SAMPLES.get(f"{model.__name__}.{name}", SAMPLES.get(name))
    if not field.is_required() and field.default is not None:
        return known if isinstance(field.default, dict) else None  # other defaults are good examples
    if known is not None:
        return known
    schema = TypeAdapter(field.rebuild_annotation()).json_schema()
    return _by_type(schema, schema.get("$defs", {}))


def _by_type(schema: Mapping[str, Any], definitions: Mapping[str, Any]) -> Any:
    match schema:
        case {"$ref": str(place)}:
            return _by_type(definitions[place.rpartition("/")[2]], definitions)
        case {"anyOf": [first, *_]}:
            return _by_type(first, definitions)
        case {"const": value} | {"enum": [value, *_]} | {"minimum": value}:
            return value
        case {"format": "date-time"}:
            return TIME
        case {"type": "object"}:
            needed = schema.get("required", ())
            return {name: _by_type(schema["properties"][name], definitions) for name in needed}
    plain = {"string": "example", "integer": 1, "number": 1.5, "boolean": True, "array": []}
    return plain.get(str(schema.get("type")))


def _json(model: BaseModel, **options: Any) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(model.model_dump_json(**options))
    return document
