"""Runs one turn of a service: reads new events and open commands, calls `step`, commits, publishes."""

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import ClassVar, Protocol

from pydantic import ValidationError

from shared.contract.commands import VERBS, Command, Replay, Reply
from shared.contract.envelope import Data, Event
from shared.contract.ids import new_id
from shared.contract.topics import COMMAND, Space, row_for
from shared.contract.writer import DocumentWriter
from shared.messaging.bus import Bus
from shared.messaging.cursors import EventReader, LocatedMessage, NewEvents, ReplayRequest
from shared.messaging.intake import CommandFault, read_command, request_of
from shared.messaging.journal import AnsweredRequest, Journal, JournalEntry, Request
from shared.messaging.outbox import Outbox
from shared.runtime.effects import EffectHandler, EffectRunner
from shared.runtime.memory import Memory, MemoryTable
from shared.runtime.moments import mover
from shared.runtime.turn import FaultLog, PendingCommand, Turn
from shared.system.clock import CLOCK_HISTORY, JUMPED_S, ClockHistory, ClockReading, read_clock
from shared.system.log import Log

NOTICE_SHOWN_FOR_S = 60.0
CLOCK = MemoryTable("clock", ClockHistory)
"""The jumps of the clock that the service's records have followed."""

DeferredReplies = Mapping[str, tuple[Request, Reply, datetime]]


def write_turn(
    journal: Journal,
    writer: DocumentWriter,
    turn: Turn,
    moved: Mapping[tuple[str, str], int],
    deferred: DeferredReplies,
    at: float,
) -> list[JournalEntry]:
    """Write the output of a turn and the cursors that it moved in one transaction; returns its events."""
    output = (turn.emitted, turn.replies, turn.outgoing, turn.effects, turn.effect_results)
    if not (any(output) or moved or deferred or turn.memory.changes):
        return []
    with journal.transaction() as transaction:
        entries = transaction.append([partial(_document, writer, turn.now, *each) for each in turn.emitted], at)
        for (source, epoch), seq in moved.items():
            transaction.move_cursor(source, epoch, seq)
        for request, reply in turn.replies.values():
            transaction.answer(request.id, reply.model_dump_json().encode(), at)
        for request, reply, until in deferred.values():
            transaction.defer(request.id, reply.model_dump_json().encode(), until.timestamp())
        for key, value in turn.memory.changes.items():
            transaction.remember(key, value)
        for command in turn.outgoing:
            transaction.add_request(request_of(writer.space, command, at), command.addressee())
        for result in turn.effect_results:  # first: this turn may want the same effect again
            transaction.remove_effect(result.effect)
        for effect in turn.effects:
            transaction.add_effect(effect)
    return entries


def _document(writer: DocumentWriter, now: datetime, event: Event, cause: str | None, seq: int) -> tuple[str, bytes]:
    return writer.event(event, seq=seq, time=now, cause=cause)


def read_reply(journal: Journal, owner: str, command_id: str) -> Reply | None:
    """The final reply of another service; None while there is none."""
    payload = journal.requests.answer_to(command_id, owner)
    if payload is None:
        return None
    try:
        return Reply.model_validate_json(payload)
    except ValidationError:
        said = "the answer can't be read"
        return Reply(id=command_id, verb="", ok=False, said=said, code="refused", by=owner, time=datetime.now(UTC))


def answered_after(journal: Journal, agent: str, asked: float) -> list[AnsweredRequest]:
    """Not what is dated later than now: the clock was set back since."""
    return journal.requests.answered_after(agent, asked, time.time())


class Service(Protocol):
    """A service as the runtime sees it. The manifest says what it writes and follows."""

    name: ClassVar[str]

    def step(self, turn: Turn) -> None:
        """Observe, decide, act. Called again, with the same input, when it raises."""

    def states(self) -> Iterable[Data]:
        """All retained states of this service as they are now."""


def handlers_of(service: Service) -> Mapping[str, EffectHandler]:
    """The effect handlers of a service, if it has an attribute `effects`."""
    found: Mapping[str, EffectHandler] = getattr(service, "effects", {})
    return found


@dataclass(frozen=True)
class TurnResult:
    """What the loop needs to know about a turn that went well."""

    more: bool
    look_again: float | None
    trouble: str
    coalesce_s: float


