"""Where commands come in: read, checked, written down, and refused with a sentence when they can't be.

Everything here must survive any payload a stranger can send.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from datetime import datetime

from pydantic import ValidationError

from shared.commands import MAX_PAYLOAD, VERBS, WAITS_AT_MOST_S, Command, Reply
from shared.ids import is_id, new_id
from shared.inbox import Arrived
from shared.journal import Request
from shared.roles import SERVICES
from shared.topics import COMMAND, FRONT_DESK, REPLY, Space, first_fault

_ID_SOMEWHERE = re.compile(rb'"id"\s*:\s*"([a-z0-9_-]{1,64})"')


@dataclass(frozen=True, slots=True)
class Refused:
    """The answer to something that never became a request."""

    topic: str
    reply: Reply
    clear: str | None = None


class Fault(Exception):
    """What is wrong with a command."""

    def __init__(self, code: str, said: str) -> None:
        super().__init__(said)
        self.code = code
        self.said = said


class Desk:
    """One service's desk. Pure: it says what to do with a message, and does nothing."""

    def __init__(self, space: Space, service: str) -> None:
        self._space = space
        self._service = service
        self._front = service == FRONT_DESK

    @property
    def subscriptions(self) -> list[str]:
        if self._front:
            return [COMMAND.filter(self._space)]
        return [COMMAND.name(self._space, verb=v) for v, c in VERBS.items() if c.owner in (self._service, "*")]

    def take(self, message: Arrived, verb: str, *, now: datetime, waited_s: float = 0.0) -> Request | Refused | None:
        """Make a request of a message; None when it is another service's to answer."""
        kind = VERBS.get(verb)
        owner = kind.owner if kind else FRONT_DESK
        if owner not in (self._service, "*"):
            return None
        if not message.payload:
            return None  # the trace of a retained message being cleared
        try:
            command = self._read(message, verb)
        except Fault as fault:
            return self._refuse(message, verb, fault, now) if self._front or owner == self._service else None
        return self._address(message, verb, command, now, waited_s)

    def _address(
        self, message: Arrived, verb: str, command: Command, now: datetime, waited_s: float
    ) -> Request | Refused | None:
        to = command.addressee()
        if to != self._service:
            if self._front and to not in SERVICES:
                fault = Fault("unknown_service", f"there is no service {to!r}; there are: {', '.join(SERVICES)}")
                return self._refuse(message, verb, fault, now)
            return None
        asked = now.timestamp() - waited_s
        expires = command.expires.timestamp() if command.expires else asked + WAITS_AT_MOST_S
        command_id = command.id or new_id()
        return Request(
            id=command_id,
            verb=verb,
            payload=message.payload,
            reply_to=command.reply_to or REPLY.name(self._space, command=command_id),
            asked=asked,
            expires=expires,
            agent=command.concerns(),
            delivery=None if command.id else _fingerprint(message),
        )

    def _read(self, message: Arrived, verb: str) -> Command:
        if message.retained:
            raise Fault(
                "retained",
                "a retained command is not carried out, for it would come again to everyone who connects;"
                " the retained copy was cleared: send it without -r",
            )
        if len(message.payload) > MAX_PAYLOAD:
            raise Fault("malformed", f"the payload has {len(message.payload)} bytes; at most {MAX_PAYLOAD} are taken")
        kind = VERBS.get(verb)
        if kind is None:
            raise Fault("unknown_verb", f"there is no verb {verb[:64]!r}; there are: {', '.join(sorted(VERBS))}")
        command = read_command(kind, message.payload)
        prefix = f"{self._space.root}/reply/"
        if command.reply_to is not None and not (
            command.reply_to.startswith(prefix) and is_id(command.reply_to.removeprefix(prefix))
        ):
            raise Fault("malformed", f"reply_to must be {prefix}<id>, ids are [a-z0-9_-], 1 to 64 long")
        return command

    def _refuse(self, message: Arrived, verb: str, fault: Fault, now: datetime) -> Refused:
        found = _ID_SOMEWHERE.search(message.payload[:MAX_PAYLOAD])
        command_id = found[1].decode() if found else new_id()
        reply = Reply(
            id=command_id,
            verb=verb[:64],
            ok=False,
            said=fault.said,
            code=fault.code,
            by=self._service,
            time=now,
        )
        topic = REPLY.name(self._space, command=command_id)
        return Refused(topic, reply, clear=message.topic if message.retained else None)


def request_of(space: Space, command: Command, asked: float) -> Request:
    """A command with an id as it stands in the journal."""
    if command.id is None:
        raise ValueError("a command that goes through the journal needs an id")
    return Request(
        id=command.id,
        verb=command.verb,
        payload=command.model_dump_json(exclude_none=True).encode(),
        reply_to=command.reply_to or REPLY.name(space, command=command.id),
        asked=asked,
        expires=command.expires.timestamp() if command.expires else asked + WAITS_AT_MOST_S,
        agent=command.concerns(),
    )


def read_command(kind: type[Command], payload: bytes) -> Command:
    """Read a command's JSON; a fault says what is wrong with it in one sentence."""
    try:
        text = payload.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Fault("malformed", f"the payload is not UTF-8 (byte {error.start}); send JSON in UTF-8") from error
    try:
        arguments = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Fault(
            "malformed",
            f"the payload is not JSON: {str(error)[:120]}; send an object such as {_example(kind)}",
        ) from error
    if not isinstance(arguments, dict):
        raise Fault("malformed", f"the payload is JSON but not an object; send one such as {_example(kind)}")
    try:
        return kind.model_validate_json(text)
    except ValidationError as error:
        raise Fault(
            "malformed", f"{first_fault(error)}; {kind.verb} takes an object such as {_example(kind)}"
        ) from error


def _example(kind: type[Command]) -> str:
    samples = {
        **{"agent": "builder", "service": "spawner", "session": "work", "text": "run the tests", "account": "claude"},
        **{"after": 0, "until": "2026-01-31T09:30:00Z", "phase": "second"},
    }
    wanted = [name for name, field in kind.model_fields.items() if field.is_required()]
    needed = [f"{json.dumps(name)}: {json.dumps(samples[name])}" for name in [*wanted, *kind.or_else]]
    return "{" + ", ".join(needed) + "}"


def _fingerprint(message: Arrived) -> str:
    """What a broker's second delivery of one message has in common with the first."""
    digest = hashlib.sha256(message.topic.encode() + b"\0" + message.payload).hexdigest()
    return f"{message.mid}:{digest}"
