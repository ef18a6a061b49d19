"""`muster status --watch`: a report whenever something changes, by the bus, and by looking while no broker answers."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime

from services.cli.live_screen import SUSPEND, LiveScreen
from services.cli.report import Report, ReportReader
from services.cli.status_filter import Choice
from services.cli.status_view import View
from services.cli.words import Paint
from shared.client.presence import SETTLED_S, BusLook, QuietLog, may_answer
from shared.contract.topics import AGENT_STATE, SERVICE_STATE
from shared.messaging.bus import Bus
from shared.messaging.inbox import Connected, Disconnected, Inbox, Item, LookRequest, MessageArrived, QuitSignal
from shared.runtime.bootstrap import connect

LOOKS_EVERY_S = 1.0
"""How often files and locks are looked at when nothing comes; times pass on the screen as often."""
DRAWS_EVERY_S = 0.25
CONNECTS_WITHIN_S = 1.0
"""The first picture waits so long for a broker that may answer."""


def watch_on_screen(reader: ReportReader, choice: Choice) -> int:
    """Draw until somebody leaves: 0 by `q`, else what a signal's end is for a shell."""
    inbox = Inbox()
    paint = Paint(sys.stdout)
    with closing(StatusWatch(reader, inbox)) as watch, LiveScreen(inbox) as screen:
        watch.on_suspend = screen.suspend
        for report in watch.reports():
            size = screen.size()
            screen.draw(View(report, choice, datetime.now(UTC)).frame(paint, size.columns, size.lines))
        return 128 + watch.ended_by if watch.ended_by else 0


def watch_plainly(reader: ReportReader, choice: Choice, show: Callable[[View], None]) -> int:
    """Print again whenever something changed that is more than the passing of time."""
    printed: object = None
    with closing(StatusWatch(reader, Inbox())) as watch:
        for report in watch.reports():
            view = View(report, choice, datetime.now(UTC))
            if (news := view.news()) != printed:
                printed = news
                show(view)
                sys.stdout.flush()
    return 0


class StatusWatch:
    """Wakes up by what comes. What the bus says is only a reason to look: the registry file tells what is true."""

    def __init__(self, reader: ReportReader, inbox: Inbox) -> None:
        self._reader, self._inbox = reader, inbox
        self._prefix = reader.fleet.space.prefix
        self._bus = self._connect()
        self._heard: BusLook | None = None
        self._quiet_until = 0.0
        self.on_suspend: Callable[[], None] = lambda: None
        self.ended_by: int | None = None
        """The signal that ended it; 0 for a key."""

    def _connect(self) -> Bus:
        space = self._reader.fleet.space
        bus = connect(self._reader.fleet, "viewer", self._inbox, QuietLog("muster"))
        bus.subscribe([row.filter(space) for row in (SERVICE_STATE, AGENT_STATE)])
        bus.start()
        return bus

    def close(self) -> None:
        self._bus.stop()

    def reports(self) -> Iterator[Report]:
        """At least one a second, at most four. They end when somebody wants to leave."""
        if may_answer(self._reader.fleet):
            self._wait(time.monotonic() + CONNECTS_WITHIN_S, 0.0)
        while self.ended_by is None:
            yield self._reader.report(self._heard)
            now = time.monotonic()
            self._wait(now + LOOKS_EVERY_S, now + DRAWS_EVERY_S)

    def _wait(self, until: float, not_before: float) -> None:
        """Take what comes until there is something to show, but not sooner than that may be."""
        woken = False
        while self.ended_by is None:
            wanted = max(not_before, self._quiet_until) if woken else until
            items = self._inbox.take(wanted)
            for item in items:
                woken = self._take(item) or woken
            if not items or (woken and time.monotonic() >= max(not_before, self._quiet_until)):
                return

    def _take(self, item: Item) -> bool:
        """Whether something may be new."""
        match item:
            case QuitSignal(signal=number):
                self.ended_by = number
            case LookRequest() if item.why == SUSPEND:
                self.on_suspend()
            case Connected():
                self._bus.note_connected(item)
                self._heard = BusLook()
                # What is retained comes right after: until then everybody would seem to be silent.
                self._quiet_until = time.monotonic() + SETTLED_S
            case Disconnected():
                self._heard = None
            case MessageArrived():
                self._bus.acknowledge([item])
                if self._heard is not None:
                    self._heard.take(item, self._prefix)
            case _:
                return isinstance(item, LookRequest)
        return True
