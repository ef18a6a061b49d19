"""Follows a fleet's events, states and replies: over the broker, and from the journal while no broker answers."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from shared.client.presence import QuietLog
from shared.contract.commands import Reply
from shared.contract.envelope import Envelope
from shared.contract.events.board import CardObserved
from shared.contract.topics import CARD_STATE, COMMAND, REPLY, STATES, MalformedDocument, Topic, locate
from shared.fleet import Fleet
from shared.messaging.inbox import Connected, Disconnected, Inbox, MessageArrived
from shared.messaging.journal import JournalReader
from shared.runtime.bootstrap import connect

JOURNAL_READ_EVERY_S = 0.5
MOST_PAST_EVENTS = 10_000


@dataclass(frozen=True)
class FollowedDocument:
    """One document from the bus or the journal."""

    host: str
    row: Topic
    document: Envelope[Any] | Reply
    payload: str


def follow(
    fleet: Fleet,
    *,
    since: float | None = None,
    seconds: float | None = None,
    on_broker_lost: Callable[[], None] = lambda: None,
) -> Iterator[FollowedDocument]:
    """Yield every event once, states when they change, and replies. `since` (epoch seconds) adds past events."""
    follower = Follower(fleet)
    end = time.monotonic() + seconds if seconds is not None else float("inf")
    inbox = Inbox()
    bus = connect(fleet, "viewer", inbox, QuietLog("muster"))
    bus.subscribe([f"{fleet.space.prefix}/+/#"])
    bus.start()
    try:
        yield from follower.begin(since)
        alone_since: float | None = time.monotonic()
        while time.monotonic() < end:
            for item in inbox.take(min(end, time.monotonic() + JOURNAL_READ_EVERY_S)):
                if isinstance(item, Connected):
                    bus.note_connected(item)
                    alone_since = None
                elif isinstance(item, Disconnected):
                    alone_since = time.monotonic()
                    on_broker_lost()
                elif isinstance(item, MessageArrived):
                    bus.acknowledge([item])
                    yield from follower.take(item)
            if alone_since is not None and time.monotonic() - alone_since > JOURNAL_READ_EVERY_S:
                yield from follower.read_journal()
    finally:
        bus.stop()


@dataclass
class Follower:
    """Drops repeats, and fills gaps in this host's events from the journal."""

    fleet: Fleet
    cursors: dict[tuple[str, str], int] = field(default_factory=dict)
    shown: dict[str, Any] = field(default_factory=dict)

    def begin(self, since: float | None) -> Iterator[FollowedDocument]:
        """The past events since a time; all others of the journal count as shown."""
        for journal in self._journals():
            for entry in journal.entries_since(since, MOST_PAST_EVENTS) if since is not None else ():
                yield from self._event(entry.topic, entry.payload)
            for source in journal.sources():
                self.cursors.setdefault(self._key(source, journal.epoch), journal.newest(source))

    def read_journal(self) -> Iterator[FollowedDocument]:
        for journal in self._journals():
            for source in journal.sources():
                for entry in journal.entries(source, self.cursors.get(self._key(source, journal.epoch), 0)):
                    yield from self._event(entry.topic, entry.payload)

    def _journals(self) -> Iterator[JournalReader]:
        """The journal, if there is one."""
        if self.fleet.journal.exists():
            with contextlib.closing(JournalReader(self.fleet.journal)) as journal:
                yield journal

    def _key(self, source: str, epoch: str) -> tuple[str, str]:
        return (f"/{self.fleet.space.host}/{source}", epoch)

    def take(self, message: MessageArrived) -> Iterator[FollowedDocument]:
        """What is new by a message of the broker."""
        found = self._read(message.topic, message.payload)
        if found is None:
            return
        if isinstance(found.document, Reply):
            yield found
        elif found.row in STATES:
            data = found.document.data
            news = (data.word(), getattr(data, "reason", ""), getattr(data, "pid", None))
            if self.shown.get(message.topic) != news:  # a heartbeat is not news
                self.shown[message.topic] = news
                yield found
        else:
            if found.host == self.fleet.space.host and found.document.seq > self._cursor(found.document) + 1:
                yield from self.read_journal()
            yield from self._event(message.topic, message.payload)

    def _event(self, topic: str, payload: bytes) -> Iterator[FollowedDocument]:
        found = self._read(topic, payload)
        if found is None or isinstance(found.document, Reply) or found.document.seq <= self._cursor(found.document):
            return
        self.cursors[found.document.source, found.document.epoch] = found.document.seq
        if not isinstance(found.document.data, CardObserved):  # it only repeats the event that it is about
            yield found

    def _cursor(self, envelope: Envelope[Any]) -> int:
        return self.cursors.get((envelope.source, envelope.epoch), 0)

    def _read(self, topic: str, payload: bytes) -> FollowedDocument | None:
        """The document of a message; None for commands, cards, cleared states and unreadable payloads.

        A card only repeats what events and the agent's state tell.
        """
        located = locate(topic, self.fleet.space.prefix)
        if located is None or located[1] in (COMMAND, CARD_STATE):
            return None
        host, row, _ = located
        try:
            document = Reply.model_validate_json(payload) if row is REPLY else row.read(payload)
        except (MalformedDocument, ValidationError):
            return None
        return FollowedDocument(host, row, document, payload.decode())
