"""`muster explain`: what an agent is doing, every piece of evidence for it, and which was believed and why."""

import argparse
import json
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from services.cli.fleet_option import is_up, open_fleet
from services.cli.request import add_wait, answer_to, check_name
from services.cli.tables import Column, fitted
from services.cli.words import Paint, ago, plain, since, terminal_columns
from shared.contract.commands import Explain
from shared.errors import MusterError

SOURCES = ("hooks", "live_file", "transcript", "processes", "title", "screen")
"""The most trusted first."""
COLUMNS = (
    *(Column(""), Column("SOURCE"), Column("SAYS"), Column("FOR")),
    *(Column("WHAT WAS SEEN", least=24), Column("WHAT WAS MADE OF IT", least=24)),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", help="the agent's name")
    parser.add_argument("--json", action="store_true", help="print all of it as one JSON document")
    add_wait(parser)


def run(options: argparse.Namespace) -> int:
    fleet = open_fleet(options)
    check_name(options.agent)
    if not is_up(fleet):
        raise MusterError("the services are not running, so nobody watches the agents; start them with: muster up")
    reply = answer_to(fleet, Explain(agent=options.agent), wait_s=options.wait)
    if options.json:
        print(json.dumps(reply.result))
    else:
        print(as_text(reply.result, Paint(sys.stdout), datetime.now(UTC), terminal_columns()))
    return 0


def as_text(found: Mapping[str, Any], paint: Paint, now: datetime, room: int | None = None) -> str:
    """For people: the verdict, then every source in its order, within so many columns (None: as long as it takes)."""
    status = f"{paint.status(plain(found['status']))} for {since(found['since'], now)}"
    program = f"{found['backend']} {found['version']}" if found.get("version") else str(found["backend"])
    lines = [
        f"{paint.bold(plain(found['agent']))} ({plain(program)}) is {status}",
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
    asked = since(health["asked"], now)
    if health["trouble"]:
        return f"asked how its work is {asked} ago, without an answer: {plain(health['trouble'])}"
    said = f": {plain(health['summary'])}" if health["summary"] else ""
    return f"asked how its work is {asked} ago: {plain(health['state'])}{said}"


def _rows(found: Mapping[str, Any], paint: Paint) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    pieces = {piece["source"]: piece for piece in found["evidence"]}
    for source in dict.fromkeys((*SOURCES, *pieces)):
        piece = pieces.get(source)
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
