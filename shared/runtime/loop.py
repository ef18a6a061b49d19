"""The one loop that every service runs in: it waits for messages or the poll interval, and gives the service turns.

Push and poll share this path: a turn takes what came, files commands, answers the broker, and lets the service look.
A turn that fails is told in the service's state and comes again, later each time; nothing that came is forgotten.
"""

import os
import signal
import time
from collections.abc import Callable

from shared.contract.services import ServiceEntry
from shared.contract.states import Presence
from shared.contract.topics import Space, rows
from shared.contract.writer import DocumentWriter
from shared.errors import Retryable
from shared.messaging.bus import Bus
from shared.messaging.cursors import EventReader, LocatedMessage
from shared.messaging.inbox import (
    Connected,
    Disconnected,
    Inbox,
    Item,
    LookRequest,
    MessageAcknowledged,
    MessageArrived,
    QuitSignal,
)
from shared.messaging.intake import MessageIntake
from shared.messaging.journal import Journal
from shared.messaging.outbox import OVERLAP_S, Outbox
from shared.messaging.presence import OwnPresence
from shared.runtime.effects import EffectRunner
from shared.runtime.poll_timer import Backoff, PollIntervals, PollTimer
from shared.runtime.turn_runner import JournalLost, Service, TurnRunner, handlers_of
from shared.system.log import Log

HEARTBEAT_S = 5.0
KEEPS_S = 7 * 24 * 3600.0
PRUNES_EVERY_S = 3600.0


