"""The page with a service behind it that only a test moves: what it says when it can't know."""

from playwright.sync_api import Browser, expect

from services.board.documents import card_document
from shared.contract.states import CardColumn
from tests.browser.served_page import ASKS, ServedPage


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
