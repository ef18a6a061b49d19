"""What the web server needs of the service behind it."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from services.board.feed import BoardFeed
from shared.contract.commands import Command

FINAL = frozenset({"done", "refused", "lost"})


@dataclass(frozen=True)
class CommandProgress:
    """What became of a command that a page sent."""

    id: str
    verb: str
    agent: str | None
    state: str
    """`sent` or `waiting`, or one of `FINAL`."""
    said: str
    time: datetime


class PageSource(Protocol):
    """The service as the web server sees it. Every method is called from the web server's threads."""

    @property
    def feed(self) -> BoardFeed: ...

    def submit(self, command: Command, by: str) -> str:
        """Send a command and return its id. Raises MusterError with a sentence if it can't be taken."""

    def progress(self, command_id: str) -> CommandProgress | None:
        """How far a command is; None if it is not known (any more). It must not block."""

    def about(self, agent: str, what: str) -> dict[str, Any] | None:
        """Its comments, timeline, evidence, transcript or record; None if there is no such agent. May take seconds."""

    def day(self) -> dict[str, Any]:
        """What each agent did in the last 24 hours. It may take seconds."""

    def screen(self, agent: str) -> dict[str, Any]:
        """Its screen; it may take milliseconds."""

    def subscribe_progress(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` from any thread when a command came further, until the returned function is called."""
