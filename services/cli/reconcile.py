"""`muster reconcile`: compare the record with the world now, and say what differs.

A reconciler that runs is asked. Else one is run as a child process that looks once, since services never import each
other. With `--dry-run` it writes nothing.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

from services.cli import exit_codes, supervision
from services.cli.fleet_option import open_fleet, say
from services.cli.request import add_wait, answer_to
from services.cli.tables import table
from services.cli.words import Paint, plain
from shared.contract.commands import Reconcile
from shared.contract.topics import AGENT_DRIFT, MalformedDocument
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.messaging.journal import why_not_writable
from shared.runtime.bootstrap import EXIT_BUSY

RECONCILER = "reconciler"

Document = Mapping[str, Any]


class NeedsOnce(MusterError):
    exit_code = exit_codes.USAGE


class LookFailed(MusterError):
    """The reconciler that was run for this look ended without an answer."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--once", action="store_true", help="look once, tell what is new, and print all that differs")
    parser.add_argument("--dry-run", action="store_true", help="look once and print it; nothing is told or written")
    parser.add_argument("--json", action="store_true", help="print the drifts as one JSON document")
    parser.add_argument("--exit-code", action="store_true", help="end with 1 if there are drifts")
    add_wait(parser)


def run(options: argparse.Namespace) -> int:
    fleet = open_fleet(options)
    if not (options.once or options.dry_run):
        if options.json or options.exit_code:
            raise NeedsOnce("--json and --exit-code go with --once or --dry-run: without these it goes on and on")
        return _go_on(fleet)
    document = _look(fleet, dry_run=options.dry_run, wait_s=options.wait)
    drifts = document["drifts"]
    print(json.dumps(document) if options.json else as_text(drifts, Paint(sys.stdout)))
    return exit_codes.FAILED if options.exit_code and drifts else 0


def as_text(drifts: Sequence[Document], paint: Paint) -> str:
    """A line for each drift."""
    if not drifts:
        return "the record and the world agree"
    rows = [
        (paint.bold(plain(each["agent"])), paint.status(plain(each["kind"])), _said(each), paint.dim(_state(each)))
        for each in sorted(drifts, key=lambda each: (each["agent"], each["kind"]))
    ]
    return table(rows[0], rows[1:])


def _said(drift: Document) -> str:
    try:
        return plain(AGENT_DRIFT.read_data(dict(drift)).sentence())
    except MalformedDocument:
        return ""  # a kind that this version does not know: its name is shown alone


def _state(drift: Document) -> str:
    waits = drift.get("waits")
    return plain(f"(waits: {waits})" if waits else f"({drift.get('state', 'new')})")


# --- the look ---


def _look(fleet: Fleet, *, dry_run: bool, wait_s: float) -> Document:
    # A service that can't store a question can't answer it; a look that writes nothing needs no service.
    if not _runs(fleet) or (dry_run and why_not_writable(fleet.journal)):
        if not dry_run:
            supervision.make_home(fleet)
        child = supervision.run_once(fleet, RECONCILER, "--dry-run" if dry_run else "--once")
        if child.returncode == 0:
            return _read(child.stdout)
        if child.returncode != EXIT_BUSY:
            raise LookFailed(f"{child.stderr.strip()}\nthe reconciler could not look; it ended with {child.returncode}")
        # Another reconciler was started meanwhile: ask that one.
    reply = answer_to(fleet, Reconcile(dry_run=dry_run), wait_s=wait_s)
    return {"drifts": reply.result.get("drifts", [])}


def _read(said: str) -> Document:
    try:
        document = json.loads(said)
        if isinstance(document["drifts"], list):
            return dict(document)
    except (ValueError, KeyError, TypeError):
        pass
    raise LookFailed(f"the reconciler answered what is no list of drifts: {plain(said[:200])!r}")


def _runs(fleet: Fleet) -> int | None:
    return supervision.pids(fleet).get(RECONCILER)


def _go_on(fleet: Fleet) -> int:
    pid = _runs(fleet)
    if pid is not None:
        print(
            f"the reconciler runs already (pid {pid}) and compares all the time; look now with: muster reconcile --once"
        )
        return 0
    say("comparing until Ctrl-C; `muster up` does this in the background, with all the rest")
    supervision.make_home(fleet)
    become(supervision.foreground(fleet, RECONCILER))


def become(argv: Sequence[str]) -> NoReturn:
    """Replace this process by a program, under the same pid."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(argv[0], list(argv))  # noqa: S606
