"""Sends commands for the verbs: prints what a command waits for, and records who asks."""

import argparse
import getpass
import os

from services.cli.fleet_option import say
from services.cli.words import plain
from shared.client import request
from shared.contract.commands import Command, Reply
from shared.contract.ids import is_id
from shared.errors import MusterError
from shared.fleet import Fleet

WAIT_S = 20.0


def add_wait(parser: argparse.ArgumentParser, what: str = "the answer") -> None:
    said = f"how long to wait for {what} (default {WAIT_S:g})"
    parser.add_argument("--wait", type=float, default=WAIT_S, metavar="S", help=said)


def check_name(name: str, kind: str = "agent") -> None:
    """Raise a sentence for what can't be the name of an agent or a loop."""
    if not is_id(name):
        raise MusterError(f"{name!r} is no {kind}'s name: they are [a-z0-9_-], 1 to 64 long")


def ask(fleet: Fleet, command: Command, *, wait_s: float = WAIT_S, while_it_proceeds: bool = False) -> Reply:
    return request.ask(
        fleet,
        command.model_copy(update={"by": asker()}),
        wait_s=wait_s,
        on_wait=lambda said: say(plain(said)),
        while_it_proceeds=while_it_proceeds,
    )


def answer_to(fleet: Fleet, command: Command, *, wait_s: float) -> Reply:
    """As `ask`, for a question: a refusal is raised."""
    reply = ask(fleet, command, wait_s=wait_s)
    if not reply.ok:
        raise MusterError(plain(reply.said))
    return reply


def asker() -> str:
    """The person at the keyboard, for the audit log."""
    try:
        return f"{getpass.getuser()} (cli)"
    except (KeyError, OSError):  # a user that the system has no name for, as in containers
        return f"uid {os.getuid()} (cli)"
