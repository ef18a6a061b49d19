"""Reads other services' events, each once and in order, from the broker or from the journal.

A cursor is how far this service has read each source. A message that is next in line is handled; a lower number is a
duplicate; a higher one means a gap, and then, as when there is no broker at all, the journal is read from the cursor.
So catching up, polling and dropping duplicates are one piece of code.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.contract.envelope import Envelope
from shared.contract.topics import MalformedDocument, Space, Topic, locate, read_position
from shared.messaging.journal import Journal, JournalEntry
from shared.system.log import Log

ASKS_AGAIN_AFTER_S = 5.0
ASKS_AT_MOST = 3
AT_A_TIME = 5_000
"""So many events are read from the journal in one turn; a reader that was away for days takes several."""


@dataclass(frozen=True, slots=True)
class LocatedMessage:
    """A message, and the row of the topic table that it belongs to."""

    host: str
    row: Topic
    topic: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class ReceivedEvent:
    """One event, and where it came from."""

    host: str
    row: Topic
    envelope: Envelope[Any]


@dataclass(frozen=True, slots=True)
class NumberedEvent:
    """A place in a source's stream, and what was said there; None for what this version can't read."""

    source: str
    epoch: str
    seq: int
    event: ReceivedEvent | None

    @property
    def key(self) -> tuple[str, str]:
        return (self.source, self.epoch)


@dataclass
class Gap:
    """Events of another host that did not come; it is asked to send them again, a few times."""

    asked: int = 0
    asked_at: float = float("-inf")
    held: dict[int, NumberedEvent] = field(default_factory=dict)
    """What came from behind the gap, up to a limit."""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """Please ask this host's service for its events after a number."""

    host: str
    service: str
    epoch: str
    after: int


@dataclass
class NewEvents:
    """What is new, up to where that moves the cursors, and what must be asked for."""

    received: list[ReceivedEvent] = field(default_factory=list)
    moved: dict[tuple[str, str], int] = field(default_factory=dict)
    replays: list[ReplayRequest] = field(default_factory=list)
    more: bool = False
    """Whether the journal holds more than was read now."""


class EventReader:
    """One service's place in everybody else's stream of events."""

    def __init__(self, journal: Journal, space: Space, rows: Sequence[Topic], log: Log) -> None:
        self._journal = journal
        self._space = space
        self._rows = rows
        self._log = log
        self._own = f"/{space.host}/{journal.service}"
        self._cursors = journal.cursors()
        self._gaps: dict[tuple[str, str], Gap] = {}

    def read(self, messages: Sequence[LocatedMessage], *, catch_up: bool, now: float) -> NewEvents:
        """Sort out what is new. Nothing counts as read until `commit` is told that its effect is durable."""
        new = NewEvents()
        missed: set[str] = set()
        for message in messages:
            self._take(message, new, missed, now)
        sources = self._journal.sources() if catch_up else sorted(missed)
        for name in sources:
            self._read_journal(name, new)
        return new

    def commit(self, new: NewEvents) -> None:
        self._cursors.update(new.moved)

    def _place(self, key: tuple[str, str], new: NewEvents) -> int | None:
        return new.moved.get(key, self._cursors.get(key))

    def _take(self, message: LocatedMessage, new: NewEvents, missed: set[str], now: float) -> None:
        one = self._number(message)
        if one is None or one.source == self._own:
            return
        local = one.source.startswith(f"/{self._space.host}/")
        place = self._place(one.key, new)
        if place is None:
            place = 0 if local else one.seq - 1  # another host's past is in its retained states
        if one.seq <= place:
            return
        if local and (one.seq > place + 1 or one.event is None or one.epoch != self._journal.epoch):
            missed.add(one.source.rpartition("/")[2])
        elif one.seq == place + 1:
            self._accept(one, new)
            self._release(one.key, new)
        else:
            self._miss(one, place, new, now)

    def _accept(self, one: NumberedEvent, new: NewEvents) -> None:
        if one.event is not None:
            new.received.append(one.event)
        new.moved[one.key] = one.seq

    def _release(self, key: tuple[str, str], new: NewEvents) -> None:
        """What was held back and is in line now."""
        gap = self._gaps.get(key)
        if gap is None:
            return
        while (following := gap.held.pop((self._place(key, new) or 0) + 1, None)) is not None:
            self._accept(following, new)
        place = self._place(key, new) or 0
        gap.held = {seq: one for seq, one in gap.held.items() if seq > place}
        if not gap.held:
            del self._gaps[key]

    def _miss(self, one: NumberedEvent, place: int, new: NewEvents, now: float) -> None:
        """Something of another host is lacking: ask for it, and in the end go on without."""
        gap = self._gaps.setdefault(one.key, Gap())
        if len(gap.held) < AT_A_TIME:
            gap.held[one.seq] = one
        if now - gap.asked_at < ASKS_AGAIN_AFTER_S:
            return
        if gap.asked < ASKS_AT_MOST:
            gap.asked, gap.asked_at = gap.asked + 1, now
            host, service = one.source.strip("/").split("/")
            new.replays.append(ReplayRequest(host, service, one.epoch, place))
            return
        first = min(gap.held)
        self._log.error("events of another host are lost", source=one.source, after=place, before=first)
        self._accept(gap.held.pop(first), new)
        gap.asked = 0
        self._release(one.key, new)

    def _number(self, message: LocatedMessage) -> NumberedEvent | None:
        """Read an event as far as it can be read; None when it is none of ours."""
        host, row, payload = message.host, message.row, message.payload
        if row not in self._rows:
            return None
        try:
            envelope = row.read(payload)
            one = NumberedEvent(envelope.source, envelope.epoch, envelope.seq, ReceivedEvent(host, row, envelope))
        except MalformedDocument as error:
            self._log.warning("passed over a malformed event", topic=message.topic, reason=str(error))
            numbers = read_position(payload)
            if numbers is None:
                return None
            one = NumberedEvent(*numbers, event=None)
        if not one.source.startswith(f"/{host}/"):
            self._log.warning(
                "passed over an event of a host that spoke for another", topic=message.topic, source=one.source
            )
            return None
        return one

    def _read_journal(self, name: str, new: NewEvents) -> None:
        source = f"/{self._space.host}/{name}"
        if source == self._own:
            return
        key = (source, self._journal.epoch)
        while len(new.received) < AT_A_TIME and (entries := self._journal.entries(name, self._place(key, new) or 0)):
            for entry in entries:
                located = self._locate(entry)
                one = self._number(located) if located is not None else None
                if one is not None and one.event is not None:
                    new.received.append(one.event)
            new.moved[key] = entries[-1].seq
        new.more = new.more or len(new.received) >= AT_A_TIME

    def _locate(self, entry: JournalEntry) -> LocatedMessage | None:
        found = locate(entry.topic, self._space.prefix)
        return LocatedMessage(*found[:2], entry.topic, entry.payload) if found is not None else None
