"""The only package that runs tmux. One control-mode connection, exact targets, and no answer never reads as none."""

from shared.tmux.client import Tmux
from shared.tmux.control import Answer
from shared.tmux.errors import NoSession, NotTyped, SessionExists, TmuxMissing, TmuxUnavailable, WrongSpawn
from shared.tmux.panes import Pane

__all__ = [
    "Answer",
    "NoSession",
    "NotTyped",
    "Pane",
    "SessionExists",
    "Tmux",
    "TmuxMissing",
    "TmuxUnavailable",
    "WrongSpawn",
]
