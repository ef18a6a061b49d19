"""Which conversation a running agent is in: what every reader answers."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from shared.processes import Process, Processes


@dataclass(frozen=True)
class Identity:
    """The conversation that a process is in, by the agent's own files."""

    conversation: str
    transcript: Path | None = None
    """The file that keeps it, once it is there."""
    workspace: Path | None = None
    """Where the agent works, if it says so."""
    status: str | None = None
    """What the agent's live file says of it, in its own words: busy, idle, waiting, shell."""


IdentityReader = Callable[[Processes, Process, Path], Identity | None]
"""From a look, the agent's process in it, and its workspace. None unless it is certain.

Never raises for what files hold.
"""
