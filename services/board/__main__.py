"""Builds the board with its page, and runs it."""

import argparse
import atexit
import sys
from dataclasses import replace
from pathlib import Path

from services.board.agent_views import AgentViews
from services.board.feed import BoardFeed
from services.board.page_commands import PageCommands
from services.board.page_source import BoardSource
from services.board.screens import PageScreens
from services.board.service import Board
from services.board.web.server import BoardServer
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.fleet.declaration import BoardSettings
from shared.runtime.bootstrap import ServiceContext, parser_for, serve_fleet

PAGE = Path(__file__).parent / "page"


def build(context: ServiceContext, options: argparse.Namespace) -> Board:
    feed = BoardFeed()
    commands = PageCommands(context.fleet.journal, context.nudge, context.log)
    board = Board(context.fleet_file, context.journal, feed, commands, lambda: screens.fault, lambda: _serve(server))
    screens = PageScreens(lambda: context.fleet, board.backend_of, feed, context.nudge, context.log)
    views = AgentViews(lambda: context.fleet, lambda: board.records, commands, feed.comments_of)
    source = BoardSource(feed, board, commands, views, screens)
    server = BoardServer(_published(context.fleet, options.published_port), source, PAGE, context.log)
    screens.start()
    atexit.register(server.stop)
    atexit.register(screens.close)
    context.fleet_file.watch(context.nudge)
    return board


def _serve(server: BoardServer) -> str:
    """Serve the page, unless it is served already; returns why it can't be."""
    try:
        if not server.is_running:
            server.start()
    except MusterError as error:
        return str(error)
    return ""


def _published(fleet: Fleet, port: int | None) -> Fleet:
    """The fleet with a page that listens for a container's network, and is reached by the host's loopback."""
    if port is None:
        return fleet
    settings = BoardSettings(listen=f"0.0.0.0:{port}", public_url=f"http://127.0.0.1:{port}")
    return replace(fleet, declared=fleet.declared.model_copy(update={Board.name: settings}))


def main() -> int:
    parser = parser_for(Board.name)
    parser.add_argument(
        "--published-port",
        type=int,
        metavar="PORT",
        help="listen on all addresses of a container, whose port the host publishes on loopback at the same number",
    )
    options = parser.parse_args()
    return serve_fleet(options.fleet, Board.name, lambda context: build(context, options))


if __name__ == "__main__":
    sys.exit(main())
