"""The real page, with a service behind it that only a test moves."""

import io
from pathlib import Path

from playwright.sync_api import Page

from services.board.__main__ import PAGE
from services.board.documents import card_document
from services.board.web.server import BoardServer
from shared.client.board_access import BoardAccess
from shared.contract.states import CardColumn, CardQuestion, CardState
from shared.system.log import Log
from tests.fakes.fleets import WrittenFleet
from tests.fakes.pages import FakePageSource
from tests.fakes.records import START

ASKS = CardState(
    card="builder",
    agent="builder",
    column=CardColumn.NEEDS_YOU,
    since=START,
    headline="Asks a person",
    backend="demo",
    status="running",
    question=CardQuestion(since=START, reason="it asks", dialog="Allow?", fingerprint="f1", can=["approve", "deny"]),
)


class ServedPage:
    """The real page, and a service behind it that answers nothing."""

    def __init__(self, directory: Path) -> None:
        self.fleet = WrittenFleet(directory, {"builder": {}}).file.fleet
        self.start()

    def start(self) -> None:
        self.source = FakePageSource()
        self.source.feed.put_cards({"builder": card_document(ASKS)})
        self.server = BoardServer(self.fleet, self.source, PAGE, Log("board", io.StringIO()))
        self.port = self.server.start()

    def open(self, page: Page) -> None:
        page.goto(f"http://127.0.0.1:{self.port}/#{BoardAccess(self.fleet.home).make_link(acts=True)}")
