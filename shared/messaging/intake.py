"""What the broker delivers: commands are checked and stored in the journal, events go to the cursors.

A command that can't be read is refused with a sentence. Everything here must survive any payload a stranger can send.
"""

import hashlib
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pydantic import ValidationError

from shared.contract.commands import COMMAND_EXPIRES_AFTER_S, MAX_PAYLOAD, VERBS, Command, Reply
from shared.contract.ids import is_id, new_id
from shared.contract.services import SERVICES
from shared.contract.states import Presence
from shared.contract.topics import COMMAND, DEFAULT_OWNER, REPLY, SERVICE_STATE, Space, Topic, first_fault, locate
from shared.messaging.bus import Bus
from shared.messaging.cursors import LocatedMessage
from shared.messaging.inbox import MessageArrived
from shared.messaging.journal import Journal, Request
from shared.messaging.presence import OwnPresence
from shared.system.log import Log

_ID_SOMEWHERE = re.compile(rb'"id"\s*:\s*"([a-z0-9_-]{1,64})"')


@dataclass(frozen=True, slots=True)
class RefusedCommand:
    """The answer to something that never became a request."""

    topic: str
    reply: Reply
    clear: str | None = None


class CommandFault(Exception):
    """What is wrong with a command."""

    def __init__(self, code: str, said: str) -> None:
        super().__init__(said)
        self.code = code
        self.said = said


class CommandIntake:
    """One service's desk. Pure: it says what to do with a message, and does nothing."""

    def __init__(self, space: Space, service: str) -> None:
        self._space = space
        self._service = service
        self._front = service == DEFAULT_OWNER

    @property
    def subscriptions(self) -> list[str]:
        if self._front:
            return [COMMAND.filter(self._space)]
        return [COMMAND.name(self._space, verb=v) for v, c in VERBS.items() if c.owner in (self._service, "*")]

    def take(
        self, message: MessageArrived, verb: str, *, now: datetime, waited_s: float = 0.0
    ) -> Request | RefusedCommand | None:
        """Make a request of a message; None when it is another service's to answer."""
        kind = VERBS.get(verb)
        owner = kind.owner if kind else DEFAULT_OWNER
        if owner not in (self._service, "*"):
            return None
        if not message.payload:
            return None  # the trace of a retained message being cleared
        try:
            command = self._read(message, verb)
        except CommandFault as fault:
            return self._refuse(message, verb, fault, now) if self._front or owner == self._service else None
        return self._address(message, verb, command, now, waited_s)

    def _address(
        self, message: MessageArrived, verb: str, command: Command, now: datetime, waited_s: float
    ) -> Request | RefusedCommand | None:
        to = command.addressee()
        if to != self._service:
            if self._front and to not in SERVICES:
                fault = CommandFault("unknown_service", f"there is no service {to!r}; there are: {', '.join(SERVICES)}")
                return self._refuse(message, verb, fault, now)
            return None
        asked = now.timestamp() - waited_s
        expires = command.expires.timestamp() if command.expires else asked + COMMAND_EXPIRES_AFTER_S
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
            command=command,
        )

    def _read(self, message: MessageArrived, verb: str) -> Command:
        if message.retained:
            raise CommandFault(
                "retained",
                "a retained command is not carried out, for it would come again to everyone who connects;"
                " the retained copy was cleared: send it without -r",
            )
        if len(message.payload) > MAX_PAYLOAD:
            raise CommandFault(
                "malformed", f"the payload has {len(message.payload)} bytes; at most {MAX_PAYLOAD} are taken"
            )
        kind = VERBS.get(verb)
        if kind is None:
            raise CommandFault("unknown_verb", f"there is no verb {verb[:64]!r}; there are: {', '.join(sorted(VERBS))}")
        command = read_command(kind, message.payload)
        prefix = f"{self._space.root}/reply/"
        if command.reply_to is not None and not (
            command.reply_to.startswith(prefix) and is_id(command.reply_to.removeprefix(prefix))
        ):
            raise CommandFault("malformed", f"reply_to must be {prefix}<id>, ids are [a-z0-9_-], 1 to 64 long")
        return command

    def _refuse(self, message: MessageArrived, verb: str, fault: CommandFault, now: datetime) -> RefusedCommand:
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
        return RefusedCommand(topic, reply, clear=message.topic if message.retained else None)


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
        expires=command.expires.timestamp() if command.expires else asked + COMMAND_EXPIRES_AFTER_S,
        agent=command.concerns(),
    )


def read_command(kind: type[Command], payload: bytes) -> Command:
    """Read a command's JSON; a fault says what is wrong with it in one sentence."""
    try:
        return kind.model_validate_json(payload)
    except ValidationError as error:
        raise CommandFault("malformed", _what_is_wrong(kind, payload, error)) from error


def _what_is_wrong(kind: type[Command], payload: bytes, error: ValidationError) -> str:
    try:
        arguments = json.loads(payload.decode("utf-8"))
    except UnicodeDecodeError as fault:
        return f"the payload is not UTF-8 (byte {fault.start}); send JSON in UTF-8"
    except (ValueError, RecursionError) as fault:
        return f"the payload is not JSON: {str(fault)[:120]}; send an object such as {_example(kind)}"
    if not isinstance(arguments, dict):
        return f"the payload is JSON but not an object; send one such as {_example(kind)}"
    return f"{first_fault(error)}; {kind.verb} takes an object such as {_example(kind)}"


