"""Sorts what the broker delivers: commands are checked and stored in the journal, events go to the cursors.

Any payload may arrive. A command that can't be read is refused with a reply that says why.
"""

import hashlib
import json
import re
import time
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
    """The reply to a message that did not become a request; `clear` is the topic of a retained one."""

    topic: str
    reply: Reply
    clear: str | None = None


class CommandFault(Exception):
    """What is wrong with a command, for its reply."""

    def __init__(self, code: str, said: str) -> None:
        super().__init__(said)
        self.code = code
        self.said = said


class CommandIntake:
    """Makes requests of the messages that are commands to one service. Pure.

    The default owner also refuses what belongs to no service, so that each command gets exactly one reply.
    """

    def __init__(self, space: Space, service: str, running: Sequence[str] = SERVICES) -> None:
        """`running`: the services that the fleet file does not switch off."""
        self._space = space
        self._service = service
        self._running = running
        self._is_default = service == DEFAULT_OWNER

    @property
    def subscriptions(self) -> list[str]:
        if self._is_default:
            return [COMMAND.filter(self._space)]
        return [COMMAND.name(self._space, verb=v) for v, c in VERBS.items() if c.owner in (self._service, "*")]

    def take(
        self, message: MessageArrived, verb: str, *, now: datetime, waited_s: float = 0.0
    ) -> Request | RefusedCommand | None:
        """The request or refusal for a message; None if another service must answer it."""
        kind = VERBS.get(verb)
        owner = kind.owner if kind else DEFAULT_OWNER
        is_off = self._is_default and owner in SERVICES and owner not in self._running
        if owner not in (self._service, "*") and not is_off:
            return None
        if not message.payload:
            return None  # somebody cleared a retained message
        try:
            command = self._read(message, verb)
            if is_off:
                raise _switched_off(owner)
        except CommandFault as fault:
            return self._refuse(message, verb, fault, now) if self._is_default or owner == self._service else None
        return self._accept(message, verb, command, now, waited_s)

    def _accept(
        self, message: MessageArrived, verb: str, command: Command, now: datetime, waited_s: float
    ) -> Request | RefusedCommand | None:
        to = command.addressee()
        if to != self._service:
            if self._is_default and to not in SERVICES:
                fault = CommandFault("unknown_service", f"there is no service {to!r}; there are: {', '.join(SERVICES)}")
                return self._refuse(message, verb, fault, now)
            if self._is_default and to not in self._running:
                return self._refuse(message, verb, _switched_off(to), now)
            return None
        asked = asked_at(command, now.timestamp(), waited_s)
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


def _switched_off(service: str) -> CommandFault:
    said = f"the fleet file switches the {service} off: set `{service}: {{enabled: true}}` there, then down and up"
    return CommandFault("unknown_service", said)


def asked_at(command: Command, now: float, waited_s: float) -> float:
    """When a command was asked for, in epoch seconds: as it says, but not before it can have been sent nor after now.

    So a sender whose clock is wrong is neither always too late nor always right.
    """
    earliest = now - waited_s
    return earliest if command.made is None else max(earliest, min(command.made.timestamp(), now))


def request_of(space: Space, command: Command, now: float) -> Request:
    """A command with an id, as a request for the journal of the host on which it was made."""
    if command.id is None:
        raise ValueError("a command that goes through the journal needs an id")
    asked = now if command.made is None else min(command.made.timestamp(), now)
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
    """Parse a command. Raises CommandFault with one sentence for people."""
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
    """The smallest object that the verb takes."""
    needed = [name for name, field in kind.model_fields.items() if field.is_required() or name in kind.usual]
    return json.dumps({name: (kind.model_fields[name].examples or ["…"])[0] for name in needed}, ensure_ascii=False)


def _fingerprint(message: MessageArrived) -> str:
    """Identifies a message without an id when the broker delivers it again."""
    digest = hashlib.sha256(message.topic.encode() + b"\0" + message.payload).hexdigest()
    return f"{message.mid}:{digest}"


REDELIVERED_WITHIN_S = 3600.0
SAME_TIME_S, CLOCK_STEP_S = 1.0, 1e-6


