"""What most verbs begin with: the fleet that `--fleet` names, whether it is up, and a way to tell people."""

import argparse
import contextlib
import sys

from shared.client.processes import SUPERVISOR, load_fleet_leniently, pids
from shared.fleet import Fleet, find_fleet_file, load_fleet


def open_fleet(options: argparse.Namespace) -> Fleet:
    return load_fleet(find_fleet_file(options.fleet))


def open_fleet_leniently(options: argparse.Namespace) -> tuple[Fleet, str]:
    """The fleet, and what is wrong with its file: then the file of the last `up` counts."""
    return load_fleet_leniently(find_fleet_file(options.fleet))


def is_up(fleet: Fleet) -> bool:
    return SUPERVISOR in pids(fleet)


def say(text: str) -> None:
    """Tell people something, apart from the output that a script reads. If standard error is closed, go on."""
    with contextlib.suppress(OSError, ValueError):
        print(f"muster: {text}", file=sys.stderr, flush=True)
