"""What every command has in common: who asks, which session it leads to, and how it is kept waiting."""

import hashlib

from services.spawner.scene import Scene
from shared.commands import Send
from shared.errors import MusterError
from shared.journal import Request
from shared.turn import Asked

HELD_FOR_S = 600.0
"""Beyond the time that the sender gives it: until then it is we who answer."""


def sentence(error: Exception) -> str:
    """What went wrong, for who asked. What nobody foresaw is named by its kind."""
    return str(error) if isinstance(error, MusterError | OSError) else f"{type(error).__name__}: {error}"


def by(asked: Asked) -> str:
    return f"asked for by {asked.command.by}" if asked.command.by else "asked for"


def spawn_of(request: Request) -> str:
    """The spawn id that this request leads to. The same after a crash, so that what was begun is recognised."""
    return hashlib.sha256(f"{request.id}:{request.asked}".encode()).hexdigest()[:19]


def hold(scene: Scene, asked: Asked, said: str) -> None:
    """Keep a command waiting, and say what for."""
    wait_s = asked.command.wait_s if isinstance(asked.command, Send) else 0.0
    until = asked.request.asked + wait_s + HELD_FOR_S
    scene.turn.hold(asked, said, scene.turn.now.fromtimestamp(until, scene.turn.now.tzinfo))
