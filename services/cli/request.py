"""Asking a fleet in the words of the CLI: what a command waits for is printed, and who asks is recorded."""

import getpass
import os

from services.cli.fleet_option import say
from services.cli.words import plain
from shared.client import request
from shared.contract.commands import Command, Reply
from shared.errors import MusterError
from shared.fleet import Fleet


def ask(fleet: Fleet, command: Command, *, wait_s: float = 20.0) -> Reply:
    return request.ask(
        fleet, command.model_copy(update={"by": asker()}), wait_s=wait_s, on_wait=lambda said: say(plain(said))
    )


def answer_to(fleet: Fleet, command: Command, *, wait_s: float) -> Reply:
    """As `ask`, for who wants to know something: a refusal ends it."""
    reply = ask(fleet, command, wait_s=wait_s)
    if not reply.ok:
        raise MusterError(plain(reply.said))
    return reply


def asker() -> str:
    """Who is at the keyboard, for the audit log."""
    try:
        return f"{getpass.getuser()} (cli)"
    except (KeyError, OSError):  # a user that the system has no name for, as in containers
        return f"uid {os.getuid()} (cli)"
