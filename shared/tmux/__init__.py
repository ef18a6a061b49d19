"""The only package that runs tmux. One control-mode connection, exact targets, and no answer never reads as none."""

from shared.tmux.client import Tmux
from shared.tmux.control import Answer
from shared.tmux.errors import (
    AlreadyStamped,
    NoSession,
    NotTyped,
    SessionExists,
    TmuxMissing,
    TmuxUnavailable,
    WrongSpawn,
)
from shared.tmux.rows import Pane, left_name

__all__ = [
    "AlreadyStamped",
    "Answer",
    "NoSession",
    "NotTyped",
    "Pane",
    "SessionExists",
    "Tmux",
    "TmuxMissing",
    "TmuxUnavailable",
    "WrongSpawn",
    "left_name",
]
