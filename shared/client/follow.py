"""Follows what a fleet says: by the broker, and by the journal while no broker answers. Every event once."""

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from shared.client.presence import QuietLog
from shared.contract.commands import Reply
from shared.contract.envelope import Envelope
from shared.contract.topics import COMMAND, REPLY, STATES, MalformedDocument, Topic, locate
from shared.fleet import Fleet
from shared.messaging.inbox import Connected, Disconnected, Inbox, MessageArrived
from shared.messaging.journal import Journal
from shared.runtime.bootstrap import connect

LOOKS_EVERY_S = 0.5
AT_MOST = 10_000


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
    """Every event once, whichever way it comes; states when they change; replies."""
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
            for item in inbox.take(min(end, time.monotonic() + LOOKS_EVERY_S)):
                if isinstance(item, Connected):
                    bus.note_connected(item)
                    alone_since = None
                elif isinstance(item, Disconnected):
                    alone_since = time.monotonic()
                    on_broker_lost()
                elif isinstance(item, MessageArrived):
                    bus.acknowledge([item])
                    yield from follower.hear(item)
            if alone_since is not None and time.monotonic() - alone_since > LOOKS_EVERY_S:
                yield from follower.read_journal()
    finally:
        bus.stop()


@dataclass
class Follower:
    """What was shown already. Events are shown in order: a gap in this host's is filled from the journal."""

    fleet: Fleet
    places: dict[tuple[str, str], int] = field(default_factory=dict)
    shown: dict[str, Any] = field(default_factory=dict)

    def begin(self, since: float | None) -> Iterator[FollowedDocument]:
        with self._journal() as journal:
            for entry in journal.entries_since(since, AT_MOST) if journal and since is not None else ():
                yield from self._event(entry.topic, entry.payload)
            for source in journal.sources() if journal else ():
                self.places.setdefault(self._key(source, journal.epoch), journal.newest(source))

    def read_journal(self) -> Iterator[FollowedDocument]:
        with self._journal() as journal:
            for source in journal.sources() if journal else ():
                for entry in journal.entries(source, self.places.get(self._key(source, journal.epoch), 0)):
                    yield from self._event(entry.topic, entry.payload)

    @contextlib.contextmanager
    def _journal(self) -> Iterator[Any]:
        """The journal, or None while there is none; making one is not for those who only look."""
        journal = Journal(self.fleet.journal, "cli") if self.fleet.journal.exists() else None
        try:
            yield journal
        finally:
            if journal is not None:
                journal.close()

    def _key(self, source: str, epoch: str) -> tuple[str, str]:
        return (f"/{self.fleet.space.host}/{source}", epoch)

    def hear(self, message: MessageArrived) -> Iterator[FollowedDocument]:
        told = self._read(message.topic, message.payload)
        if told is None:
            return
        if isinstance(told.document, Reply):
            yield told
        elif told.row in STATES:
            data = told.document.data
            news = (data.status, data.reason, data.pid)
            if self.shown.get(message.topic) != news:  # a heartbeat is not news
                self.shown[message.topic] = news
                yield told
        else:
            if told.host == self.fleet.space.host and told.document.seq > self._place(told.document) + 1:
                yield from self.read_journal()
            yield from self._event(message.topic, message.payload)

    def _event(self, topic: str, payload: bytes) -> Iterator[FollowedDocument]:
        told = self._read(topic, payload)
        if told is None or isinstance(told.document, Reply) or told.document.seq <= self._place(told.document):
            return
        self.places[told.document.source, told.document.epoch] = told.document.seq
        yield told

    def _place(self, envelope: Envelope[Any]) -> int:
        return self.places.get((envelope.source, envelope.epoch), 0)

    def _read(self, topic: str, payload: bytes) -> FollowedDocument | None:
        """What can be shown; commands, cleared states and what nobody understands are passed over."""
        located = locate(topic, self.fleet.space.prefix)
        if located is None or located[1] is COMMAND:
            return None
        host, row, _ = located
        try:
            document = Reply.model_validate_json(payload) if row is REPLY else row.read(payload)
        except (MalformedDocument, ValidationError):
            return None
        return FollowedDocument(host, row, document, payload.decode())
