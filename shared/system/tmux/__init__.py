"""tmux: the only package that runs it. Start with `client`."""

from shared.system.tmux.client import Tmux
from shared.system.tmux.control import TmuxAnswer
from shared.system.tmux.errors import (
    AlreadyStamped,
    NoSession,
    NotTyped,
    SessionExists,
    TmuxMissing,
    TmuxUnavailable,
    WrongSpawn,
)
from shared.system.tmux.log_pipe import LogPipe
from shared.system.tmux.rows import Pane, PaneStamp, left_name

__all__ = [
    "AlreadyStamped",
    "LogPipe",
    "NoSession",
    "NotTyped",
    "Pane",
    "PaneStamp",
    "SessionExists",
    "Tmux",
    "TmuxAnswer",
    "TmuxMissing",
    "TmuxUnavailable",
    "WrongSpawn",
    "left_name",
]
