"""`muster status`: what runs, from the registry file and the bus, and what of it is hearsay."""

import argparse
import shutil
import sys
from contextlib import closing
from datetime import UTC, datetime

from services.cli import exit_codes
from services.cli.report import Report, ReportReader
from services.cli.status_filter import ACTIVITIES, ANY, DRIFTS, STATUSES, Choice, split
from services.cli.status_view import View
from services.cli.words import Paint
from shared.client.presence import Glance, may_answer
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
    choice = Choice(
        agents=tuple(options.agent),
        statuses=split(options.status),
        doing=split(options.doing),
        backends=split(options.backend),
        wanted=options.wanted,
        drift=options.drift,
        ended=options.ended,
    )
    reader = ReportReader(options, history=choice.ended)
    if options.watch:
        return _watch(reader, choice, as_json=options.json)
    report = _report(reader)
    choice.check(report)
    view = View(report, choice, datetime.now(UTC))
    if options.json:
        _put(view.json(indent=2))
    else:
        print(_text(view))
    return 0 if report.all_up else exit_codes.NOT_ALL_UP


def _report(reader: ReportReader) -> Report:
    """Read the files while the broker is being reached."""
    if not may_answer(reader.fleet):
        return reader.report()
    with closing(Glance(reader.fleet)) as glance:
        report = reader.report()
        expected = [name for name in reader.fleet.services if name in report.pids]
        return report.heard(glance.result(BROKER_ANSWERS_WITHIN_S, expected))


def _text(view: View) -> str:
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    return view.text(Paint(sys.stdout), columns)


def _put(document: bytes) -> None:
    """JSON is UTF-8, whatever the terminal is."""
    sys.stdout.flush()
    sys.stdout.buffer.write(document + b"\n")


def _watch(reader: ReportReader, choice: Choice, *, as_json: bool) -> int:
    from services.cli.status_watch import watch_on_screen, watch_plainly  # noqa: PLC0415 - not for who looks once

    choice.check(reader.report())
    if as_json:
        return watch_plainly(reader, choice, lambda view: _put(view.json()))
    if sys.stdout.isatty():
        return watch_on_screen(reader, choice)
    return watch_plainly(reader, choice, lambda view: print(f"{view.now.astimezone():%H:%M:%S}\n{_text(view)}\n"))
