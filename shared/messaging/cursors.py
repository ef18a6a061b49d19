"""Reads other services' events, each once and in order, from the broker or from the journal.

A cursor is how far this service has read each source. An event with the next number is new, a lower number is a
duplicate, and a higher one shows a gap. Gaps of this host are closed from the journal, which also serves while there is
no broker; other hosts are asked for a replay.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.contract.envelope import Envelope
from shared.contract.topics import MalformedDocument, Space, Topic, locate, read_position
from shared.messaging.journal import Journal, JournalEntry
from shared.system.log import Log

REPLAY_REPEATED_AFTER_S = 5.0
MOST_REPLAYS = 3
EVENTS_PER_TURN = 5_000
"""How many events one turn reads from the journal at most; after days of absence it takes several turns."""


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
    """An event's position in its source's stream; `received` is None if this version can't read it."""

    source: str
    epoch: str
    seq: int
    received: ReceivedEvent | None

    @property
    def key(self) -> tuple[str, str]:
        return (self.source, self.epoch)


@dataclass
class Gap:
    """Missing events of another host, which is asked for a replay a few times."""

    replays: int = 0
    replayed_at: float = float("-inf")
    later: dict[int, NumberedEvent] = field(default_factory=dict)
    """Events that arrived from behind the gap, up to a limit."""


@dataclass(frozen=True, slots=True)
class ReplayRequest:
    """A service of another host must be asked for its events after this number."""

    host: str
    service: str
    epoch: str
    after: int


@dataclass
class NewEvents:
    """The new events, the cursors after them, and the replays to ask for."""

    received: list[ReceivedEvent] = field(default_factory=list)
    moved: dict[tuple[str, str], int] = field(default_factory=dict)
    replays: list[ReplayRequest] = field(default_factory=list)
    more: bool = False
    """Whether the journal holds more events."""


class EventReader:
    """One service's cursors into the events of all others."""

    def __init__(self, journal: Journal, space: Space, rows: Sequence[Topic], log: Log) -> None:
        self._journal = journal
        self._space = space
        self._rows = rows
        self._log = log
        self._own = f"/{space.host}/{journal.service}"
        self._cursors = journal.cursors()
        self._gaps: dict[tuple[str, str], Gap] = {}

    def read(self, messages: Sequence[LocatedMessage], *, catch_up: bool, now: float) -> NewEvents:
        """The new events in messages, and with `catch_up` in the journal. The cursors stay until `commit`."""
        new = NewEvents()
        missed: set[str] = set()
        for message in messages:
            self._take(message, new, missed, now)
        sources = self._journal.sources() if catch_up else sorted(missed)
        for name in sources:
            self._read_journal(name, new)
        return new

    def hints(self, messages: Sequence[LocatedMessage]) -> list[LocatedMessage]:
        """The messages on topics that this service does not follow."""
        return [message for message in messages if message.row not in self._rows]

    def commit(self, new: NewEvents) -> None:
        """Move the cursors, once what follows from the events is in the journal."""
        self._cursors.update(new.moved)

    def _cursor(self, key: tuple[str, str], new: NewEvents) -> int | None:
        return new.moved.get(key, self._cursors.get(key))

    def _take(self, message: LocatedMessage, new: NewEvents, missed: set[str], now: float) -> None:
        event = self._parse(message)
        if event is None or event.source == self._own:
            return
        local = event.source.startswith(f"/{self._space.host}/")
        cursor = self._cursor(event.key, new)
        if cursor is None:
            cursor = 0 if local else event.seq - 1  # another host's past is in its retained states
        if event.seq <= cursor:
            return
        if local and (event.seq > cursor + 1 or event.received is None or event.epoch != self._journal.epoch):
            missed.add(event.source.rpartition("/")[2])
        elif event.seq == cursor + 1:
            self._accept(event, new)
            self._accept_later(event.key, new)
        else:
            self._handle_gap(event, cursor, new, now)

    def _accept(self, event: NumberedEvent, new: NewEvents) -> None:
        if event.received is not None:
            new.received.append(event.received)
        new.moved[event.key] = event.seq

    def _accept_later(self, key: tuple[str, str], new: NewEvents) -> None:
        """Accept the events behind a gap that is closed now."""
        gap = self._gaps.get(key)
        if gap is None:
            return
        while (following := gap.later.pop((self._cursor(key, new) or 0) + 1, None)) is not None:
            self._accept(following, new)
        cursor = self._cursor(key, new) or 0
        gap.later = {seq: event for seq, event in gap.later.items() if seq > cursor}
        if not gap.later:
            del self._gaps[key]

    def _handle_gap(self, event: NumberedEvent, cursor: int, new: NewEvents, now: float) -> None:
        """Ask another host for a replay; after several, continue without the missing events."""
        gap = self._gaps.setdefault(event.key, Gap())
        if len(gap.later) < EVENTS_PER_TURN:
            gap.later[event.seq] = event
        if now - gap.replayed_at < REPLAY_REPEATED_AFTER_S:
            return
        if gap.replays < MOST_REPLAYS:
            gap.replays, gap.replayed_at = gap.replays + 1, now
            host, service = event.source.strip("/").split("/")
            new.replays.append(ReplayRequest(host, service, event.epoch, cursor))
            return
        first = min(gap.later)
        self._log.error("events of another host are lost", source=event.source, after=cursor, before=first)
        self._accept(gap.later.pop(first), new)
        gap.replays = 0
        self._accept_later(event.key, new)

    def _parse(self, message: LocatedMessage) -> NumberedEvent | None:
        """Read an event as far as this version can; None if this service does not follow it."""
        host, row, payload = message.host, message.row, message.payload
        if row not in self._rows:
            return None
        try:
            envelope = row.read(payload)
            event = NumberedEvent(envelope.source, envelope.epoch, envelope.seq, ReceivedEvent(host, row, envelope))
        except MalformedDocument as error:
            self._log.warning("passed over a malformed event", topic=message.topic, reason=str(error))
            position = read_position(payload)
            if position is None:
                return None
            event = NumberedEvent(*position, received=None)
        if not event.source.startswith(f"/{host}/"):
            self._log.warning(
                "passed over an event of a host that spoke for another", topic=message.topic, source=event.source
            )
            return None
        return event

    def _read_journal(self, name: str, new: NewEvents) -> None:
        source = f"/{self._space.host}/{name}"
        if source == self._own:
            return
        key = (source, self._journal.epoch)
        while len(new.received) < EVENTS_PER_TURN and (
            entries := self._journal.entries(name, self._cursor(key, new) or 0)
        ):
            for entry in entries:
                located = self._locate(entry)
                event = self._parse(located) if located is not None else None
                if event is not None and event.received is not None:
                    new.received.append(event.received)
            new.moved[key] = entries[-1].seq
        new.more = new.more or len(new.received) >= EVENTS_PER_TURN

    def _locate(self, entry: JournalEntry) -> LocatedMessage | None:
        found = locate(entry.topic, self._space.prefix)
        return LocatedMessage(*found[:2], entry.topic, entry.payload) if found is not None else None
