"""Everything that the page is made of, for the web server."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from services.board.agent_views import AgentViews
from services.board.day import day_document
from services.board.feed import BoardFeed
from services.board.page_commands import PageCommands
from services.board.screens import PageScreens
from services.board.service import Board
from services.board.web.source import CommandProgress
from shared.contract.commands import Command


@dataclass(frozen=True)
class BoardSource:
    """The source of the page's data. May be called from any thread."""

    feed: BoardFeed
    board: Board
    commands: PageCommands
    views: AgentViews
    screens: PageScreens

    def submit(self, command: Command, by: str) -> str:
        return self.commands.submit(command, by)

    def progress(self, command_id: str) -> CommandProgress | None:
        return self.commands.progress(command_id)

    def subscribe_progress(self, wake: Callable[[], None]) -> Callable[[], None]:
        return self.commands.subscribe(wake)

    def about(self, agent: str, what: str) -> dict[str, Any] | None:
        return self.views.about(agent, what)

    def day(self) -> dict[str, Any]:
        return day_document(self.board.days, time.time())

    def screen(self, agent: str) -> dict[str, Any]:
        return self.screens.screen(agent)
