"""`muster events`: follow what happens, by the broker, and by the journal while no broker answers."""

import argparse
import json
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from services.cli.fleet import open_fleet, say
from services.cli.look import Quiet
from services.cli.words import Paint, event_line
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.inbox import Arrived, Connected, Disconnected, Inbox
from shared.journal import Journal
from shared.process import connect
from shared.topics import REPLY, STATES, Topic, locate

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
LOOKS_EVERY_S = 0.5
AT_MOST = 10_000


@dataclass(frozen=True)
class Told:
    """One document from the bus or the journal."""

    host: str
    row: Topic
    document: dict[str, Any]
    payload: str


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the documents themselves, one a line")
    parser.add_argument("--since", metavar="TIME", help="begin with what the journal has of the last 90s, 10m, 2h, 3d")
    parser.add_argument("--seconds", type=float, metavar="N", help="end after so long")


def run(options: argparse.Namespace) -> int:
    fleet = open_fleet(options)
    paint = Paint(sys.stdout)
    since = time.time() - _length(options.since) if options.since else None
    for told in follow(fleet, since=since, seconds=options.seconds):
        line = told.payload if options.json else event_line(told.row, told.host, told.document, paint)
        print(line, flush=True)
    return 0


def _length(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    if found is None:
        raise MusterError(f"--since {text}: write a number and s, m, h or d, such as 10m")
    return float(found[1]) * SECONDS[found[2]]


def follow(fleet: Fleet, *, since: float | None = None, seconds: float | None = None) -> Iterator[Told]:
    """Every event once, whichever way it comes; states when they change; replies."""
    follower = _Follower(fleet)
    end = time.monotonic() + seconds if seconds is not None else float("inf")
    inbox = Inbox()
    bus = connect(fleet, "viewer", inbox, Quiet("muster"))
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
                    say("the broker is down: reading the journal")
                elif isinstance(item, Arrived):
                    bus.acknowledge([item])
                    yield from follower.hear(item)
            if alone_since is not None and time.monotonic() - alone_since > LOOKS_EVERY_S:
                yield from follower.read_journal()
    finally:
        bus.stop()


@dataclass
class _Follower:
    fleet: Fleet
    places: dict[tuple[str, str], int] = field(default_factory=dict)
    shown: dict[str, Any] = field(default_factory=dict)

    def begin(self, since: float | None) -> Iterator[Told]:
        if not self.fleet.journal.exists():
            return
        journal = Journal(self.fleet.journal, "cli")
        try:
            for entry in journal.entries_since(since, AT_MOST) if since is not None else ():
                yield from self._event(entry.topic, entry.payload)
            for source in journal.sources():
                place = self._key(source, journal.epoch)
                self.places.setdefault(place, journal.newest(source))
        finally:
            journal.close()

    def read_journal(self) -> Iterator[Told]:
        if not self.fleet.journal.exists():
            return
        journal = Journal(self.fleet.journal, "cli")
        try:
            for source in journal.sources():
                for entry in journal.entries(source, self.places.get(self._key(source, journal.epoch), 0)):
                    yield from self._event(entry.topic, entry.payload)
        finally:
            journal.close()

    def _key(self, source: str, epoch: str) -> tuple[str, str]:
        return (f"/{self.fleet.space.host}/{source}", epoch)

    def hear(self, message: Arrived) -> Iterator[Told]:
        located = locate(message.topic, self.fleet.space.prefix)
        if located is None or not message.payload:
            return
        host, row, _ = located
        if row in STATES:
            yield from self._state(message, host, row)
        elif row is REPLY:
            yield from _told(host, row, message.payload)
        else:
            yield from self._event(message.topic, message.payload)

    def _event(self, topic: str, payload: bytes) -> Iterator[Told]:
        located = locate(topic, self.fleet.space.prefix)
        for told in _told(located[0], located[1], payload) if located else ():
            place = (told.document.get("source", ""), told.document.get("epoch", ""))
            seq = told.document.get("seq", 0)
            if seq > self.places.get(place, 0):
                self.places[place] = seq
                yield told

    def _state(self, message: Arrived, host: str, row: Topic) -> Iterator[Told]:
        """A state is told when it says something new; a heartbeat is not news."""
        for told in _told(host, row, message.payload):
            data = told.document.get("data", {})
            news = (data.get("status"), data.get("reason"), data.get("pid"))
            if self.shown.get(message.topic) != news:
                self.shown[message.topic] = news
                yield told


def _told(host: str, row: Topic, payload: bytes) -> Iterator[Told]:
    try:
        text = payload.decode()
        document = json.loads(text)
    except ValueError:
        return
    if isinstance(document, dict) and ("data" in document or "verb" in document):
        yield Told(host, row, document, text)
