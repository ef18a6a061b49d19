"""The page with a service behind it that only a test moves: what it says when it can't know."""

import io
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

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


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedPage]:
    made = ServedPage(tmp_path)
    yield made
    made.server.stop()


def test_a_board_that_was_started_anew_leaves_no_question_stuck(browser: Browser, served: ServedPage) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        served.open(page)
        with page.expect_response("**/api/commands"):
            page.locator("[data-question] [data-action=approve]").click()
        expect(page.locator("[data-question] [data-outcome=sent]")).to_be_visible()
        served.server.stop()
        served.start()
        expect(page.locator("[data-question] [data-outcome=lost]")).to_contain_text("look before you ask again")
        page.locator("[data-question] [data-action=again]").click()
        expect(page.locator("[data-question] [data-action=approve]")).to_be_enabled()


def test_a_command_without_an_answer_is_not_said_to_be_refused(browser: Browser, served: ServedPage) -> None:
    with browser.new_context() as context:
        page = context.new_page()
        served.open(page)
        approve = page.locator("[data-question] [data-action=approve]")
        expect(approve).to_be_enabled()
        page.route("**/api/commands", lambda route: route.abort())
        approve.click()
        expect(page.locator("[data-question] [data-outcome=lost]")).to_contain_text("it may have been done")


def test_comments_that_are_counted_anew_are_unread(browser: Browser, served: ServedPage) -> None:
    """The agent was deleted and made again, or the journal was: what was seen of the old comments says nothing."""
    works = ASKS.model_copy(update={"column": CardColumn.WORKING, "question": None, "comments": 3, "notable": 3})
    served.source.feed.put_cards({"builder": card_document(works)})
    with browser.new_context() as context:
        context.add_init_script("localStorage.setItem('muster-seen', '{\"builder\": 12}')")
        page = context.new_page()
        served.open(page)
        expect(page.locator("[data-card=builder] .unread")).to_have_text("3")
