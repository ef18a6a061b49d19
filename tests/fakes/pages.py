"""A service as the board's web server sees it, and files of a page."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from services.board.feed import BoardFeed
from services.board.web.source import CommandProgress
from shared.contract.commands import Command
from shared.errors import MusterError

INDEX = '<!doctype html><title>board</title>\n<script type="importmap">{"imports":{}}</script>\n'
HOSTILE = "a\u202eb\x1b[2J\ud800"
SHOWN = "a⟨U+202E⟩b⟨U+001B⟩[2J⟨U+D800⟩"


def write_page(directory: Path) -> Path:
    """A page with one of each kind of file."""
    (directory / "vendor").mkdir(parents=True)
    (directory / "index.html").write_text(INDEX)
    (directory / "app.js").write_text("export {}\n")
    (directory / "style.css").write_text("body {}\n")
    (directory / "icon.svg").write_text("<svg/>\n")
    (directory / "vendor" / "font.woff2").write_bytes(b"\x00")
    (directory / "vendor" / "LICENSE").write_text("MIT\n")
    return directory


class FakePageSource:
    """Remembers what was submitted. Everything may be called from any thread."""

    def __init__(self) -> None:
        self.feed = BoardFeed()
        self.submitted: list[tuple[Command, str]] = []
        self.refuses = ""
        self.screens: dict[str, dict[str, Any]] = {}
        self.screen_failure: Exception | None = None
        self.asked_screens = 0
        self.blocked = threading.Event()
        """Set: questions are answered at once. A test that clears it makes them wait."""
        self.blocked.set()
        self._progress: dict[str, CommandProgress] = {}
        self._wakes: list[Callable[[], None]] = []

    def submit(self, command: Command, by: str) -> str:
        if self.refuses:
            raise MusterError(self.refuses)
        self.submitted.append((command, by))
        command_id, agent = f"c{len(self.submitted)}", getattr(command, "agent", None)
        self._progress[command_id] = CommandProgress(
            command_id, command.verb, agent, "sent", "handed over", datetime.now(UTC)
        )
        return command_id

    def advance(self, command: str, state: str, said: str = "") -> None:
        self._progress[command] = replace(self._progress[command], state=state, said=said)
        for wake in list(self._wakes):
            wake()

    def progress(self, command_id: str) -> CommandProgress | None:
        return self._progress.get(command_id)

    def about(self, agent: str, what: str) -> dict[str, Any] | None:
        self.blocked.wait(30)
        return {what: [HOSTILE]} if agent == "builder" else None

    def day(self) -> dict[str, Any]:
        return {"start": 0, "bucket_s": 120, "columns": "ntlwisdx", "agents": {"builder": "w"}}

    def screen(self, agent: str) -> dict[str, Any]:
        self.asked_screens += 1
        if self.screen_failure is not None:
            raise self.screen_failure
        return self.screens.get(agent, {"agent": agent, "rows": [], "said": "not running"})

    def subscribe_progress(self, wake: Callable[[], None]) -> Callable[[], None]:
        self._wakes.append(wake)
        return lambda: self._wakes.remove(wake)
