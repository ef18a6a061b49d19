"""One step of a service made durable: read, decide and act, commit, publish."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import ClassVar, Protocol

from shared.bus import Bus
from shared.commands import VERBS, Command, Replay, Reply
from shared.desk import Fault, read_command, request_of
from shared.errors import MusterError
from shared.events import Data, Event
from shared.following import AskReplay, Follower, Sifted
from shared.ids import new_id
from shared.inbox import Arrived
from shared.journal import Journal, Request
from shared.outbox import Outbox
from shared.telling import Teller
from shared.topics import COMMAND, Space, Topic, row_for
from shared.turn import Asked, Turn


class Service(Protocol):
    """What the loop needs of a service."""

    name: ClassVar[str]
    follows: ClassVar[tuple[Topic, ...]]
    """Rows whose events are handled, each once and in order."""
    hints: ClassVar[tuple[Topic, ...]]
    """Rows whose news are only a reason to look sooner."""
    owns: ClassVar[tuple[Topic, ...]]
    """Rows whose retained states are this service's: told again on every connect, and cleared when they are gone."""

    def step(self, turn: Turn) -> None:
        """Look at the world, decide, act. Called again from the start when it raises."""

    def states(self) -> Iterable[Data]:
        """The retained states as they are true now."""


class JournalLost(MusterError):
    """The journal's file was taken away below a running service; a fresh start makes a new one."""


@dataclass(frozen=True)
class Stepped:
    """What the loop must know of a step that went well."""

    more: bool
    look_again: float | None
    complaint: str
    gathers_s: float


class Stepper:
    def __init__(
        self, service: Service, journal: Journal, bus: Bus, outbox: Outbox, follower: Follower, teller: Teller
    ) -> None:
        self._service, self._journal, self._bus = service, journal, bus
        self._outbox, self._follower, self._teller = outbox, follower, teller
        self._memory = dict(journal.memory())
        self._in_hand: dict[str, Command] = {}
        """The open commands as they were read: some are long, and wait for long."""
        self._held: dict[str, tuple[str, datetime]] = {}
        """What was said of each command in hand, so that it is said once."""

    @property
    def _space(self) -> Space:
        return self._teller.space

    def step(self, events: Sequence[Arrived], *, catch_up: bool, poll: bool) -> Stepped:
        if self._journal.database.vanished():
            raise JournalLost(f"the journal {self._journal.database.path} was removed; starting anew")
        now = datetime.now(UTC)
        sifted = self._follower.sift(events, catch_up=catch_up, now=time.monotonic())
        turn = Turn(self._service.name, now, poll, sifted.heard, [], self._memory)
        self._take_requests(turn)
        self._service.step(turn)
        self._refuse_late(turn)
        turn.held = {key: held for key, held in turn.held.items() if key not in turn.answers and self._is_news(*held)}
        self._commit(turn, sifted)
        self._publish(turn, sifted.asks)
        return Stepped(sifted.more, _monotonic(turn.look_again), turn.complaint, turn.gathers_s)

    def _take_requests(self, turn: Turn) -> None:
        """Answer what every service answers alike; the rest is the service's own."""
        in_hand, self._in_hand = self._in_hand, {}
        for request in self._journal.requests.open():
            try:
                command = in_hand.get(request.id) or read_command(VERBS[request.verb], request.payload)
            except (Fault, KeyError) as fault:
                turn.refuse(request, f"the journal holds a command that can't be read: {fault}", code="malformed")
                continue
            self._in_hand[request.id] = command
            asked = Asked(request, command)
            if turn.now.timestamp() > request.expires:
                turn.late.append(asked)
            elif isinstance(asked.command, Replay):
                self._replay(turn, asked, asked.command)
            else:
                turn.asked.append(asked)

    def _refuse_late(self, turn: Turn) -> None:
        taken_up = {asked.request.id for asked in turn.asked}
        for asked in turn.late:
            if asked.request.id not in taken_up | turn.answers.keys():
                said = "it waited too long for its owner and was not carried out; send it again"
                turn.answer(asked, said, code="expired")

    def _replay(self, turn: Turn, asked: Asked, wanted: Replay) -> None:
        epoch, last = self._journal.epoch, self._journal.last_seq()
        if wanted.epoch not in (None, epoch):
            said = f"this journal is of epoch {epoch}; what came before it is gone"
            turn.answer(asked, said, code="refused", epoch=epoch)
            return
        self._outbox.rewind(wanted.after)
        turn.answer(asked, f"publishing {max(0, last - wanted.after)} events again", epoch=epoch, last=last)

    def _commit(self, turn: Turn, sifted: Sifted) -> None:
        if turn.told or sifted.moved or turn.answers or turn.held or turn.kept or turn.wanted:
            at = time.time()  # and not when the step began: what is sent again after a loss is found by this
            with self._journal.transaction() as transaction:
                transaction.append([partial(self._word, turn.now, *told) for told in turn.told], at)
                for (source, epoch), seq in sifted.moved.items():
                    transaction.move_cursor(source, epoch, seq)
                for request, reply in turn.answers.values():
                    transaction.answer(request.id, reply.model_dump_json().encode(), at)
                for request, reply, until in turn.held.values():
                    transaction.hold(request.id, reply.model_dump_json().encode(), until.timestamp())
                for key, value in turn.kept.items():
                    transaction.remember(key, value)
                for command in turn.wanted:
                    transaction.ask(request_of(self._space, command, at), command.addressee())
        self._follower.commit(sifted)
        self._memory.update(turn.kept)
        self._held.update({key: (reply.said, until) for key, (_, reply, until) in turn.held.items()})
        for key in turn.answers:
            self._held.pop(key, None)
        if turn.told:
            self._outbox.appended(self._journal.last_seq())

    def _is_news(self, request: Request, reply: Reply, until: datetime) -> bool:
        return self._held.get(request.id) != (reply.said, until)

    def _word(self, now: datetime, event: Event, cause: str | None, seq: int) -> tuple[str, bytes]:
        return self._teller.event(event, seq=seq, time=now, cause=cause)

    def _publish(self, turn: Turn, asks: Sequence[AskReplay]) -> None:
        self._outbox.pump(time.monotonic())
        for request, reply in turn.answers.values():
            self._bus.publish(request.reply_to, reply.model_dump_json().encode())
        for request, reply, _ in turn.held.values():
            self._bus.publish(request.reply_to, reply.model_dump_json().encode())
        for state in turn.shown:
            self.show(state)
        for row, ids in turn.withdrawn:
            self._bus.publish(row.name(self._space, **ids), b"", retain=True)
        for command in turn.wanted:  # it is in the journal: this only has its owner look there at once
            payload = command.model_dump_json(exclude_none=True).encode()
            self._bus.publish(COMMAND.name(self._space, verb=command.verb), payload)
        for ask in asks:
            replay = Replay(id=new_id(), service=ask.service, epoch=ask.epoch, after=ask.after, by=self._service.name)
            topic = COMMAND.name(Space(ask.host, self._space.prefix), verb=Replay.verb)
            self._bus.publish(topic, replay.model_dump_json(exclude_none=True).encode())

    def show(self, state: Data) -> None:
        """Publish a retained state."""
        topic, payload = self._teller.state(state, seq=self._outbox.last, time=datetime.now(UTC))
        self._bus.publish(topic, payload, retain=True)

    def state_topics(self) -> set[str]:
        return {row_for(state).name_of(self._space, state) for state in self._service.states()}


def _monotonic(when: datetime | None) -> float | None:
    return None if when is None else time.monotonic() + max(0.0, when.timestamp() - time.time())
