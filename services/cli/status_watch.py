"""`muster status --watch`: the fleet as it changes, in a live screen or printed line by line."""

import signal
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime

from services.cli.live_screen import SUSPEND, LiveScreen
from services.cli.status_filter import StatusFilter
from services.cli.status_view import StatusView
from services.cli.words import Paint
from shared.client.snapshot import FleetWatch, SnapshotReader
from shared.messaging.inbox import Inbox, Item, LookRequest, QuitSignal


def watch_on_screen(reader: SnapshotReader, filters: StatusFilter) -> int:
    """Draw until a person leaves: 0 by `q`, else what a shell expects after the signal."""
    inbox = Inbox()
    paint = Paint(sys.stdout)
    ended_by = 0

    def take(item: Item) -> None:
        nonlocal ended_by
        match item:
            case QuitSignal(signal=number):
                ended_by = number
                watch.end()
            case LookRequest(why=why) if why == SUSPEND:
                screen.suspend()

    with closing(FleetWatch(reader, inbox, take)) as watch, LiveScreen(inbox) as screen:
        for snapshot in watch.snapshots():
            size = screen.size()
            screen.draw(StatusView(snapshot, filters, datetime.now(UTC)).frame(paint, size.columns, size.lines))
        return 128 + ended_by if ended_by else 0


def watch_plainly(reader: SnapshotReader, filters: StatusFilter, show: Callable[[StatusView], None]) -> int:
    """Print again whenever more changed than the time, until a signal."""
    inbox, ended_by = Inbox(), 0
    printed: object = None

    def take(item: Item) -> None:
        nonlocal ended_by
        if isinstance(item, QuitSignal):
            ended_by = item.signal
            watch.end()

    def quit_by(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_DFL)  # the second one ends it also while nobody reads what it prints
        inbox.put(QuitSignal(number))

    with closing(FleetWatch(reader, inbox, take)) as watch:
        for number in (signal.SIGINT, signal.SIGTERM):  # raised as exceptions they could be lost in a callback
            signal.signal(number, quit_by)
        for snapshot in watch.snapshots():
            view = StatusView(snapshot, filters, datetime.now(UTC))
            if (news := view.news()) != printed:
                printed = news
                show(view)
                sys.stdout.flush()
    return 128 + ended_by if ended_by else 0
