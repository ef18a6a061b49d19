"""Reading other services' events, each once and in order, whichever way they come.

A message from the broker that is next in line is handled; a lower number is a duplicate; a higher one means that
something was missed, and then, as when there is no broker at all, the journal is read from the cursor. So catching up,
polling and dropping duplicates are one piece of code.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from shared.events import Envelope
from shared.inbox import Arrived
from shared.journal import Entry, Journal
from shared.log import Log
from shared.topics import Malformed, Space, Topic, locate

ASKS_AGAIN_AFTER_S = 5.0
ASKS_AT_MOST = 3
AT_A_TIME = 5_000
"""So many events are read from the journal in one turn; a reader that was away for days takes several."""


@dataclass(frozen=True, slots=True)
class Heard:
    """One event, and where it came from."""

    host: str
    row: Topic
    envelope: Envelope[Any]


@dataclass
class Gap:
    """Events of another host that never came; it is asked to send them again, a few times."""

    asked: int = 0
    asked_at: float = float("-inf")


@dataclass(frozen=True, slots=True)
class AskReplay:
    """Please ask this host's service for its events after a number."""

    host: str
    service: str
    epoch: str
    after: int


@dataclass
class Sifted:
    """What is new, up to where that moves the cursors, and what must be asked for."""

    heard: list[Heard] = field(default_factory=list)
    moved: dict[tuple[str, str], int] = field(default_factory=dict)
    asks: list[AskReplay] = field(default_factory=list)
    more: bool = False
    """Whether the journal holds more than was read now."""


class Follower:
    """One service's place in everybody else's stream of events."""

    def __init__(self, journal: Journal, space: Space, rows: Sequence[Topic], log: Log) -> None:
        self._journal = journal
        self._space = space
        self._rows = rows
        self._log = log
        self._own = f"/{space.host}/{journal.service}"
        self._cursors = journal.cursors()
        self._gaps: dict[tuple[str, str], Gap] = {}

    def sift(self, messages: Sequence[Arrived], *, catch_up: bool, now: float) -> Sifted:
        """Sort out what is new. Nothing counts as read until `commit` is told that its effect is durable."""
        sifted = Sifted()
        missed: set[str] = set()
        for message in messages:
            self._take(message, sifted, missed, now)
        sources = self._journal.sources() if catch_up else sorted(missed)
        for name in sources:
            self._read_journal(name, sifted)
        return sifted

    def commit(self, sifted: Sifted) -> None:
        self._cursors.update(sifted.moved)

    def _place(self, key: tuple[str, str], sifted: Sifted) -> int | None:
        return sifted.moved.get(key, self._cursors.get(key))

    def _take(self, message: Arrived, sifted: Sifted, missed: set[str], now: float) -> None:
        located = locate(message.topic, self._space.prefix)
        if located is None or located[1] not in self._rows:
            return
        host, row, _ = located
        try:
            envelope = row.read(message.payload)
        except Malformed as error:
            self._log.warning("passed over a malformed event", topic=message.topic, reason=str(error))
            return
        if envelope.source == self._own:
            return
        key = (envelope.source, envelope.epoch)
        local = host == self._space.host
        place = self._place(key, sifted)
        if place is None:
            place = 0 if local else envelope.seq - 1  # another host's past is in its retained states
        if envelope.seq <= place:
            return
        if envelope.seq == place + 1 and not (local and envelope.epoch != self._journal.epoch):
            sifted.heard.append(Heard(host, row, envelope))
            sifted.moved[key] = envelope.seq
            self._gaps.pop(key, None)
        elif local:
            missed.add(envelope.source.rpartition("/")[2])
        else:
            self._missed_elsewhere(Heard(host, row, envelope), key, place, sifted, now)

    def _missed_elsewhere(self, heard: Heard, key: tuple[str, str], place: int, sifted: Sifted, now: float) -> None:
        gap = self._gaps.setdefault(key, Gap())
        if gap.asked >= ASKS_AT_MOST and now - gap.asked_at >= ASKS_AGAIN_AFTER_S:
            self._log.error("events of another host are lost", source=key[0], after=place, until=heard.envelope.seq)
            sifted.heard.append(heard)
            sifted.moved[key] = heard.envelope.seq
            del self._gaps[key]
        elif now - gap.asked_at >= ASKS_AGAIN_AFTER_S:
            gap.asked, gap.asked_at = gap.asked + 1, now
            sifted.asks.append(AskReplay(heard.host, key[0].rpartition("/")[2], key[1], place))

    def _read_journal(self, name: str, sifted: Sifted) -> None:
        source = f"/{self._space.host}/{name}"
        if source == self._own:
            return
        key = (source, self._journal.epoch)
        while len(sifted.heard) < AT_A_TIME and (entries := self._journal.entries(name, self._place(key, sifted) or 0)):
            for entry in entries:
                heard = self._parse(entry)
                if heard is not None:
                    sifted.heard.append(heard)
            sifted.moved[key] = entries[-1].seq
        sifted.more = sifted.more or len(sifted.heard) >= AT_A_TIME

    def _parse(self, entry: Entry) -> Heard | None:
        located = locate(entry.topic, self._space.prefix)
        if located is None or located[1] not in self._rows:
            return None
        host, row, _ = located
        try:
            return Heard(host, row, row.read(entry.payload))
        except Malformed as error:
            self._log.warning("passed over a malformed event", topic=entry.topic, reason=str(error))
            return None
