"""`muster status`: what runs, from the registry file (else the journal) and the bus, once or as it changes."""

import argparse
import sys
from contextlib import closing
from datetime import UTC, datetime

from services.cli import exit_codes
from services.cli.status_filter import ACTIVITIES, ANY, DRIFTS, STATUSES, StatusFilter, split
from services.cli.status_view import StatusView
from services.cli.words import Paint, terminal_columns
from shared.client.presence import PresenceQuery, may_answer
from shared.client.snapshot import Snapshot, SnapshotReader
from shared.contract.states import Desired

BROKER_ANSWERS_WITHIN_S = 1.0


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", nargs="*", help="only these agents")
    parser.add_argument("--status", metavar="STATUS,…", help=f"only agents that are {', '.join(STATUSES)}")
    parser.add_argument("--doing", metavar="WHAT,…", help=f"only agents that are {', '.join(ACTIVITIES)}")
    parser.add_argument("--backend", metavar="BACKEND,…", help="only agents that run on these")
    parser.add_argument("--wanted", choices=[each.value for each in Desired], help="only agents that are wanted so")
    parser.add_argument(
        "--drift",
        nargs="?",
        const=ANY,
        metavar="KIND",
        help=f"only agents with open drifts, or with one of a kind: {', '.join(DRIFTS)}",
    )
    parser.add_argument("--ended", action="store_true", help="also show the sessions that ended, newest first, and how")
    parser.add_argument("--watch", action="store_true", help="go on showing it as it changes, until q or Ctrl-C")
    parser.add_argument("--json", action="store_true", help="print everything as one JSON document")


def run(options: argparse.Namespace) -> int:
    filters = StatusFilter(
        agents=tuple(options.agent),
        statuses=split(options.status),
        doing=split(options.doing),
        backends=split(options.backend),
        wanted=options.wanted,
        drift=options.drift,
        ended=options.ended,
    )
    reader = SnapshotReader(options.fleet, history=filters.ended)
    if options.watch:
        return _watch(reader, filters, as_json=options.json)
    snapshot = _snapshot(reader)
    filters.check(snapshot)
    view = StatusView(snapshot, filters, datetime.now(UTC))
    if options.json:
        _put(view.json(indent=2))
    else:
        print(_text(view))
    return 0 if snapshot.all_up else exit_codes.NOT_ALL_UP


def _snapshot(reader: SnapshotReader) -> Snapshot:
    """Read the files while the connection to the broker is made."""
    if not may_answer(reader.fleet):
        return reader.take()
    with closing(PresenceQuery(reader.fleet)) as query:
        snapshot = reader.take()
        expected = [name for name in reader.fleet.services if name in snapshot.pids]
        return snapshot.with_bus(query.result(BROKER_ANSWERS_WITHIN_S, expected))


def _text(view: StatusView) -> str:
    return view.text(Paint(sys.stdout), terminal_columns())


def _put(document: bytes) -> None:
    """JSON is UTF-8, whatever the terminal is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(document + b"\n")


def _watch(reader: SnapshotReader, filters: StatusFilter, *, as_json: bool) -> int:
    from services.cli.status_watch import watch_on_screen, watch_plainly  # noqa: PLC0415 - not needed to look once

    filters.check(reader.take())
    if as_json:
        return watch_plainly(reader, filters, lambda view: _put(view.json()))
    if sys.stdout.isatty():
        return watch_on_screen(reader, filters)
    return watch_plainly(reader, filters, lambda view: print(f"{view.now.astimezone():%H:%M:%S}\n{_text(view)}\n"))
