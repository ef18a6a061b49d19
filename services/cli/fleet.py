"""What most verbs begin with: the fleet that is meant, and whether it is up."""

import argparse
import sys

from services.cli import supervision
from shared.fleet import Fleet, find_fleet_file, load_fleet


def open_fleet(options: argparse.Namespace) -> Fleet:
    return load_fleet(find_fleet_file(options.fleet))


def is_up(fleet: Fleet) -> bool:
    return supervision.SUPERVISOR in supervision.pids(fleet)


def say(text: str) -> None:
    """For people, beside what a script may read."""
    print(f"muster: {text}", file=sys.stderr, flush=True)
