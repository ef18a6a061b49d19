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


FLEET = {
    "name": "shop",
    "host": "box",
    "broker": {"up": False, "said": "down: services go on by polling"},
    "services": [
        {"name": "supervisor", "status": "online", "said": ""},
        {"name": "monitor", "status": "down", "said": ""},
    ],
    "tmux": {"up": True, "said": ""},
    "faults": [],
}


def test_a_page_that_is_offline_claims_nothing_and_offers_nothing(browser: Browser, served: ServedPage) -> None:
    served.source.feed.put_fleet(FLEET)
    with browser.new_context() as context:
        page = context.new_page()
        served.open(page)
        notices, approve = page.locator("[data-notice]"), page.locator("[data-question] [data-action=approve]")
        expect(page.locator("[data-notice=service]")).to_have_text("monitor: down")
        expect(page.locator("[data-notice=broker]")).to_be_visible()
        expect(approve).to_be_enabled()
        page.goto(f"{page.url}#/agent/builder/screen")
        served.server.stop()
        expect(page.locator("[data-notice=offline]")).to_contain_text("This page is offline")
        expect(notices).to_have_count(1)
        expect(page.locator(".health .dot:not([data-state=unknown])")).to_have_count(0)
        expect(page.locator(".health")).to_have_text("brokerservices")
        expect(approve).to_be_disabled()
        expect(page.locator("[data-drawer] footer button")).to_have_count(4)
        expect(page.locator("[data-drawer] footer button:enabled")).to_have_count(0)
        assert page.locator("[data-question]").evaluate("panel => getComputedStyle(panel).opacity") != "1"

        served.start()
        expect(page.locator("[data-notice=offline]")).to_have_count(0)
        expect(approve).to_be_enabled()
        expect(page.locator("[data-drawer] footer button:enabled")).to_have_count(4)


def test_a_fleet_that_is_down_is_one_sentence(browser: Browser, served: ServedPage) -> None:
    down = [{"name": name, "status": "down", "said": "start it with: muster up"} for name in ("supervisor", "monitor")]
    served.source.feed.put_fleet({**FLEET, "services": down})
    with browser.new_context() as context:
        page = context.new_page()
        served.open(page)
        expect(page.locator("[data-notice]")).to_have_text(["The fleet is down: start it with muster up."])
