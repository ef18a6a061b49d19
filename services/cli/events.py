"""`muster events`: follow what happens, by the broker, and by the journal while no broker answers."""

import argparse
import re
import sys
import time

from services.cli.fleet_option import open_fleet, say
from services.cli.words import Paint, event_line
from shared.client.follow import follow
from shared.errors import MusterError

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the documents themselves, one a line")
    parser.add_argument("--since", metavar="TIME", help="begin with what the journal has of the last 90s, 10m, 2h, 3d")
    parser.add_argument("--seconds", type=float, metavar="N", help="end after so long")


def run(options: argparse.Namespace) -> int:
    fleet = open_fleet(options)
    paint = Paint(sys.stdout)
    since = time.time() - _length(options.since) if options.since else None
    for each in follow(fleet, since=since, seconds=options.seconds, on_broker_lost=_say_lost):
        line = each.payload if options.json else event_line(each.host, each.row, each.document, paint)
        print(line, flush=True)
    return 0


def _length(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    if found is None:
        raise MusterError(f"--since {text}: write a number and s, m, h or d, such as 10m")
    return float(found[1]) * SECONDS[found[2]]


def _say_lost() -> None:
    say("the broker is down: reading the journal")
