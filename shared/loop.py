"""The one loop that every service runs in: it waits for messages or the poll interval, and gives the service turns.

Push and poll share this path. A turn reads, lets the service decide and act, commits to the journal, then publishes.
The safety poll has its own timer, which no push resets: slow while a broker answers, fast while none does.
"""

import os
import signal
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import ClassVar, Protocol

from shared.bus import Bus
from shared.commands import VERBS, Replay
from shared.desk import Fault, read_command
from shared.errors import MusterError, Retryable
from shared.events import Data, Event
from shared.following import AskReplay, Follower, Sifted
from shared.ids import new_id
from shared.inbox import Acknowledged, Arrived, Connected, Disconnected, Inbox, Item, Nudge, Quit
from shared.journal import Journal
from shared.log import Log
from shared.outbox import OVERLAP_S, Outbox
from shared.presence import OwnState
from shared.reception import Reception
from shared.states import Presence
from shared.telling import Teller
from shared.topics import COMMAND, Space, Topic, row_for
from shared.turn import Asked, Turn

HEARTBEAT_S = 5.0
FIRST_BACKOFF_S, LONGEST_BACKOFF_S = 0.5, 30.0
KEEPS_S = 7 * 24 * 3600.0
PRUNES_EVERY_S = 3600.0


class Service(Protocol):
    """What the loop needs of a service."""

    name: ClassVar[str]
    follows: ClassVar[tuple[Topic, ...]]
    hints: ClassVar[tuple[Topic, ...]]
    """Rows whose news are only a reason to look sooner."""
    owns: ClassVar[tuple[Topic, ...]]
    """Rows whose retained states are this service's: told again on every connect, and cleared when they are gone."""

    def step(self, turn: Turn) -> None:
        """Look at the world, decide, act. Called again from the start when it raises."""

    def states(self) -> Iterable[Data]:
        """The retained states as they are true now."""


@dataclass(frozen=True)
class Polls:
    """How often to look when nothing is pushed."""

    connected_s: float = 30.0
    alone_s: float = 1.0


class JournalLost(MusterError):
    """The journal's file was taken away below a running service; a fresh start makes a new one."""


