"""`muster peek`: ask a copy of an agent's conversation how the work is. The agent itself is not disturbed."""

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from services.cli.fleet_option import is_up, open_fleet
from services.cli.request import answer_to, check_name
from services.cli.words import Paint, plain
from shared.contract.commands import Peek
from shared.contract.topics import first_fault
from shared.errors import MusterError

MARGIN_S = 15.0
"""How much longer than the answer may take the CLI waits for it."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", help="the agent's name")
    parser.add_argument("--ask", metavar="QUESTION", help="instead of how the work is")
    parser.add_argument("--model", help="instead of the cheap one")
    parser.add_argument(
        "--timeout", type=float, metavar="S", help="how long the answer may take (watch.health.timeout_s)"
    )
    parser.add_argument("--json", action="store_true", help="print all of it as one JSON document")
    parser.add_argument(
        "--wait", type=float, metavar="S", help=f"how long to wait for it here ({MARGIN_S:g} s more than that)"
    )


def run(options: argparse.Namespace) -> int:
    fleet = open_fleet(options)
    check_name(options.agent)
    if not is_up(fleet):
        raise MusterError("the services are not running, so nobody can be asked; start them with: muster up")
    try:
        command = Peek(agent=options.agent, question=options.ask, model=options.model, timeout_s=options.timeout)
    except ValidationError as error:
        raise MusterError(f"peek can't be sent: {first_fault(error)}") from error
    declared = fleet.agents.get(options.agent)
    takes_s = options.timeout or (declared.watch.health.timeout_s if declared is not None else 0.0)
    reply = answer_to(fleet, command, wait_s=options.wait if options.wait is not None else takes_s + MARGIN_S)
    print(json.dumps(reply.result) if options.json else as_text(reply.result, Paint(sys.stdout)))
    return 0


def as_text(found: Mapping[str, Any], paint: Paint) -> str:
    """For people: the state, its summary, then the output."""
    by = f" (by {plain(str(found['model']))}, {found['seconds']:.1f} s)" if found.get("model") else ""
    if not found.get("state"):
        return f"{paint.bold(plain(found['agent']))} says{by}:\n{_lines(found['text'])}"
    lines = [f"{paint.bold(plain(found['agent']))} is {paint.status(plain(found['state']))}{by}"]
    lines += [plain(found["summary"])] if found.get("summary") else []
    lines += ["", _lines(found["output"])] if found.get("output") else []
    return "\n".join(lines)


def _lines(text: str) -> str:
    return "\n".join(plain(line) for line in text.splitlines())
