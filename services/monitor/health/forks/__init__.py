"""How each kind of agent is copied and asked."""

from collections.abc import Mapping

from services.monitor.health.forks import claude, codex, demo, gemini, opencode
from services.monitor.health.forks.fork import (
    Answered,
    CannotAsk,
    Ended,
    Failed,
    Fork,
    NoAnswer,
    Original,
    Prepared,
    Result,
    Said,
)

FORKS: Mapping[str, Fork] = {
    "claude": claude.FORK,
    "codex": codex.FORK,
    "demo": demo.FORK,
    "gemini": gemini.FORK,
    "opencode": opencode.FORK,
}
"""By `ask.kind` of the backend."""

__all__ = [
    "FORKS",
    "Answered",
    "CannotAsk",
    "Ended",
    "Failed",
    "Fork",
    "NoAnswer",
    "Original",
    "Prepared",
    "Result",
    "Said",
]
