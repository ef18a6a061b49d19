"""Who gets in: links that work once, sessions that only look, and the end of all of them."""

from playwright.sync_api import Page, expect

from tests.browser.dialogs import ask_for_permission, wait_for_screen
from tests.browser.visits import VisitedBoard
from tests.fixtures.fleet import RunningFleet


def test_a_link_works_once_and_leaves_no_trace_in_the_address(
    shared_board: VisitedBoard, shared_fleet: RunningFleet
) -> None:
    link = shared_fleet.cli("board", "--url").stdout.strip()
    with shared_board.stranger() as first:
        first.page.goto(link)
        first.wait_for_agents()
        assert "#" not in first.page.url
        first.page.reload()
        first.wait_for_agents()
    with shared_board.stranger() as second:
        second.announce("401")
        second.page.goto(link)
        expect(second.page.locator("[data-gate-said]")).to_have_text(
            "This link was used already or is too old; run `muster board` for a new one."
        )
        assert "asker" not in second.page.content()
        second.page.reload()
        expect(second.page.locator("main")).to_contain_text("Run muster board in a terminal")
        _paste(second.page, shared_board.link())
        second.wait_for_agents()


def test_a_session_that_only_looks_says_how_to_unlock_it(
    shared_board: VisitedBoard, shared_fleet: RunningFleet
) -> None:
    ask_for_permission(shared_fleet, "locked", "rm -r build")
    with shared_board.visit(acts=False) as visit:
        visit.announce("403")
        page, panel = visit.page, visit.panel("locked")
        expect(panel.locator("pre")).to_contain_text("ask rm -r build")
        expect(page.locator(".lock")).to_have_text("looking only")
        panel.locator("[data-action=approve]").click()
        dialog = page.locator("dialog[open]")
        expect(dialog).to_contain_text("muster board --act")
        assert "Do you allow this?" in shared_fleet.screen("locked")
        dialog.locator("[data-action=login]").click()
        _paste(page, shared_fleet.cli("board", "--url", "--act").stdout.strip())
        expect(dialog).to_have_count(0)
        expect(page.locator(".lock")).to_contain_text("may act until")
        # What was asked before is not done by itself.
        assert "Do you allow this?" in shared_fleet.screen("locked")
        expect(panel.locator("[data-outcome]")).to_have_count(0)
        panel.locator("[data-action=approve]").click()
        expect(panel.locator("[data-outcome=done]")).to_be_visible()
        wait_for_screen(shared_fleet, "locked", "* allowed")

        page.locator(".lock").click()
        dialog.locator("[data-action=lock]").click()
        expect(page.locator(".lock")).to_have_text("looking only")
    shared_board.forget_sessions()


def test_an_acting_link_unlocks_the_page_that_is_open(shared_board: VisitedBoard, shared_fleet: RunningFleet) -> None:
    with shared_board.visit(acts=False) as visit:
        expect(visit.page.locator(".lock")).to_have_text("looking only")
        visit.page.goto(shared_board.link(acts=True))
        expect(visit.page.locator(".lock")).to_contain_text("may act until")
        before = visit.context.cookies()
        visit.page.reload()
        visit.wait_for_agents()
        assert visit.context.cookies() == before, "it is the same session"
    shared_board.forget_sessions()


def test_revoking_ends_an_open_page_by_itself(shared_board: VisitedBoard, shared_fleet: RunningFleet) -> None:
    with shared_board.visit() as visit:
        visit.announce("401")
        said = shared_fleet.cli("board", "--revoke").stdout
        shared_board.forget_sessions()
        assert said.startswith("ended ")
        expect(visit.page.locator("[data-gate=login]")).to_be_visible()
        assert "drifter" not in visit.page.content(), "nothing of the fleet stays"
        visit.page.reload()
        expect(visit.page.locator("[data-gate=login]")).to_be_visible()
        visit.page.goto(shared_board.link())
        visit.wait_for_agents()


def _paste(page: Page, link: str) -> None:
    page.locator("[name=token]").fill(link)
    page.locator("[data-action=login]").click()