class MessageIntake:
    """Takes all messages of a service. If `sort` raises, call it again with the same messages."""

    def __init__(
        self,
        journal: Journal,
        bus: Bus,
        space: Space,
        own: OwnPresence,
        owns: Sequence[Topic],
        state_topics: Callable[[], set[str]],
        parsed: dict[str, tuple[bytes, Command]],
        log: Log,
        running: Sequence[str] = SERVICES,
    ) -> None:
        """`state_topics`: the topics of all current states. `parsed` gets the stored commands and payloads, by id."""
        self._journal = journal
        self._bus = bus
        self._space = space
        self._own = own
        self._owns = owns
        self._state_topics = state_topics
        self._parsed = parsed
        self._log = log
        self._commands = CommandIntake(space, journal.service, running)
        self._away_s: float | None = None
        self._last_sent = float("-inf")
        """When the newest command may have been sent at the earliest, in epoch seconds."""
        self._unstored: list[Request] = []
        self._taken: dict[int, Request | RefusedCommand | None] = {}
        """The outcome for each message until it is stored: a message that is taken again keeps its id."""
        self.presence_is_wrong = False
        """Whether the broker shows this service as offline, or something unreadable."""
        self.other_fleet = ""
        """A sentence about another fleet that uses the same host id; empty if there is none."""

    @property
    def subscriptions(self) -> list[str]:
        return [*self._commands.subscriptions, self._own.topic, *(row.filter(self._space) for row in self._owns)]

    def connected(self, *, kept: bool, away_s: float) -> None:
        """A new connection. With a kept session, commands before the echo of the own state may be `away_s` old."""
        self._away_s = away_s if kept else None

    def sort(self, messages: Sequence[MessageArrived]) -> tuple[list[LocatedMessage], bool]:
        """The events among the messages, and whether there are new requests. Those are in the journal then."""
        events: list[LocatedMessage] = []
        retained_states: list[str] = []
        commanded = False
        self._unstored.clear()
        for message in messages:
            located = locate(message.topic, self._space.prefix)
            if located is None:
                continue
            host, row, ids = located
            if row is COMMAND and host == self._space.host:
                self._command(message, ids["verb"])
                commanded = commanded or not message.retained
            elif row is SERVICE_STATE and message.topic == self._own.topic:
                self._read_own_state(message)
            elif row in self._owns and host == self._space.host:
                if message.retained and message.payload:
                    retained_states.append(message.topic)
            else:
                events.append(LocatedMessage(host, row, message.topic, message.payload))
        self._clear_outdated(retained_states)
        if commanded:
            # Live delivery does not show that a message is retained (MQTT 3.1.1). A new subscription brings the
            # retained copy, which is then refused and cleared.
            for topic_filter in self._commands.subscriptions:
                self._bus.ask_for_retained(topic_filter)
        return events, self._store()

    def _command(self, message: MessageArrived, verb: str) -> None:
        known = id(message) in self._taken
        if not known:
            now = datetime.now(UTC)
            waited_s = self._waited_s(message, now.timestamp())
            self._taken[id(message)] = self._commands.take(message, verb, now=now, waited_s=waited_s)
        taken = self._taken[id(message)]
        if isinstance(taken, RefusedCommand):
            if known:
                return
            self._log.warning("refused a command", verb=taken.reply.verb, reason=taken.reply.said)
            self._bus.publish(taken.topic, taken.reply.model_dump_json().encode())
            if taken.clear is not None:
                self._bus.publish(taken.clear, b"", retain=True)
        elif taken is not None and not self._is_redelivery(message, taken):
            self._unstored.append(taken)

    def _waited_s(self, message: MessageArrived, now: float) -> float:
        """For how long a command may have been under way. Those that may be equally old keep their order."""
        under_way_s = 0.0 if message.sent_after is None else time.monotonic() - message.sent_after
        sent = now - max(under_way_s, self._away_s or 0.0)
        if 0.0 <= self._last_sent - sent < SAME_TIME_S:
            sent = self._last_sent + CLOCK_STEP_S
        self._last_sent = sent
        return now - sent

    def _is_redelivery(self, message: MessageArrived, request: Request) -> bool:
        if request.delivery is None or not message.repeated:
            return False
        if any(request.delivery == other.delivery for other in self._unstored):
            return True
        return self._journal.requests.redelivered(request.delivery, request.asked - REDELIVERED_WITHIN_S)

    def _store(self) -> bool:
        """Store the new requests; a request that has a reply already gets it again."""
        if not self._unstored:
            self._taken.clear()
            return False
        self._journal.requests.accept(self._unstored)
        for request in self._unstored:
            if request.command is not None:
                self._parsed.setdefault(request.id, (request.payload, request.command))
            answer = self._journal.requests.answer_to(request.id) or self._journal.requests.waits_for(request.id)
            if answer is not None:
                self._bus.publish(request.reply_to, answer)
        self._taken.clear()
        return True

    def _read_own_state(self, message: MessageArrived) -> None:
        state = self._own.read(message)
        if state is not None and not message.retained and self._own.is_of_another_fleet(message, state):
            self.other_fleet = f"another fleet with this host id speaks as {state.service} (pid {state.pid} there)"
        if state is None:
            self.presence_is_wrong = True
        elif state.connection == self._own.connection and state.status is not Presence.OFFLINE:
            self._away_s = None  # the echo: everything queued has been delivered
        elif state.status is Presence.OFFLINE and state.connection < self._own.connection:
            self.presence_is_wrong = True

    def _clear_outdated(self, retained: Sequence[str]) -> None:
        """Clear retained states of this service that are no longer true."""
        for topic in set(retained) - self._state_topics() if retained else ():
            self._bus.publish(topic, b"", retain=True)