class Loop:
    def __init__(
        self, service: Service, journal: Journal, bus: Bus, inbox: Inbox, space: Space, polls: Polls, log: Log
    ) -> None:
        self._service, self._journal, self._bus, self._inbox = service, journal, bus, inbox
        self._space, self._polls, self._log = space, polls, log
        self._teller = Teller(space, service.name, journal.epoch)
        self._own = OwnState(self._teller, bus)
        self._follower = Follower(journal, space, service.follows, log)
        self._outbox = Outbox(journal, bus)
        self._reception = Reception(journal, bus, space, self._own, service.owns, self._state_topics, log)
        self._memory = dict(journal.memory())
        bus.subscribe(
            [*self._reception.subscriptions, *(row.filter(space) for row in (*service.follows, *service.hints))]
        )

        self._unacknowledged: list[Arrived] = []
        self._ungreeted: Connected | None = None
        self._lost_at: float | None = None
        self._quit = False
        self._catch_up = True
        self._trouble = ""
        self._backoff = FIRST_BACKOFF_S
        self._steps = self._failures = 0

        start = time.monotonic()
        self._next_poll = self._next_heartbeat = self._not_before = start
        self._next_prune = start + PRUNES_EVERY_S
        self._look_again: float | None = None

    # --- running ---

    def run(self) -> None:
        """Serve until SIGTERM or SIGINT."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda got, _frame: self._inbox.put(Quit(got)))
        self._log.info("started", pid=os.getpid(), epoch=self._journal.epoch)
        self._bus.start()
        try:
            while not self._quit:
                self.once()
        finally:
            self._leave()

    def once(self) -> None:
        """Wait for something to do, and do it."""
        items = self._inbox.take(self._deadline())
        try:
            self._turn(items)
        except JournalLost:
            raise
        except Retryable as error:
            self._log.warning("could not finish a step", reason=str(error), again_in_s=round(self._backoff, 1))
            self._failed(str(error))
        except Exception as error:  # noqa: BLE001 - a service outlives its bugs: it says so, backs off and looks again
            self._log.failure("a step failed", error, again_in_s=round(self._backoff, 1))
            self._failed(f"{type(error).__name__}: {error}")

    @property
    def unpublished(self) -> int:
        """How many events the broker has not acknowledged yet."""
        return self._outbox.waiting

    def _deadline(self) -> float:
        now = time.monotonic()
        look = min(self._next_poll, now if self._catch_up else self._next_poll, self._look_again or self._next_poll)
        due = self._outbox.due(now)
        wakes = [max(look, self._not_before), self._next_heartbeat, self._bus.falls_silent_at()]
        return min(*wakes, due) if due is not None else min(wakes)

    def _failed(self, reason: str) -> None:
        self._failures += 1
        self._not_before = time.monotonic() + self._backoff
        self._backoff = min(self._backoff * 2, LONGEST_BACKOFF_S)
        self._catch_up = True
        self._say_trouble(reason)

    def _say_trouble(self, reason: str) -> None:
        if reason != self._trouble:
            self._trouble = reason
            self._next_heartbeat = time.monotonic()

    def _leave(self) -> None:
        self._own.say(Presence.OFFLINE, 0, "stopped")
        self._bus.stop()
        try:
            self._outbox.note(time.monotonic(), at_once=True)
        except Retryable as error:
            self._log.warning("could not note what was published", reason=str(error))
        self._journal.close()
        self._log.info("stopped")

    # --- one turn ---

    def _turn(self, items: Sequence[Item]) -> None:
        for item in items:
            self._absorb(item)
        if self._ungreeted is not None:
            self._greet(self._ungreeted)
            self._ungreeted = None
        arrived = [item for item in items if isinstance(item, Arrived)]
        self._unacknowledged += arrived
        events, requested = self._reception.sort(arrived)
        now = time.monotonic()
        poll = self._poll_is_due(now)
        nudged = any(isinstance(item, Nudge) for item in items)
        again = self._look_again is not None and now >= self._look_again
        if events or nudged or again or requested or self._catch_up:
            if now >= self._not_before:
                self._step(events, poll=poll)
            else:
                self._catch_up = True  # what is passed over while backing off is in the journal
        self._bus.acknowledge(self._unacknowledged)
        self._unacknowledged.clear()
        self._outbox.pump(now)
        self._outbox.note(now)
        self._beat(now)

    def _absorb(self, item: Item) -> None:
        match item:
            case Acknowledged():
                if self._bus.note_acknowledged(item):
                    self._outbox.acknowledged(item.mid)
            case Connected():
                self._ungreeted = item
            case Disconnected():
                self._ungreeted = None
                self._own.connection = 0
                self._outbox.disconnected()
                self._lost_at = self._lost_at or time.time()
            case Quit():
                self._quit = True
            case _:
                pass

    def _greet(self, item: Connected) -> None:
        """A new connection: say online, tell everything retained again, send what was not sent, look once."""
        if not self._bus.note_connected(item):
            return
        now = time.time()
        self._own.connection = item.connection
        self._reception.connected(kept=item.kept, away_s=now - self._journal.listened())
        self._journal.note_listened(now)
        self._outbox.connected(time.monotonic(), self._lost_at)
        self._heartbeat(time.monotonic())
        for state in self._service.states():
            self._show(state)
        if self._lost_at is not None:
            for topic, answer in self._journal.requests.answers_since(self._lost_at - OVERLAP_S):
                self._bus.publish(topic, answer)
        self._log.info("connected", connection=item.connection, after_s=now - self._lost_at if self._lost_at else None)
        self._lost_at = None
        self._catch_up = True

    def _poll_is_due(self, now: float) -> bool:
        self._bus.leave_if_silent()
        interval = self._polls.connected_s if self._bus.answers else self._polls.alone_s
        due = now >= self._next_poll
        self._next_poll = now + interval if due else min(self._next_poll, now + interval)
        self._catch_up = self._catch_up or due
        return due

    def _step(self, events: Sequence[Arrived], *, poll: bool) -> None:
        if self._journal.database.vanished():
            raise JournalLost(f"the journal {self._journal.database.path} was removed; starting anew")
        now = datetime.now(UTC)
        sifted = self._follower.sift(events, catch_up=self._catch_up, now=time.monotonic())
        turn = Turn(self._service.name, now, poll, sifted.heard, [], self._memory)
        self._take_requests(turn)
        self._service.step(turn)
        self._commit(turn, sifted)
        self._steps += 1
        self._backoff, self._catch_up = FIRST_BACKOFF_S, sifted.more
        self._look_again = self._monotonic(turn.look_again)
        self._say_trouble(turn.complaint)
        self._publish(turn, sifted.asks)

    @staticmethod
    def _monotonic(when: datetime | None) -> float | None:
        return None if when is None else time.monotonic() + max(0.0, when.timestamp() - time.time())

    def _take_requests(self, turn: Turn) -> None:
        """Answer what every service answers alike; the rest is the service's own."""
        for request in self._journal.requests.open():
            try:
                asked = Asked(request, read_command(VERBS[request.verb], request.payload))
            except (Fault, KeyError) as fault:
                turn.refuse(request, f"the journal holds a command that can't be read: {fault}", code="malformed")
                continue
            if turn.now.timestamp() > request.expires:
                turn.answer(
                    asked,
                    "it waited too long for its owner and was not carried out; send it again",
                    code="expired",
                )
            elif isinstance(asked.command, Replay):
                self._replay(turn, asked, asked.command)
            else:
                turn.asked.append(asked)

    def _replay(self, turn: Turn, asked: Asked, wanted: Replay) -> None:
        if wanted.epoch not in (None, self._journal.epoch):
            said = f"this journal is of epoch {self._journal.epoch}; what came before it is gone"
            turn.answer(asked, said, code="refused", epoch=self._journal.epoch)
            return
        last = self._journal.last_seq()
        self._outbox.rewind(wanted.after)
        turn.answer(
            asked,
            f"publishing {max(0, last - wanted.after)} events again",
            epoch=self._journal.epoch,
            last=last,
        )

    def _commit(self, turn: Turn, sifted: Sifted) -> None:
        if turn.told or sifted.moved or turn.answers or turn.kept:
            at = turn.now.timestamp()
            with self._journal.transaction() as transaction:
                transaction.append([partial(self._word, turn.now, *told) for told in turn.told], at)
                for (source, epoch), seq in sifted.moved.items():
                    transaction.move_cursor(source, epoch, seq)
                for request, reply in turn.answers.values():
                    transaction.answer(request.id, reply.model_dump_json().encode(), at)
                for key, value in turn.kept.items():
                    transaction.remember(key, value)
        self._follower.commit(sifted)
        self._memory.update(turn.kept)
        if turn.told:
            self._outbox.appended(self._journal.last_seq())

    def _word(self, now: datetime, event: Event, cause: str | None, seq: int) -> tuple[str, bytes]:
        return self._teller.event(event, seq=seq, time=now, cause=cause)

    def _publish(self, turn: Turn, asks: Sequence[AskReplay]) -> None:
        self._outbox.pump(time.monotonic())
        for request, reply in turn.answers.values():
            self._bus.publish(request.reply_to, reply.model_dump_json().encode())
        for state in turn.shown:
            self._show(state)
        for topic in turn.withdrawn:
            self._bus.publish(topic, b"", retain=True)
        for ask in asks:
            replay = Replay(id=new_id(), service=ask.service, epoch=ask.epoch, after=ask.after, by=self._service.name)
            topic = COMMAND.name(Space(ask.host, self._space.prefix), verb=Replay.verb)
            self._bus.publish(topic, replay.model_dump_json(exclude_none=True).encode())

    def _show(self, state: Data) -> None:
        topic, payload = self._teller.state(state, seq=self._journal.last_seq(), time=datetime.now(UTC))
        self._bus.publish(topic, payload, retain=True)

    def _state_topics(self) -> set[str]:
        return {row_for(state).name_of(self._space, state) for state in self._service.states()}

    # --- the pulse ---

    def _beat(self, now: float) -> None:
        if self._reception.contradicted or now >= self._next_heartbeat:
            self._heartbeat(now)
        if now >= self._next_prune:
            self._next_prune = now + PRUNES_EVERY_S
            self._journal.prune(time.time() - KEEPS_S)

    def _heartbeat(self, now: float) -> None:
        self._reception.contradicted = False
        self._next_heartbeat = now + HEARTBEAT_S
        if self._bus.answers and self._ungreeted is None and self._own.connection:
            self._journal.note_listened(time.time())
        if self._journal.requests.waiting():
            self._catch_up = True  # somebody could not reach the broker and put a command here
        self._own.say(
            Presence.DEGRADED if self._trouble else Presence.ONLINE,
            self._journal.last_seq(),
            self._trouble,
            steps=self._steps,
            failures=self._failures,
            unpublished=self._outbox.waiting,
        )
