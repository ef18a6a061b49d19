"""What every command of the spawner has in common: who asked, its spawn id, how it is deferred or refused."""

import hashlib

from services.spawner.view import SpawnerView
from shared.contract.commands import Send
from shared.errors import MusterError
from shared.messaging.journal import Request
from shared.runtime.turn import PendingCommand


class Refusal(MusterError):
    """A command that can't be carried out now."""

    code = "refused"


class Overtaken(Refusal):
    """Another command came for the agent while this one waited."""

    code = "overtaken"


ANSWERED_WITHIN_S = 600.0
"""A deferred command expires so long after the time that its sender gave it. Until then the spawner answers it."""


def by(pending: PendingCommand) -> str:
    return f"asked for by {pending.command.by}" if pending.command.by else "asked for"


def spawn_of(request: Request) -> str:
    """The spawn id that follows from this request: the same after a crash, so that its session is recognised."""
    return hashlib.sha256(f"{request.id}:{request.asked}".encode()).hexdigest()[:19]


def defer(view: SpawnerView, pending: PendingCommand, said: str) -> None:
    """Leave a command open, and say what it waits for."""
    wait_s = pending.command.wait_s if isinstance(pending.command, Send) else 0.0
    view.turn.defer(pending, said, view.time(pending.request.asked + wait_s + ANSWERED_WITHIN_S))
