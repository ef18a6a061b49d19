"""Publishing a service's own events from its journal: in order, a window at a time, until the broker has them.

A broker that was killed may have acknowledged what it then forgot, and those who listen take a moment to return to it.
So after a lost connection the outbox waits for them, and goes back a little before the loss.
"""

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Protocol

from shared.messaging.journal import Journal, JournalEntry

WINDOW = 1_000
SETTLES_S = 1.5
"""`mosquitto_sub` tries to return once a second; events sent before it is there would pass it by."""
OVERLAP_S = 5.0
NOTES_EVERY_S = 1.0


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
        """Whether an earlier process told something that it could not publish: there may have been no broker."""
        self._fresh: deque[JournalEntry] = deque(maxlen=WINDOW)
        """The newest events, in order: most are published as soon as they are committed."""
        self._in_flight: dict[int, int] = {}
        """The broker's number for a message, and ours; in the order of ours."""
        self._noted, self._noted_at = self._done, 0.0
        self._open = False
        self._opens_at = 0.0

    @property
    def _done(self) -> int:
        """The broker has everything up to here."""
        first = next(iter(self._in_flight.values()), self._next)
        return first - 1

    def connected(self, now: float, lost_at: float | None) -> None:
        """Start again on a new connection; `lost_at` is when an earlier one was lost, if it was."""
        self.rewind(self._done if lost_at is None else self._journal.seq_before(lost_at - OVERLAP_S))
        self._open = True
        self._opens_at = now + SETTLES_S if lost_at is not None or self._inherited else now
        self._inherited = False

    def disconnected(self) -> None:
        self._open = False

    def appended(self, entries: Sequence[JournalEntry]) -> None:
        """These were just committed: what is next in line is published without reading it again."""
        if entries:
            self.last = entries[-1].seq
            self._fresh.extend(entries)

    def rewind(self, after: int) -> None:
        """Publish again what comes after a number: somebody may have missed it."""
        self._next = min(self._done, after) + 1
        self._in_flight.clear()

    def pump(self, now: float) -> None:
        """Publish what is due, as far as the window allows."""
        while self._open and now >= self._opens_at and self._next <= self.last and len(self._in_flight) < WINDOW:
            page = self._page(WINDOW - len(self._in_flight))
            if not page:
                self._next = self.last + 1  # all of it was pruned in the meantime
            for entry in page:
                number = self._bus.publish(entry.topic, entry.payload)
                if number is None or number in self._in_flight:
                    self._open = False  # there is no connection, or already another one, which counts anew
                    return
                self._in_flight[number] = entry.seq
                self._next = entry.seq + 1
                while self._fresh and self._fresh[0].seq < self._next:
                    self._fresh.popleft()

    def _page(self, limit: int) -> list[JournalEntry]:
        if self._fresh and self._fresh[0].seq == self._next:
            return list(islice(self._fresh, limit))
        return self._journal.entries(self._journal.service, self._next - 1, limit)

    def acknowledged(self, number: int) -> None:
        self._in_flight.pop(number, None)

    @property
    def waiting(self) -> int:
        """How many events the broker has not acknowledged."""
        return max(0, self.last - self._done)

    def due(self, now: float) -> float | None:
        """When `pump` has work again, if it is known."""
        if not self._open or self._next > self.last or len(self._in_flight) >= WINDOW:
            return None
        return max(now, self._opens_at)

    def note(self, now: float, *, at_once: bool = False) -> None:
        """Write down what is published; seldom, for a crash in between only means sending some again."""
        done = self._done
        if done != self._noted and (at_once or now - self._noted_at >= NOTES_EVERY_S):
            self._journal.note_published(done)
            self._noted, self._noted_at = done, now