class ServiceLoop:
    def __init__(
        self,
        service: Service,
        entry: ServiceEntry,
        journal: Journal,
        bus: Bus,
        inbox: Inbox,
        space: Space,
        polls: PollIntervals,
        log: Log,
    ) -> None:
        self._service, self._journal, self._bus, self._inbox, self._log = service, journal, bus, inbox, log
        writer = DocumentWriter(space, service.name, journal.epoch)
        self._own = OwnPresence(writer, bus)
        self._outbox = Outbox(journal, bus)
        follows = rows(entry.follows)
        owned = tuple(row for row in rows(entry.writes) if row.retain)
        reader = EventReader(journal, space, follows, log)
        self._effects = EffectRunner(handlers_of(service), lambda: inbox.put(LookRequest("effect")), log)
        self._runner = TurnRunner(service, journal, bus, self._outbox, reader, writer, self._effects, log)
        self._intake = MessageIntake(
            journal, bus, space, self._own, owned, self._runner.state_topics, self._runner.commands, log
        )
        bus.subscribe([*self._intake.subscriptions, *(row.filter(space) for row in (*follows, *rows(entry.hints)))])
        start = time.monotonic()
        self._rhythm = PollTimer(polls, start)
        self._next_heartbeat = self._next_tending = start
        self._next_prune = start + PRUNES_EVERY_S

        self._receiving = Backoff()
        self._unsorted: list[MessageArrived] = []
        self._events: list[LocatedMessage] = []
        self._ungreeted: Connected | None = None
        self._nudged: float | None = None
        """By when somebody wants us to look."""
        self._show_all = False
        self._lost_at: float | None = None
        self._quit = False
        self._coalesces_until = start
        self._troubles: dict[Backoff, str] = {}
        """What is wrong with either half of a turn, for people to read in our state."""
        self._steps = self._failures = 0

    @property
    def unpublished(self) -> int:
        """How many events the broker has not acknowledged yet."""
        return self._outbox.waiting

    # --- running ---

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Serve until SIGTERM or SIGINT, or until something is so, which is asked after each turn."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda got, _frame: self._inbox.put(QuitSignal(got)))
        self._log.info("started", pid=os.getpid(), epoch=self._journal.epoch)
        self._bus.start()
        try:
            while not self._quit and not (self._steps and until()):
                self.once()
        finally:
            self._leave()

    def once(self) -> None:
        """Wait for something to do, and do it."""
        time.sleep(max(0.0, self._coalesces_until - time.monotonic()))
        for item in self._inbox.take(self._deadline()):
            self._absorb(item)
        self._attempt(self._receive, self._receiving)
        self._attempt(self._look, self._rhythm.backoff)
        self._bus.leave_if_silent()
        self._beat(time.monotonic())

    def _attempt(self, do: Callable[[float], None], backoff: Backoff) -> None:
        """One half of a turn. Each waits after its own failures: a dead tmux keeps no command from being filed."""
        now = time.monotonic()
        if backoff.waits(now):
            return
        try:
            do(now)
        except JournalLost:
            raise
        except Retryable as error:
            self._failed(backoff, str(error))
            self._log.warning("could not finish a turn", reason=str(error))
        except Exception as error:  # noqa: BLE001 - a service outlives its bugs: it says so, backs off and looks again
            self._failed(backoff, f"{type(error).__name__}: {error}")
            self._log.failure("a turn failed", error)

    def _failed(self, backoff: Backoff, reason: str) -> None:
        self._failures += 1
        self._rhythm.overdue = True  # what was in hand is read again
        self._show_all = self._show_all or backoff is self._rhythm.backoff  # and what was to be shown is shown
        backoff.failed(time.monotonic())
        self._note_trouble(backoff, reason)

    def _deadline(self) -> float:
        now = time.monotonic()
        wakes = [self._rhythm.wakes_at(now), self._next_heartbeat, self._bus.falls_silent_at(), self._effects.due()]
        if self._nudged is not None:
            wakes.append(max(self._nudged, self._rhythm.backoff.until))
        due = self._outbox.due(now)
        if self._receiving.waits(now):
            wakes.append(self._receiving.until)
        elif due is not None:
            wakes.append(due)
        return min(wakes)

    def _note_trouble(self, half: Backoff, reason: str) -> None:
        if reason != self._troubles.get(half, ""):
            self._troubles[half] = reason
            self._next_heartbeat = time.monotonic()

    def _leave(self) -> None:
        self._own.say(Presence.OFFLINE, self._outbox.last, "stopped")
        self._bus.stop()
        self._effects.close()
        try:
            self._outbox.note(time.monotonic(), at_once=True)
        except Retryable as error:
            self._log.warning("could not note what was published", reason=str(error))
        self._journal.close()
        self._log.info("stopped")

    # --- one turn ---

    def _absorb(self, item: Item) -> None:
        """Take note of what came. Touches no disk, so that nothing that came can be lost to one."""
        match item:
            case MessageArrived():
                self._unsorted.append(item)
            case MessageAcknowledged():
                if self._bus.note_acknowledged(item):
                    self._outbox.acknowledged(item.mid)
            case Connected():
                self._ungreeted = item
            case Disconnected():
                self._ungreeted = None
                self._own.connection = 0
                self._outbox.disconnected()
                self._lost_at = self._lost_at or time.time()
            case LookRequest(within_s=within_s):
                due = time.monotonic() + within_s
                self._nudged = due if self._nudged is None else min(self._nudged, due)
            case QuitSignal():
                self._quit = True

    def _receive(self, now: float) -> None:
        """Greet a new connection, file commands, send what is due. The broker may forget what we have then."""
        if self._ungreeted is not None:
            self._greet(self._ungreeted)
            self._ungreeted = None
        events, requested = self._intake.sort(self._unsorted)
        self._events += events
        self._rhythm.overdue = self._rhythm.overdue or requested
        self._bus.acknowledge(self._unsorted)
        self._unsorted.clear()
        self._outbox.pump(now)
        self._outbox.note(now)
        self._effects.retry(now)
        self._tend_journal(now)
        self._receiving.succeeded()
        self._note_trouble(self._receiving, "")

    def _look(self, now: float) -> None:
        """Give the service a turn, if there is a reason to."""
        poll = self._rhythm.poll(now, broker_answers=self._bus.answers)
        nudged = self._nudged is not None and now >= self._nudged
        if not (self._events or nudged or self._rhythm.asked_for(now)):
            return
        events, self._events, self._nudged = self._events, [], None
        done = self._runner.run(events, catch_up=self._rhythm.overdue, poll=poll)
        self._steps += 1
        if self._show_all:
            self._show_states()
        self._rhythm.succeeded(more=done.more, look_again=done.look_again)
        self._note_trouble(self._rhythm.backoff, done.trouble)
        self._coalesces_until = time.monotonic() + done.coalesce_s

    def _greet(self, item: Connected) -> None:
        """A new connection: say online, tell everything retained again, send what was not sent, look once."""
        if not self._bus.note_connected(item):
            return
        now = time.time()
        away_s = now - self._journal.listened()
        lost_at = self._lost_at
        answers = self._journal.requests.answers_since(lost_at - OVERLAP_S) if lost_at is not None else []
        self._own.connection = item.connection
        self._intake.connected(kept=item.kept, away_s=away_s)
        self._outbox.connected(time.monotonic(), lost_at)
        self._heartbeat(time.monotonic())
        self._show_states()
        for topic, answer in answers:
            self._bus.publish(topic, answer)
        self._journal.note_listened(now)  # last: a greeting that failed must still know how long we were away
        self._log.info("connected", connection=item.connection, lost_for_s=now - lost_at if lost_at else None)
        self._lost_at = None
        self._rhythm.overdue = True

    def _show_states(self) -> None:
        for state in self._service.states():
            self._runner.show(state)
        self._show_all = False

    # --- the pulse ---

    def _tend_journal(self, now: float) -> None:
        """What the journal needs now and then."""
        if now >= self._next_tending:
            self._next_tending = now + HEARTBEAT_S
            if self._bus.answers and self._own.connection:
                self._journal.note_listened(time.time())
            if self._journal.requests.waiting():
                self._rhythm.overdue = True  # somebody could not reach the broker and put a command here
        if now >= self._next_prune:
            self._next_prune = now + PRUNES_EVERY_S
            self._journal.prune(time.time() - KEEPS_S)

    def _beat(self, now: float) -> None:
        if self._intake.contradicted or now >= self._next_heartbeat:
            self._heartbeat(now)

    def _heartbeat(self, now: float) -> None:
        """Say how we are. Touches no disk: a full one is what there may be to tell."""
        self._intake.contradicted = False
        self._next_heartbeat = now + HEARTBEAT_S
        if not self._own.connection:
            return
        trouble = "; ".join(filter(None, (self._intake.rival, *self._troubles.values())))
        self._own.say(
            Presence.DEGRADED if trouble else Presence.ONLINE,
            self._outbox.last,
            trouble,
            steps=self._steps,
            failures=self._failures,
            unpublished=self._outbox.waiting,
        )
