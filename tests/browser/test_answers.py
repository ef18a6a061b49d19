"""A person answers agents from the page: yes, no, one of several, and not what has changed meanwhile."""

import re

from playwright.sync_api import Route, expect

from tests.browser.dialogs import ask_another, ask_for_permission, press, tell, wait_for_screen
from tests.browser.visits import BoardVisit
from tests.fixtures.fleet import RunningFleet


def test_yes_and_no_reach_the_agent(board: BoardVisit, shared_fleet: RunningFleet) -> None:
    ask_for_permission(shared_fleet, "asker", "rm -r build")
    panel = board.panel("asker")
    expect(panel.locator("pre")).to_contain_text("Do you allow this? ask rm -r build")
    expect(board.card("asker")).to_have_count(0)  # its question stands for it
    panel.locator("[data-action=approve]").click()
    expect(panel.locator("[data-outcome=done]")).to_contain_text("asker was told yes")
    wait_for_screen(shared_fleet, "asker", "* allowed")
    expect(board.column("waiting").locator('[data-card="asker"]')).to_be_visible()

    ask_for_permission(shared_fleet, "asker", "rm -r source")
    panel = panel.filter(has_text="rm -r source")  # the other one stays for a moment, with its outcome
    panel.locator("[data-action=deny]").click()
    expect(panel.locator("[data-outcome=done]")).to_contain_text("asker was told no")
    wait_for_screen(shared_fleet, "asker", "* refused")
    board.point_nowhere()
    expect(panel).to_have_count(0)


def test_a_question_has_its_options_as_buttons(board: BoardVisit, shared_fleet: RunningFleet) -> None:
    tell(shared_fleet, "chooser", "choose Which way? | Dual writes for a week | Copy at night")
    panel = board.panel("chooser")
    expect(panel.locator("[data-action=answer]")).to_have_count(0)  # which is where it can be denied, too
    board.open("chooser")
    in_drawer = board.drawer.locator("[data-action=answer]")
    expect(in_drawer).to_have_text(["1Dual writes for a week", "2Copy at night"])
    in_drawer.nth(1).click()
    expect(board.drawer.locator("[data-outcome=done]").first).to_contain_text("chooser was answered")
    wait_for_screen(shared_fleet, "chooser", "Copy at night")
    expect(panel).to_have_count(0)


def test_an_answer_to_another_dialog_is_refused_and_the_page_says_so(
    board: BoardVisit, shared_fleet: RunningFleet
) -> None:
    """The dialog changes while the answer is on its way."""
    ask_for_permission(shared_fleet, "changer", "a small thing")

    def change_first(route: Route) -> None:
        ask_another(shared_fleet, "changer", "a large thing")
        route.continue_()

    board.page.route("**/api/commands", change_first)
    panel = board.panel("changer").filter(has_text="a small thing")
    panel.locator("[data-action=approve]").click()
    expect(panel.locator("[data-outcome=refused]")).to_contain_text("refused")
    expect(panel.locator("[data-outcome=refused]")).to_contain_text("not the one that was meant")
    board.page.unroute("**/api/commands")
    assert "Do you allow this? ask a large thing" in shared_fleet.screen("changer")
    assert "allowed" not in shared_fleet.screen("changer")
    new = board.panel("changer").filter(has_text="a large thing")
    new.locator("[data-action=approve]").click()
    expect(new.locator("[data-outcome=done]")).to_be_visible()
    wait_for_screen(shared_fleet, "changer", "* allowed")


def test_a_question_that_was_answered_at_the_terminal_goes_away(board: BoardVisit, shared_fleet: RunningFleet) -> None:
    ask_for_permission(shared_fleet, "caller", "rm -r build")
    expect(board.panel("caller")).to_be_visible()
    expect(board.page).to_have_title(re.compile(r"^\(\d+\) .* · Muster$"))
    press(shared_fleet, "caller", "2")
    expect(board.panel("caller")).to_have_count(0)
