"""The page by keys alone."""

from playwright.sync_api import expect

from tests.browser.dialogs import ask_for_permission, wait_for_screen
from tests.browser.visits import BoardVisit
from tests.fixtures.fleet import RunningFleet

PRESS_WHEN_IT_COMES = """
(name) => new MutationObserver((_, observer) => {
  if (!document.querySelector(`[data-question="${name}"]`)) return;
  observer.disconnect();
  document.activeElement.dispatchEvent(new KeyboardEvent("keydown", { key: "a", bubbles: true }));
  window.wasReady = !document.querySelector(`[data-question="${name}"] [data-action=approve]`).disabled;
}).observe(document.body, { childList: true, subtree: true })
"""


def test_search_move_open_and_back(board: BoardVisit) -> None:
    page = board.page
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("reader")
    expect(page.locator("[data-card]")).to_have_count(1)
    page.keyboard.press("Escape")
    expect(page.locator("#search")).to_have_value("")
    expect(page.locator("#search")).not_to_be_focused()
    expect(board.card("drifter")).to_be_visible()

    cards = board.column("waiting").locator("[data-card]")
    page.keyboard.press("ArrowDown")
    expect(cards.first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(cards.nth(1)).to_be_focused()
    page.keyboard.press("ArrowUp")
    expect(cards.first).to_be_focused()
    name = cards.first.get_attribute("data-card")
    page.keyboard.press("o")
    expect(board.drawer).to_have_attribute("data-drawer", name or "")
    page.keyboard.press("Escape")
    expect(board.drawer).to_have_count(0)
    expect(cards.first).to_be_focused()
    page.keyboard.press("s")
    expect(board.drawer.locator("textarea[name=send]")).to_be_focused()
    page.keyboard.type("ado?/")
    expect(board.drawer.locator("textarea[name=send]")).to_have_value("ado?/")
    page.keyboard.press("Escape")
    page.keyboard.press("c")
    expect(board.drawer.locator("textarea[name=comment]")).to_be_focused()
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    expect(board.drawer).to_have_count(0)

    page.keyboard.press("?")
    expect(page.locator("dialog[open]")).to_contain_text("move between questions and cards")
    page.keyboard.press("Escape")
    expect(page.locator("dialog[open]")).to_have_count(0)


def test_approve_and_deny(board: BoardVisit, shared_fleet: RunningFleet) -> None:
    page, panel = board.page, board.panel("pressed")
    for what, key, said in (("build", "a", "* allowed"), ("source", "d", "* refused")):
        ask_for_permission(shared_fleet, "pressed", f"rm -r {what}")
        asked = panel.filter(has_text=f"rm -r {what}")
        expect(asked.locator("[data-action=approve]")).to_be_enabled()
        asked.focus()
        page.keyboard.press(key)
        expect(asked.locator("[data-outcome=done]")).to_be_visible()
        wait_for_screen(shared_fleet, "pressed", said)


def test_a_key_that_was_meant_for_something_else_answers_nothing(board: BoardVisit, shared_fleet: RunningFleet) -> None:
    sent = board.commands_sent()
    board.page.evaluate(PRESS_WHEN_IT_COMES, "quick")
    ask_for_permission(shared_fleet, "quick", "rm -r build")
    panel = board.panel("quick")
    expect(panel.locator("[data-action=approve]")).to_be_enabled()
    assert board.page.evaluate("window.wasReady") is False, "the key came before anybody could have read it"
    assert sent == []
    assert "Do you allow this?" in shared_fleet.screen("quick")
    panel.focus()
    board.page.keyboard.press("a")
    expect(panel.locator("[data-outcome=done]")).to_be_visible()
    assert [each["verb"] for each in sent] == ["approve"]
