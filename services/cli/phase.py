"""`muster phase`: shows how far the loops that git drives are, and moves one to another phase."""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from pydantic import ValidationError

from services.cli.fleet_option import is_up, open_fleet
from services.cli.request import add_wait, answer_to, check_name
from services.cli.tables import cut
from services.cli.words import Paint, ago, plain, since, terminal_columns
from shared.contract.commands import Command, PhaseNext, PhaseSet, PhaseShow
from shared.contract.topics import first_fault
from shared.errors import MusterError

MARKS = {"done": "✓", "current": "▶", "to come": " "}


def arguments(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="show|next|set", required=True)
    show = actions.add_parser("show", help="say how far each loop is")
    following = actions.add_parser("next", help="end the phase that a loop is in, and begin the next one")
    chosen = actions.add_parser("set", help="begin a phase, whichever the loop is in")
    chosen.add_argument("phase", help="its name, or its number, counted from 1")
    for each in (show, following, chosen):
        each.add_argument("loop", nargs="?", help="the loop's name in the fleet file; may be left out if there is one")
        each.add_argument("--json", action="store_true", help="print the answer as JSON")
        add_wait(each, "it")


def run(options: argparse.Namespace) -> int:
    fleet = open_fleet(options)
    if options.loop is not None:
        check_name(options.loop, "loop")
    if not is_up(fleet):
        raise MusterError("the services are not running, so no loop goes on; start them with: muster up")
    try:
        command = _command(options)
    except ValidationError as error:
        raise MusterError(f"phase {options.action} can't be asked for: {first_fault(error)}") from error
    reply = answer_to(fleet, command, wait_s=options.wait)
    if options.json:
        print(json.dumps(reply.result))
    elif options.action == "show" and reply.result["loops"]:
        print(as_text(reply.result["loops"], Paint(sys.stdout), datetime.now(UTC), terminal_columns()))
    else:
        print(plain(reply.said))
    return 0


def _command(options: argparse.Namespace) -> Command:
    match options.action:
        case "show":
            return PhaseShow(loop=options.loop)
        case "next":
            return PhaseNext(loop=options.loop)
        case _:
            return PhaseSet(loop=options.loop, phase=options.phase)


def as_text(loops: Mapping[str, Mapping[str, Any]], paint: Paint, now: datetime, room: int | None = None) -> str:
    """For people: each loop with its phases, roles, remote, open actions and waiting messages."""
    lines = [line for name, loop in loops.items() for line in ("", *_loop(name, loop, paint, now))]
    return "\n".join(line if room is None else cut(line, room) for line in lines[1:])


def _loop(name: str, loop: Mapping[str, Any], paint: Paint, now: datetime) -> Iterator[str]:
    yield f"{paint.bold(plain(name))}  {_how_far(loop, paint, now)}"
    for phase in loop["phases"]:
        line = f"  {MARKS[phase['state']]} {phase['number']} {plain(phase['name'])}"
        yield paint.bold(line) if phase["state"] == "current" else paint.dim(line) if phase["state"] == "done" else line
    yield "  " + ", ".join(f"{plain(agent)} plays {plain(role)}" for role, agent in loop["roles"].items())
    yield f"  {_remote(loop, paint, now)}"
    for errand in loop["errands"]:
        if not errand["done"]:
            failed = f": {paint.bad(plain(errand['failure']))}" if errand["failure"] else " is under way"
            yield f"  {ERRANDS[errand['what']]} {plain(errand['agent'])}{failed}"
    for box in loop["messages"]:
        wait = "1 message waits" if box["waiting"] == 1 else f"{box['waiting']} messages wait"
        yield f"  {wait} for {plain(box['agent'])}: {plain(box['reason'])}"


ERRANDS = {"start": "the start of", "tell": "the word to", "stop": "the end of", "run": "the run of"}


def _how_far(loop: Mapping[str, Any], paint: Paint, now: datetime) -> str:
    if not loop["enabled"]:
        return paint.dim("is not enabled")
    if not loop["phases"]:
        return "has no phases"
    if loop["complete"]:
        return f"{paint.good('is complete')} since {since(loop['since'], now)}"
    if not loop["number"]:
        return "has not begun: its remote was not seen yet"
    phase, so_long = loop["phases"][loop["number"] - 1], since(loop["since"], now)
    return f"is in phase {phase['number']} of {len(loop['phases'])}, {plain(phase['name'])}, for {so_long}"


def _remote(loop: Mapping[str, Any], paint: Paint, now: datetime) -> str:
    where = f"{plain(loop['remote'])} {plain(loop['branch'])}"
    if loop["failure"]:
        again = f", asked again in {_until(loop['next'], now)}" if loop["next"] else ""
        return f"{where}: {paint.bad('does not answer')}: {plain(loop['failure'])}{again}"
    if loop["asked"] is None:
        return f"{where}: not asked yet"
    tip = "no such branch" if loop["gone"] else f"at {plain(loop['tip'][:10])}" if loop["tip"] else "not seen yet"
    return f"{where}: {tip}, asked {since(loop['asked'], now)} ago"


def _until(when: str, now: datetime) -> str:
    return ago((datetime.fromisoformat(when) - now).total_seconds())
