"""`muster explain`: what an agent is doing, every piece of evidence for it, and which was believed and why."""

import argparse
import json
import shutil
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from services.cli.fleet_option import is_up, open_fleet
from services.cli.request import answer_to
from services.cli.tables import Column, fitted
from services.cli.words import Paint, ago, plain
from shared.contract.commands import Explain
from shared.contract.ids import is_id
from shared.errors import MusterError

WAIT_S = 20.0
SOURCES = ("hooks", "live_file", "transcript", "processes", "title", "screen")
"""In the order in which they are believed."""
COLUMNS = (
    *(Column(""), Column("SOURCE"), Column("SAYS"), Column("FOR")),
    *(Column("WHAT WAS SEEN", least=24), Column("WHAT WAS MADE OF IT", least=24)),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", help="the agent's name")
    parser.add_argument("--json", action="store_true", help="print all of it as one JSON document")
    parser.add_argument(
        "--wait", type=float, default=WAIT_S, metavar="S", help=f"how long to wait for the answer (default {WAIT_S:g})"
    )


def run(options: argparse.Namespace) -> int:
    fleet = open_fleet(options)
    if not is_id(options.agent):
        raise MusterError(f"{options.agent!r} is no agent's name: they are [a-z0-9_-], 1 to 64 long")
    if not is_up(fleet):
        raise MusterError("the services are not running, so nobody watches the agents; start them with: muster up")
    reply = answer_to(fleet, Explain(agent=options.agent), wait_s=options.wait)
    if options.json:
        print(json.dumps(reply.result))
    else:
        room = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
        print(as_text(reply.result, Paint(sys.stdout), datetime.now(UTC), room))
    return 0


def as_text(found: Mapping[str, Any], paint: Paint, now: datetime, room: int | None = None) -> str:
    """For people: the verdict first, then each source in its order, also those that say nothing; within a terminal's
    room (None: as long as it takes)."""
    status = plain(found["status"])
    since = ago((now - datetime.fromisoformat(found["since"])).total_seconds())
    program = f"{found['backend']} {found['version']}" if found.get("version") else str(found["backend"])
    lines = [
        f"{paint.bold(plain(found['agent']))} ({plain(program)}) is {paint.status(status)} for {since}",
        f"because {plain(found['reason'])}",
        "",
        *fitted(COLUMNS, _rows(found, paint), room),
    ]
    if plans := found.get("plans"):
        lines += ["", *(plain(each) for each in plans)]
    if subagents := found.get("subagents"):
        told = ", ".join(f"{plain(name)} {paint.status(plain(says))}" for name, says in subagents.items())
        lines += ["", f"subagents: {told}"]
    if health := found.get("health"):
        lines += ["", _asked(health, now)]
    return "\n".join(lines)


def _asked(health: Mapping[str, Any], now: datetime) -> str:
    """The last check of its work, by a copy of its conversation."""
    asked = ago((now - datetime.fromisoformat(health["asked"])).total_seconds())
    if health["trouble"]:
        return f"asked how its work is {asked} ago, without an answer: {plain(health['trouble'])}"
    said = f": {plain(health['summary'])}" if health["summary"] else ""
    return f"asked how its work is {asked} ago: {plain(health['state'])}{said}"


def _rows(found: Mapping[str, Any], paint: Paint) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    heard = {piece["source"]: piece for piece in found["evidence"]}
    for source in (*SOURCES, *(name for name in heard if name not in SOURCES)):
        piece = heard.get(source)
        if piece is None:
            rows.append(("", paint.dim(plain(source)), paint.dim("-"), "", paint.dim("nothing"), ""))
            continue
        rule = f" [{piece['rule']}]" if piece.get("rule") else ""
        rows.append(
            (
                paint.good("▶") if piece["believed"] else "",
                plain(source),
                paint.status(plain(piece["says"])),
                ago(piece["age_s"]),
                plain(f"{piece['why']}{rule}"),
                plain(piece["because"]),
            )
        )
    return rows
