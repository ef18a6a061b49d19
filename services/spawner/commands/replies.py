"""What every command has in common: who asked, which spawn id it leads to, how it is deferred or refused."""

import hashlib

from services.spawner.view import SpawnerView
from shared.contract.commands import Send
from shared.errors import MusterError
from shared.messaging.journal import Request
from shared.runtime.turn import PendingCommand


class Refusal(MusterError):
    """A command that can't be carried out as things are."""

    code = "refused"


class Overtaken(Refusal):
    """Something else was asked of the agent while it waited: whoever asked first should not insist."""

    code = "overtaken"


HELD_FOR_S = 600.0
"""Beyond the time that the sender gives it: until then it is we who answer."""


def by(pending: PendingCommand) -> str:
    return f"asked for by {pending.command.by}" if pending.command.by else "asked for"


def spawn_of(request: Request) -> str:
    """The spawn id that this request leads to. The same after a crash, so that what was begun is recognised."""
    return hashlib.sha256(f"{request.id}:{request.asked}".encode()).hexdigest()[:19]


def hold(view: SpawnerView, pending: PendingCommand, said: str) -> None:
    """Keep a command waiting, and say what for."""
    wait_s = pending.command.wait_s if isinstance(pending.command, Send) else 0.0
    until = pending.request.asked + wait_s + HELD_FOR_S
    view.turn.defer(pending, said, view.turn.now.fromtimestamp(until, view.turn.now.tzinfo))