class TurnRunner:
    def __init__(
        self,
        service: Service,
        journal: Journal,
        bus: Bus,
        outbox: Outbox,
        reader: EventReader,
        writer: DocumentWriter,
        effects: EffectRunner,
        log: Log,
    ) -> None:
        self._service, self._journal, self._bus = service, journal, bus
        self._outbox, self._reader, self._writer, self._effects = outbox, reader, writer, effects
        self._memory = Memory(
            journal.memory(), lambda key, why: log.error("could not read a record in the journal", key=key, reason=why)
        )
        self._faults, self._log = FaultLog(log), log
        self.commands: dict[str, tuple[bytes, Command]] = {}
        """The open commands with their payloads, by id: each is parsed once, though it may wait for many turns."""
        self._deferred: dict[str, tuple[str, datetime]] = {}
        """The last deferral of each open command: a repeat is not published."""
        self._clock_seen: float | None = None
        """When the clock was last compared, in seconds since the machine's start."""
        self._jumped_s = 0.0
        """By how much the clock was set since the last turn that went well."""
        self._notices: list[tuple[float, str]] = []
        """What people are shown, and until when by the monotonic clock."""
        effects.start(journal.effects())

    @property
    def _space(self) -> Space:
        return self._writer.space

    def run(self, events: Sequence[LocatedMessage], *, catch_up: bool, poll: bool) -> TurnResult:
        """Run one turn. With `catch_up`, events are also read from the journal."""
        started, reading = time.monotonic(), self.follow_clock()
        new = self._reader.read(events, catch_up=catch_up, now=started)
        results = self._effects.take(time.monotonic())
        turn = Turn(
            self._service.name,
            datetime.fromtimestamp(reading.wall, UTC),
            poll,
            new.received,
            [],
            self._memory,
            effect_results=results,
            hints=self._reader.hints(events),
            broker_answers=self._bus.answers,
            clock=CLOCK_HISTORY.known,
            jumped_s=self._jumped_s,
            read_reply=partial(read_reply, self._journal),
            answered_after=partial(answered_after, self._journal),
            commit=partial(self._commit, new),
            faults=self._faults,
        )
        try:
            self._take_requests(turn)
            self._service.step(turn)
            self._refuse_late(turn)
            self._commit(new, turn)
        except BaseException:
            self._memory.restore({})
            self._effects.give_back(turn.effect_results)
            raise
        self._jumped_s = 0.0
        look_again = None if turn.look_again is None else started + (turn.look_again - turn.now).total_seconds()
        trouble = self._with_notices(turn)
        wakes = [each for each in (look_again, *(until for until, _ in self._notices)) if each is not None]
        return TurnResult(new.more, min(wakes, default=None), trouble, turn.coalesce_s)

    def _with_notices(self, turn: Turn) -> str:
        """What is wrong, else what people are to be shown for a while."""
        now = time.monotonic()
        self._notices = [each for each in self._notices if each[0] > now and each[1] not in turn.notices]
        self._notices += [(now + NOTICE_SHOWN_FOR_S, said) for said in turn.notices]
        return turn.trouble or "; ".join(said for _, said in self._notices)

    # --- the clock ---

    def follow_clock(self) -> ClockReading:
        """Compare the clock with the time that passed. If it was set, what is remembered moves with it."""
        now, known = read_clock(), self._memory.find(CLOCK)
        history = known.continued(now, self._clock_seen) if known is not None else ClockHistory.beginning(now)
        if history != known:
            by = self._jump(known, history, now.wall) if known is not None else 0.0
            self._move(history, by, now.wall)
            self._jumped_s += by
        CLOCK_HISTORY.follow(history)
        self._clock_seen = now.since_boot
        return now

    def _jump(self, known: ClockHistory, history: ClockHistory, now: float) -> float:
        """By how much the clock was set. After a restart of the machine, only that nothing can be later than now."""
        if history.boot == known.boot:
            return history.offset - known.offset
        later_s = self._memory.newest_moment() - now
        return -later_s if later_s >= JUMPED_S else 0.0

    @property
    def has_jumped(self) -> bool:
        """Whether a turn must see that the clock was set."""
        return self._jumped_s != 0.0

    def _move(self, history: ClockHistory, by: float, now: float) -> None:
        """Move the service's records and times in the journal, and note that this is done, in one transaction."""
        try:
            self._memory.put(CLOCK, history)
            if by:
                self._memory.move(mover(by))
            with self._journal.transaction() as transaction:
                for key, value in self._memory.changes.items():
                    transaction.remember(key, value)
                if by:
                    transaction.move_times(by, history.periods[-1].begins + history.offset, now)
        except BaseException:
            self._memory.restore({})
            raise
        self._memory.committed()
        if by:
            self._deferred.clear()  # their times moved too: what is deferred until a time by the clock is stored again
            self._log.warning("the clock was set", by_s=round(by, 1))

    def _take_requests(self, turn: Turn) -> None:
        """Give the open commands to the turn. Replays and unreadable commands are answered here, for every service."""
        known = dict(self.commands)
        self.commands.clear()  # filled again below: the intake adds to the same dictionary
        for request in self._journal.requests.open():
            try:
                payload, command = known.get(request.id, (b"", None))
                if command is None or payload != request.payload:  # a sender may reuse an id
                    command = read_command(VERBS[request.verb], request.payload)
            except (CommandFault, KeyError) as fault:
                turn.refuse(request, f"the journal holds a command that can't be read: {fault}", code="malformed")
                continue
            self.commands[request.id] = (request.payload, command)
            pending = PendingCommand(request, command)
            if turn.now.timestamp() > request.expires:
                turn.late_commands.append(pending)
            elif isinstance(command, Replay):
                self._replay(turn, pending, command)
            else:
                turn.commands.append(pending)

    def _refuse_late(self, turn: Turn) -> None:
        taken_up = {pending.request.id for pending in turn.commands}
        for pending in turn.late_commands:
            if pending.request.id not in taken_up | turn.replied | turn.replies.keys():
                said = "it waited too long for its owner and was not carried out; send it again"
                turn.reply(pending, said, code="expired")

    def _replay(self, turn: Turn, pending: PendingCommand, wanted: Replay) -> None:
        epoch, last = self._journal.epoch, self._journal.last_seq()
        if wanted.epoch not in (None, epoch):
            said = f"this journal is of epoch {epoch}; what came before it is gone"
            turn.reply(pending, said, code="refused", epoch=epoch)
            return
        self._outbox.rewind(wanted.after)
        turn.reply(pending, f"publishing {max(0, last - wanted.after)} events again", epoch=epoch, last=last)

    # --- commit and publish ---

    def _commit(self, new: NewEvents, turn: Turn) -> None:
        """Commit and publish the output so far, and empty it, so that the turn may continue."""
        news = {key: each for key, each in turn.deferred.items() if key not in turn.replies and self._is_news(*each)}
        # The time of the commit, not of the turn: after a lost connection, events are resent by this time.
        entries = write_turn(self._journal, self._writer, turn, new.moved, news, time.time())
        self._reader.commit(new)
        self._memory.committed()
        self._effects.settled(turn.effect_results)
        self._deferred.update({key: (reply.said, until) for key, (_, reply, until) in news.items()})
        for key in turn.replies:
            self._deferred.pop(key, None)
        self._outbox.appended(entries)
        self._effects.start(turn.effects)  # before anything that may raise: they are committed
        self._publish(turn, news.values(), new.replays)
        new.replays.clear()
        for output in (turn.emitted, turn.states, turn.cleared, turn.outgoing, turn.effects, turn.effect_results):
            output.clear()
        turn.replied |= turn.replies.keys()
        turn.replies.clear()
        turn.deferred.clear()

    def _is_news(self, request: Request, reply: Reply, until: datetime) -> bool:
        return self._deferred.get(request.id) != (reply.said, until)

    def _publish(
        self, turn: Turn, deferred: Iterable[tuple[Request, Reply, datetime]], replays: Sequence[ReplayRequest]
    ) -> None:
        self._outbox.pump(time.monotonic())
        for request, reply in (*turn.replies.values(), *((request, reply) for request, reply, _ in deferred)):
            self._bus.publish(request.reply_to, reply.model_dump_json().encode())
        for state in turn.states:
            self.show(state)
        for row, ids in turn.cleared:
            self._bus.publish(row.name(self._space, **ids), b"", retain=True)
        for command in turn.outgoing:  # it is in the journal already; this makes its owner take it at once
            payload = command.model_dump_json(exclude_none=True).encode()
            self._bus.publish(COMMAND.name(self._space, verb=command.verb), payload)
        for ask in replays:
            replay = Replay(id=new_id(), service=ask.service, epoch=ask.epoch, after=ask.after, by=self._service.name)
            topic = COMMAND.name(Space(ask.host, self._space.prefix), verb=Replay.verb)
            self._bus.publish(topic, replay.model_dump_json(exclude_none=True).encode())

    def show(self, state: Data) -> None:
        """Publish a retained state."""
        topic, payload = self._writer.state(state, seq=self._outbox.last, time=datetime.now(UTC))
        self._bus.publish(topic, payload, retain=True)

    def state_topics(self) -> set[str]:
        """The topics of all retained states of this service."""
        return {row_for(state).name_of(self._space, state) for state in self._service.states()}
