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
from shared.journal import Journal
from shared.log import Log
from shared.topics import Malformed, Space, Topic, locate, read_numbers

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


@dataclass(frozen=True, slots=True)
class Numbered:
    """A place in a source's stream, and what was said there; None for what this version can't read."""

    source: str
    epoch: str
    seq: int
    heard: Heard | None

    @property
    def key(self) -> tuple[str, str]:
        return (self.source, self.epoch)


@dataclass
class Gap:
    """Events of another host that did not come; it is asked to send them again, a few times."""

    asked: int = 0
    asked_at: float = float("-inf")
    held: dict[int, Numbered] = field(default_factory=dict)
    """What came from behind the gap, up to a limit."""


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
        one = self._number(message.topic, message.payload)
        if one is None or one.source == self._own:
            return
        local = one.source.startswith(f"/{self._space.host}/")
        place = self._place(one.key, sifted)
        if place is None:
            place = 0 if local else one.seq - 1  # another host's past is in its retained states
        if one.seq <= place:
            return
        if local and (one.seq > place + 1 or one.heard is None or one.epoch != self._journal.epoch):
            missed.add(one.source.rpartition("/")[2])
        elif one.seq == place + 1:
            self._accept(one, sifted)
            self._release(one.key, sifted)
        else:
            self._miss(one, place, sifted, now)

    def _accept(self, one: Numbered, sifted: Sifted) -> None:
        if one.heard is not None:
            sifted.heard.append(one.heard)
        sifted.moved[one.key] = one.seq

    def _release(self, key: tuple[str, str], sifted: Sifted) -> None:
        """What was held back and is in line now."""
        gap = self._gaps.get(key)
        if gap is None:
            return
        while (following := gap.held.pop((self._place(key, sifted) or 0) + 1, None)) is not None:
            self._accept(following, sifted)
        place = self._place(key, sifted) or 0
        gap.held = {seq: one for seq, one in gap.held.items() if seq > place}
        if not gap.held:
            del self._gaps[key]

    def _miss(self, one: Numbered, place: int, sifted: Sifted, now: float) -> None:
        """Something of another host is lacking: ask for it, and in the end go on without."""
        gap = self._gaps.setdefault(one.key, Gap())
        if len(gap.held) < AT_A_TIME:
            gap.held[one.seq] = one
        if now - gap.asked_at < ASKS_AGAIN_AFTER_S:
            return
        if gap.asked < ASKS_AT_MOST:
            gap.asked, gap.asked_at = gap.asked + 1, now
            host, service = one.source.strip("/").split("/")
            sifted.asks.append(AskReplay(host, service, one.epoch, place))
            return
        first = min(gap.held)
        self._log.error("events of another host are lost", source=one.source, after=place, before=first)
        self._accept(gap.held.pop(first), sifted)
        gap.asked = 0
        self._release(one.key, sifted)

    def _number(self, topic: str, payload: bytes) -> Numbered | None:
        """Read an event as far as it can be read; None when it is none of ours."""
        located = locate(topic, self._space.prefix)
        if located is None or located[1] not in self._rows:
            return None
        host, row, _ = located
        try:
            envelope = row.read(payload)
            one = Numbered(envelope.source, envelope.epoch, envelope.seq, Heard(host, row, envelope))
        except Malformed as error:
            self._log.warning("passed over a malformed event", topic=topic, reason=str(error))
            numbers = read_numbers(payload)
            if numbers is None:
                return None
            one = Numbered(*numbers, heard=None)
        if not one.source.startswith(f"/{host}/"):
            self._log.warning("passed over an event of a host that spoke for another", topic=topic, source=one.source)
            return None
        return one

    def _read_journal(self, name: str, sifted: Sifted) -> None:
        source = f"/{self._space.host}/{name}"
        if source == self._own:
            return
        key = (source, self._journal.epoch)
        while len(sifted.heard) < AT_A_TIME and (entries := self._journal.entries(name, self._place(key, sifted) or 0)):
            for entry in entries:
                one = self._number(entry.topic, entry.payload)
                if one is not None and one.heard is not None:
                    sifted.heard.append(one.heard)
            sifted.moved[key] = entries[-1].seq
        sifted.more = sifted.more or len(sifted.heard) >= AT_A_TIME