def _example(kind: type[Command]) -> str:
    """The object with no more than a person has to type."""
    needed = [name for name, field in kind.model_fields.items() if field.is_required() or name in kind.usual]
    return json.dumps({name: (kind.model_fields[name].examples or ["…"])[0] for name in needed}, ensure_ascii=False)


def _fingerprint(message: MessageArrived) -> str:
    """What a broker's second delivery of one message has in common with the first."""
    digest = hashlib.sha256(message.topic.encode() + b"\0" + message.payload).hexdigest()
    return f"{message.mid}:{digest}"


REDELIVERY_S = 3600.0


class MessageIntake:
    def __init__(
        self,
        journal: Journal,
        bus: Bus,
        space: Space,
        own: OwnPresence,
        owns: Sequence[Topic],
        state_topics: Callable[[], set[str]],
        read: dict[str, tuple[bytes, Command]],
        log: Log,
    ) -> None:
        """`read`: gets the commands that are now in the journal, and their payloads: nobody parses them again."""
        self._journal = journal
        self._bus = bus
        self._space = space
        self._own = own
        self._owns = owns
        self._state_topics = state_topics
        self._read = read
        self._log = log
        self._desk = CommandIntake(space, journal.service)
        self._away_s: float | None = None
        self._unfiled: list[Request] = []
        self._taken: dict[int, Request | RefusedCommand | None] = {}
        """What the desk made of each message in hand: one that must be sorted again keeps the id it was given."""
        self.contradicted = False
        self.rival = ""
        """Who else says to be this service of this host, if anybody does."""

    @property
    def subscriptions(self) -> list[str]:
        return [*self._desk.subscriptions, self._own.topic, *(row.filter(self._space) for row in self._owns)]

    def connected(self, *, kept: bool, away_s: float) -> None:
        """With a kept session, what comes before the echo of our greeting may have waited as long as we were away."""
        self._away_s = away_s if kept else None

    def sort(self, messages: Sequence[MessageArrived]) -> tuple[list[LocatedMessage], bool]:
        """The events among the messages, and whether there are new requests. Requests are durable when this returns."""
        events: list[LocatedMessage] = []
        ours: list[str] = []
        commanded = False
        self._unfiled.clear()  # what could not be filed is sorted again
        for message in messages:
            located = locate(message.topic, self._space.prefix)
            if located is None:
                continue
            host, row, ids = located
            if row is COMMAND and host == self._space.host:
                self._command(message, ids["verb"])
                commanded = commanded or not message.retained
            elif row is SERVICE_STATE and message.topic == self._own.topic:
                self._hear_of_ourselves(message)
            elif row in self._owns and host == self._space.host:
                if message.retained and message.payload:
                    ours.append(message.topic)
            else:
                events.append(LocatedMessage(host, row, message.topic, message.payload))
        self._clear_what_is_gone(ours)
        if commanded:
            # MQTT 3.1.1 hides on live delivery that a message is retained: asked for again, it shows, and is refused.
            for topic_filter in self._desk.subscriptions:
                self._bus.ask_for_retained(topic_filter)
        return events, self._file()

    def _command(self, message: MessageArrived, verb: str) -> None:
        known = id(message) in self._taken
        if not known:
            waited_s = self._away_s or 0.0
            self._taken[id(message)] = self._desk.take(message, verb, now=datetime.now(UTC), waited_s=waited_s)
        taken = self._taken[id(message)]
        if isinstance(taken, RefusedCommand):
            if known:
                return
            self._log.warning("refused a command", verb=taken.reply.verb, reason=taken.reply.said)
            self._bus.publish(taken.topic, taken.reply.model_dump_json().encode())
            if taken.clear is not None:
                self._bus.publish(taken.clear, b"", retain=True)
        elif taken is not None and not self._came_before(message, taken):
            self._unfiled.append(taken)

    def _came_before(self, message: MessageArrived, request: Request) -> bool:
        if request.delivery is None or not message.repeated:
            return False
        if any(request.delivery == other.delivery for other in self._unfiled):
            return True
        return self._journal.requests.redelivered(request.delivery, request.asked - REDELIVERY_S)

    def _file(self) -> bool:
        """Write the new requests down; those that were answered before are answered again."""
        if not self._unfiled:
            self._taken.clear()
            return False
        self._journal.requests.accept(self._unfiled)
        for request in self._unfiled:
            if request.command is not None:
                self._read.setdefault(request.id, (request.payload, request.command))
        for request in self._unfiled:
            answer = self._journal.requests.answer_to(request.id) or self._journal.requests.waits_for(request.id)
            if answer is not None:
                self._bus.publish(request.reply_to, answer)
        self._taken.clear()
        return True

    def _hear_of_ourselves(self, message: MessageArrived) -> None:
        state = self._own.read(message)
        if state is not None and not message.retained and self._own.is_another(message, state):
            self.rival = f"another fleet with this host id speaks as {state.service} (pid {state.pid} there)"
        if state is None:
            self.contradicted = True
        elif state.connection == self._own.connection and state.status is not Presence.OFFLINE:
            self._away_s = None
        elif state.status is Presence.OFFLINE and state.connection < self._own.connection:
            self.contradicted = True

    def _clear_what_is_gone(self, retained: Sequence[str]) -> None:
        """The broker remembers states of ours; those that are true no more are withdrawn."""
        for topic in set(retained) - self._state_topics() if retained else ():
            self._bus.publish(topic, b"", retain=True)
