"""The loop of every service: it waits for an item in the inbox or for a timer, and gives the service turns.

Push and poll share this path. Each round has two halves with their own backoff: `_receive` stores commands,
acknowledges messages and publishes events; `_look` runs a turn. A half that fails shows in the service's state as
`degraded`, and its input is kept for the next try.
"""

import os
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from shared.contract.services import SERVICES, ServiceEntry
from shared.contract.states import Presence
from shared.contract.topics import Space, rows
from shared.contract.writer import DocumentWriter
from shared.errors import MusterError, Retryable
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
from shared.messaging.journal import Journal, JournalLost, why_not_writable
from shared.messaging.outbox import RESENT_BEFORE_LOSS_S, Outbox
from shared.messaging.presence import OwnPresence
from shared.messaging.silence import PROBED_EVERY_S
from shared.runtime.effects import EffectRunner
from shared.runtime.poll_timer import Backoff, PollIntervals, PollTimer
from shared.runtime.turn_runner import Service, TurnRunner, handlers_of
from shared.system.log import Log

HEARTBEAT_S = 5.0
EVENTS_KEPT_S = 7 * 24 * 3600.0
PRUNED_EVERY_S = 3600.0


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
        running: Sequence[str] = SERVICES,
    ) -> None:
        """`running`: the services that the fleet file does not switch off."""
        self._service, self._journal, self._bus, self._inbox, self._log = service, journal, bus, inbox, log
        writer = DocumentWriter(space, service.name, journal.epoch)
        self._presence = OwnPresence(writer, bus)
        self._outbox = Outbox(journal, bus)
        follows = rows(entry.follows)
        owned = tuple(row for row in rows(entry.writes) if row.retain)
        reader = EventReader(journal, space, follows, log)
        self._effects = EffectRunner(handlers_of(service), lambda: inbox.put(LookRequest("effect")), log)
        self._runner = TurnRunner(service, journal, bus, self._outbox, reader, writer, self._effects, log)
        self._intake = MessageIntake(
            journal, bus, space, self._presence, owned, self._runner.state_topics, self._runner.commands, log, running
        )
        bus.subscribe([*self._intake.subscriptions, *(row.filter(space) for row in (*follows, *rows(entry.hints)))])
        start = time.monotonic()
        self._timer = PollTimer(polls, start)
        self._next_heartbeat = self._next_maintenance = start
        self._next_prune = start + PRUNED_EVERY_S

        self._receiving = Backoff()
        self._messages: list[MessageArrived] = []
        self._events: list[LocatedMessage] = []
        self._connected: Connected | None = None
        self._look_by: float | None = None
        """The earliest time at which a turn was asked for."""
        self._show_all = False
        self._lost_at: float | None = None
        """When the connection was lost, by the monotonic clock."""
        self._replies_since: float | None = None
        """Replies since this time are published again, when subscribers had time to return."""
        self._silent_since: float | None = None
        """When a silence began that has ended, until its states and events are published again."""
        self._quit = False
        self._coalesces_until = start
        self._troubles: dict[Backoff, str] = {}
        """Why each half of a round failed, for the service's state."""
        self._steps = self._failures = 0

    @property
    def unpublished(self) -> int:
        """How many events the broker has not acknowledged yet."""
        return self._outbox.waiting

    # --- running ---

    def run(self, until: Callable[[], bool] = lambda: False) -> None:
        """Serve until SIGTERM or SIGINT, or until `until` is true after a round."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda got, _frame: self._inbox.put(QuitSignal(got)))
        self._log.info("started", pid=os.getpid(), epoch=self._journal.epoch)
        self._bus.start()
        try:
            while not self._quit and not (self._steps and until()):
                self.once()
        finally:
            self._shut_down()

    def once(self) -> None:
        """One round: wait for something to do, and do it."""
        time.sleep(max(0.0, self._coalesces_until - time.monotonic()))
        for item in self._inbox.take(self._deadline()):
            self._note(item)
        self._bus.leave_if_silent()  # now, and not after a turn: what came while that lasted must be noted first
        self._attempt(self._receive, self._receiving)
        self._attempt(self._look, self._timer.backoff)
        now = time.monotonic()
        if self._intake.presence_is_wrong or now >= self._next_heartbeat:
            self._heartbeat(now)

    def _attempt(self, do: Callable[[float], None], backoff: Backoff) -> None:
        """One half of a round. Each waits after its own failures: without tmux, commands are still stored."""
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
        except Exception as error:  # noqa: BLE001 - a service survives its bugs: it reports them and tries again
            self._failed(backoff, f"{type(error).__name__}: {error}")
            self._log.failure("a turn failed", error)

    def _failed(self, backoff: Backoff, reason: str) -> None:
        self._failures += 1
        self._timer.overdue = True  # the next turn reads the events again, from the journal
        if backoff is self._timer.backoff:
            self._timer.poll_again()  # the failed turn's hints are lost, and its poll may be
            self._show_all = True  # its states were not published
        backoff.failed(time.monotonic())
        self._note_trouble(backoff, reason)

    def _deadline(self) -> float:
        now = time.monotonic()
        wakes = [self._timer.wakes_at(now), self._next_heartbeat, self._bus.falls_silent_at(), self._effects.due()]
        if self._look_by is not None:
            wakes.append(max(self._look_by, self._timer.backoff.until))
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

    def _shut_down(self) -> None:
        listened = time.time() - self._bus.silence_s() if self._bus.answers else None
        self._presence.publish(Presence.OFFLINE, self._outbox.last, "stopped")
        self._bus.stop()
        self._effects.close()
        try:
            self._outbox.save_progress(time.monotonic(), at_once=True)
            if listened is not None:  # what the broker keeps from now on was sent later than all that was answered
                self._journal.note_listened(listened)
        except MusterError as error:
            self._log.warning("could not note what was published", reason=str(error))
        self._journal.close()
        self._log.info("stopped")

    # --- one round ---

    def _note(self, item: Item) -> None:
        """Take one item of the inbox. Uses no disk, so that no disk error can lose it."""
        match item:
            case MessageArrived():
                self._messages.append(replace(item, sent_after=self._bus.under_way_since(item)))
            case MessageAcknowledged():
                if (sent := self._bus.note_acknowledged(item)) is not None:
                    self._outbox.acknowledged(item.mid, sent, item.at)
            case Connected():
                self._connected = item
            case Disconnected():
                self._connected = None
                self._presence.connection = 0
                since = self._bus.note_disconnected(item)
                self._outbox.disconnected(since)
                self._lost_at = self._lost_at or since
            case LookRequest(within_s=within_s):
                due = time.monotonic() + within_s
                self._look_by = due if self._look_by is None else min(self._look_by, due)
            case QuitSignal():
                self._quit = True

    def _receive(self, now: float) -> None:
        """Start a new connection, store commands, acknowledge messages, publish what is due."""
        self._runner.follow_clock()
        if self._connected is not None:
            self._start_connection(self._connected)
            self._connected = None
        if self._silent_since is None:
            self._silent_since = self._bus.ended_silence()
        if self._silent_since is not None:
            self._resume_after_silence(now, self._silent_since)
            self._silent_since = None
        events, requested = self._intake.sort(self._messages)
        self._events += events
        self._timer.overdue = self._timer.overdue or requested
        self._bus.acknowledge(self._messages)
        self._messages.clear()
        self._outbox.pump(now)
        if self._replies_since is not None and self._outbox.flows:
            self._repeat_replies(self._replies_since)
        self._outbox.save_progress(now)
        self._effects.retry(now)
        self._maintain_journal(now)
        self._receiving.succeeded()
        self._note_trouble(self._receiving, "")

    def _look(self, now: float) -> None:
        """Run a turn, if there is a reason to."""
        if self._runner.has_jumped:
            self._timer.poll_again()
        poll = self._timer.poll(now, broker_answers=self._bus.answers)
        requested = self._look_by is not None and now >= self._look_by
        if not (self._events or requested or self._timer.is_due(now)):
            return
        events, self._events, self._look_by = self._events, [], None
        result = self._runner.run(events, catch_up=self._timer.overdue, poll=poll)
        self._steps += 1
        if self._show_all:
            self._show_states()
        self._timer.succeeded(more=result.more, look_again=result.look_again)
        self._note_trouble(self._timer.backoff, result.trouble)
        self._coalesces_until = time.monotonic() + result.coalesce_s

    def _start_connection(self, item: Connected) -> None:
        """Publish this service's presence and all its states, resume the outbox, ask for a turn."""
        if not self._bus.note_connected(item):
            return
        now = time.time()
        listened = self._journal.listened()
        lost_at = None if self._lost_at is None else now - (time.monotonic() - self._lost_at)
        self._presence.connection = item.connection
        self._intake.connected(kept=item.kept, away_s=now - listened)
        first = not listened and not item.kept
        self._outbox.connected(time.monotonic(), lost_at, listened, first=first)
        self._heartbeat(time.monotonic())
        self._show_states()
        self._replies_since = lost_at if self._replies_since is None else self._replies_since
        self._journal.note_listened(now)  # last: if something above fails, the next try needs the old value
        self._log.info("connected", connection=item.connection, lost_for_s=now - lost_at if lost_at else None)
        self._lost_at = None
        self._timer.overdue = True

    def _resume_after_silence(self, now: float, began: float) -> None:
        """Do what follows a lost connection: the broker may have come back without its subscribers, and then frozen."""
        since = time.time() - (now - began)
        after = self._outbox.acknowledged_before(began - RESENT_BEFORE_LOSS_S)
        self._outbox.send_again(now, since, after)
        self._replies_since = since if self._replies_since is None else min(since, self._replies_since)
        self._heartbeat(now)
        self._show_states()
        self._log.warning("the broker answers again after a silence", silent_s=round(now - began, 1))

    def _repeat_replies(self, since: float) -> None:
        for topic, answer in self._journal.requests.answers_since(since - RESENT_BEFORE_LOSS_S):
            if self._bus.publish(topic, answer) is None:
                return  # the connection was lost meanwhile
        self._replies_since = None

    def _show_states(self) -> None:
        for state in self._service.states():
            self._runner.show(state)
        self._show_all = False

    # --- maintenance and heartbeat ---

    def _maintain_journal(self, now: float) -> None:
        """Note that a broker was there, look for commands that others stored, prune."""
        if now >= self._next_maintenance:
            self._next_maintenance = now + HEARTBEAT_S
            if self._bus.answers and self._presence.connection:
                self._journal.note_listened(time.time())
            if self._journal.requests.waiting():
                self._timer.overdue = True  # a sender without a broker stored a command
        if now >= self._next_prune:
            self._next_prune = now + PRUNED_EVERY_S
            self._journal.prune(time.time() - EVENTS_KEPT_S)

    def _heartbeat(self, now: float) -> None:
        """Publish this service's state. Writes to no disk: a full or read-only one may be the news."""
        self._intake.presence_is_wrong = False
        self._next_heartbeat = now + (PROBED_EVERY_S if self._outbox.waits_for_subscribers else HEARTBEAT_S)
        if not self._presence.connection:
            return
        troubles = dict.fromkeys((self._intake.other_fleet, *self._troubles.values()))
        trouble = "; ".join(filter(None, troubles))
        unwritable = why_not_writable(self._journal.database.path)
        if unwritable not in trouble:  # before anything had to be written
            trouble = "; ".join(filter(None, (unwritable, trouble)))
        self._presence.publish(
            Presence.DEGRADED if trouble else Presence.ONLINE,
            self._outbox.last,
            trouble,
            steps=self._steps,
            failures=self._failures,
            unpublished=self._outbox.waiting,
        )
