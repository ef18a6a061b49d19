"""Publishes a service's own events from its journal: in order, a window at a time, until the broker has acknowledged.

A killed broker may have lost what it had acknowledged, and its subscribers take a moment to reconnect. So after a lost
connection the outbox waits for them, and starts with events from a little before the loss. A silence of the broker that
ended is treated in the same way.
"""

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Protocol

from shared.messaging.journal import Journal, JournalEntry
from shared.messaging.silence import DROPPED_AFTER_SILENCE_S, LONGEST_PAUSE_S, SubscriberWait

WINDOW = 1_000
"""How many events may be unacknowledged."""
RESENT_BEFORE_LOSS_S = 5.0
"""How long a broker may keep what it acknowledged in its memory only; ours saves more often."""
MARKED_EVERY_S = 0.25
MARKS_KEPT_S = LONGEST_PAUSE_S + DROPPED_AFTER_SILENCE_S + 2 * RESENT_BEFORE_LOSS_S
"""A silence may have ended so long ago before anything is done about it."""
PROGRESS_SAVED_EVERY_S = 1.0


class Publisher(Protocol):
    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> int | None: ...


class Outbox:
    def __init__(self, journal: Journal, bus: Publisher) -> None:
        self._journal = journal
        self._bus = bus
        self._next = journal.published() + 1
        self.last = journal.last_seq()
        """The number of the newest event."""
        self._inherited = self.last >= self._next
        """Whether an earlier process left unpublished events: there may have been no broker then."""
        self._fresh: deque[JournalEntry] = deque(maxlen=WINDOW)
        """The newest events, which need not be read from the journal."""
        self._in_flight: dict[int, int] = {}
        """Message number to event number, in the order of events."""
        self._saved, self._saved_at = self._acknowledged, 0.0
        self._open = False
        self._wait: SubscriberWait | None = None
        self._marks: deque[tuple[float, int]] = deque()
        """When everything up to which number was acknowledged: what the broker may still lose, by its own times."""
        self._forgotten_after: int | None = None

    @property
    def _acknowledged(self) -> int:
        """The number up to which the broker has acknowledged everything."""
        first = next(iter(self._in_flight.values()), self._next)
        return first - 1

    def connected(self, now: float, lost_at: float | None, heard_before: float, *, first: bool) -> None:
        """Continue on a new connection. `lost_at` is when this process lost an earlier one, if it did; `heard_before`
        when an earlier process last heard of a broker, which may have died with it. `first`: no service was ever at
        this broker, so nobody is about to return to it."""
        self._open = True
        if lost_at is None:
            self.rewind(self._journal.seq_before(heard_before - RESENT_BEFORE_LOSS_S))
            self._wait = None if first and not self._inherited else SubscriberWait(now)
        else:
            self.send_again(now, lost_at, self._forgotten_after)
        self._inherited = False
        self._forgotten_after = None

    def disconnected(self, since: float) -> None:
        """The connection is lost, and what the broker acknowledged since a monotonic time may be."""
        if self._open or self._forgotten_after is None:
            self._forgotten_after = self.acknowledged_before(since - RESENT_BEFORE_LOSS_S)
        self._open = False

    def send_again(self, now: float, since: float, after: int | None) -> None:
        """Publish again what is younger than a little before `since`, or comes after a number, once subscribers had
        time to return."""
        resent_from = self._journal.seq_before(since - RESENT_BEFORE_LOSS_S)
        self.rewind(resent_from if after is None else min(resent_from, after))
        self._wait = SubscriberWait(now)

    def acknowledged_before(self, when: float) -> int | None:
        """The number up to which everything was acknowledged at a monotonic time; None if all since is unknown."""
        known = [number for at, number in self._marks if at <= when]
        return known[-1] if known else self._marks[0][1] if self._marks else None

    @property
    def flows(self) -> bool:
        """Whether there is a connection, and subscribers have had time to return."""
        return self._open and self._wait is None

    @property
    def waits_for_subscribers(self) -> bool:
        """Whether events are held back until the broker has answered for a while: it must be probed."""
        return self._open and self._wait is not None

    def appended(self, entries: Sequence[JournalEntry]) -> None:
        """Take over events that were just committed."""
        if entries:
            self.last = entries[-1].seq
            self._fresh.extend(entries)

    def rewind(self, after: int) -> None:
        """Publish again what comes after this number."""
        self._next = min(self._acknowledged, after) + 1
        self._in_flight.clear()

    def pump(self, now: float) -> None:
        """Publish what is due, as far as the window allows."""
        if self._wait is not None and self._wait.is_over(now):
            self._wait = None
        while self._open and self._wait is None and self._next <= self.last and len(self._in_flight) < WINDOW:
            page = self._page(WINDOW - len(self._in_flight))
            if not page:
                self._next = self.last + 1  # the rest was pruned in the meantime
            for entry in page:
                number = self._bus.publish(entry.topic, entry.payload)
                if number is None or number in self._in_flight:
                    self._open = False  # no connection, or already a new one that counts from 1 again
                    return
                self._in_flight[number] = entry.seq
                self._next = entry.seq + 1
                while self._fresh and self._fresh[0].seq < self._next:
                    self._fresh.popleft()

    def _page(self, limit: int) -> list[JournalEntry]:
        if self._fresh and self._fresh[0].seq == self._next:
            return list(islice(self._fresh, limit))
        return self._journal.entries(self._journal.service, self._next - 1, limit)

    def acknowledged(self, number: int, sent: float, at: float) -> None:
        """Note the broker's acknowledgement of any message of this service; both times are monotonic."""
        if self._wait is not None:
            self._wait.answered(sent, at)
        before = self._acknowledged  # before this one counts
        if not self._marks or (before != self._marks[-1][1] and at - self._marks[-1][0] >= MARKED_EVERY_S):
            self._marks.append((at, before))
        while len(self._marks) > 1 and self._marks[1][0] < at - MARKS_KEPT_S:
            self._marks.popleft()
        self._in_flight.pop(number, None)

    @property
    def waiting(self) -> int:
        """How many events the broker has not acknowledged."""
        return max(0, self.last - self._acknowledged)

    def due(self, now: float) -> float | None:
        """When `pump` has work again; None until something else happens."""
        if not self._open or self._next > self.last or len(self._in_flight) >= WINDOW:
            return None
        if self._wait is None or self._wait.is_over(now):
            return now
        return self._wait.ends_by

    def save_progress(self, now: float, *, at_once: bool = False) -> None:
        """Store what is published; at most once a second, since after a crash some events are only sent twice."""
        acknowledged = self._acknowledged
        if acknowledged != self._saved and (at_once or now - self._saved_at >= PROGRESS_SAVED_EVERY_S):
            self._journal.note_published(acknowledged)
            self._saved, self._saved_at = acknowledged, now
