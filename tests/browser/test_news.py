"""What happens to agents is on the page without a reload; what a person does there comes back with its outcome."""

import re
import time
from datetime import datetime

from playwright.sync_api import expect

from shared.client.board_access import system_user
from tests.browser.dialogs import ask_for_permission, press, tell, wait_for_screen
from tests.browser.visits import BoardVisit
from tests.fixtures.fleet import RunningFleet

POLL_S = 30.0
"""What came sooner did not wait for the services' slow look."""

SHOWN_AT = """
([selector, words]) => new Promise((resolve) => {
  const look = () => {
    const found = [...document.querySelectorAll(selector)].find((element) => element.textContent.includes(words));
    if (found) resolve(Date.now() / 1000);
    return Boolean(found);
  };
  if (!look()) new MutationObserver((_, observer) => { if (look()) observer.disconnect(); })
    .observe(document.body, { childList: true, subtree: true, characterData: true });
})
"""
"""When something is first on the page, by the page's own word."""


def test_a_killed_session_is_a_comment_on_the_page_at_once(board: BoardVisit, shared_fleet: RunningFleet) -> None:
    board.open("drifter", "comments")
    expect(board.drawer.locator("#tab-body")).not_to_contain_text("Loading…")
    board.page.evaluate(
        f"shown => {{ window.shownAt = ({SHOWN_AT})(shown); }}", ["[data-comment]", "tmux has no session drifter"]
    )
    killed = time.time()
    shared_fleet.kill_session("drifter")
    shown = float(board.page.evaluate("window.shownAt"))
    comment = board.comments("recorded as running, but tmux has no session drifter")
    expect(comment).to_contain_text("recorded: running in session drifter · found: tmux has no such session")
    expect(comment).to_have_attribute("data-kind", "observed")
    told = comment.locator("time").get_attribute("datetime")
    assert told is not None
    after_told = shown - datetime.fromisoformat(told).timestamp()
    print(f"shown {after_told:.3f} s after it was told, {shown - killed:.3f} s after the kill")
    assert shown - killed < POLL_S / 2
    expect(board.column("waiting").locator('[data-card="drifter"]')).to_be_visible()  # it was started again


def test_a_drift_is_unread_on_its_card_until_the_comments_are_seen(
    board: BoardVisit, shared_fleet: RunningFleet
) -> None:
    card = board.card("unread")
    expect(card.locator(".unread")).to_have_count(0)
    shared_fleet.kill_session("unread")
    expect(card.locator(".unread")).to_be_visible()
    expect(card).to_have_attribute("aria-label", re.compile(r"^unread, .*, \d unread$"))
    card.click()
    board.page.locator("[data-tab=comments]").click()
    expect(board.comments("tmux has no session unread")).to_be_visible()
    expect(board.comments("its session had ended; session unread")).to_be_visible()  # the last word about it
    board.page.keyboard.press("Escape")
    expect(card.locator(".unread")).to_have_count(0)
    board.page.reload()
    expect(card).to_be_visible()
    expect(card.locator(".unread")).to_have_count(0)


def test_monitoring_is_stopped_and_resumed_on_the_page(board: BoardVisit, shared_fleet: RunningFleet) -> None:
    board.open("muted", "comments")
    board.drawer.locator("[data-action=stop-monitoring]").click()
    expect(board.drawer.locator("[data-outcome=done]")).to_contain_text("muted is not monitored any more")
    expect(board.card("muted")).to_have_attribute("data-monitoring", "false")
    by = f"{system_user()} (page)"
    expect(board.card("muted")).to_contain_text(f"not monitored · stopped by {by} ")
    expect(board.card("muted")).to_contain_text(" ago")

    old = shared_fleet.kill_session("muted")
    shared_fleet.wait_for_new_session("muted", old)
    expect(board.column("waiting").locator('[data-card="muted"]')).to_be_visible()
    expect(board.comments("tmux has no session")).to_have_count(0)  # yet the card follows the facts

    board.drawer.locator("[data-action=resume-monitoring]").click()
    expect(board.card("muted")).to_have_attribute("data-monitoring", "true")
    resumed = board.drawer.locator("[data-comment][data-kind=resumed]")
    expect(resumed).to_contain_text("missing")
    expect(resumed).to_contain_text(by)


def test_a_text_is_typed_confirmed_and_shown(board: BoardVisit, shared_fleet: RunningFleet) -> None:
    board.open("reader")
    field = board.drawer.locator("textarea[name=send]")
    field.fill("read <b>the</b> manual")
    field.press("Enter")
    expect(board.drawer.locator("[data-outcome=done]")).to_contain_text("reader has the text")
    expect(board.drawer.locator("[data-screen=reader]")).to_contain_text("> heard: read <b>the</b> manual")
    expect(field).to_have_value("")
    said = {
        "timeline": "session",
        "evidence": "believed",
        "transcript": "read <b>the</b> manual",
        "record": "conversation",
    }
    for tab, words in said.items():
        board.drawer.locator(f"[data-tab={tab}]").click()
        expect(board.drawer.locator("#tab-body")).to_contain_text(words)


def test_a_text_for_an_agent_in_a_dialog_says_why_it_waits(board: BoardVisit, shared_fleet: RunningFleet) -> None:
    ask_for_permission(shared_fleet, "held", "rm -r build")
    board.open("held")
    board.drawer.locator("textarea[name=send]").fill("go on")
    board.drawer.locator("[data-action=send]").click()
    waits = board.drawer.locator("footer [data-outcome=waiting]")
    expect(waits).to_contain_text("a permission dialog is on the screen")
    assert "go on" not in shared_fleet.screen("held")
    press(shared_fleet, "held", "2")
    expect(board.drawer.locator("footer [data-outcome=done]")).to_contain_text("held has the text")
    wait_for_screen(shared_fleet, "held", "> heard: go on")


def test_nothing_moves_under_the_pointer(board: BoardVisit, shared_fleet: RunningFleet) -> None:
    """A card that comes into the column would push the one below the pointer down."""
    page, pointed, mover = board.page, board.card("mm-pointed"), "aa-mover"
    tell(shared_fleet, mover, "work 600")
    expect(board.column("working").locator(f'[data-card="{mover}"]')).to_be_visible()
    pointed.hover()  # as soon as it stands still
    box = pointed.bounding_box()
    assert box is not None
    moves = 0

    def keep_pointing_until(selector: str, text: str) -> None:
        nonlocal moves
        for _ in range(2000):
            moves += 1
            page.mouse.move(box["x"] + 40 + moves % 2, box["y"] + 20)
            assert pointed.bounding_box() == box
            if text in page.locator(selector).inner_text():
                return
        raise AssertionError(f"{selector} never had {text}")

    keep_pointing_until("[data-count=working]", "1")
    press(shared_fleet, mover, "Escape")
    keep_pointing_until("[data-count=working]", "0")
    # Twice more, so that it had the time to move.
    for count in ("1", "0"):
        tell(shared_fleet, mover, "work 600") if count == "1" else press(shared_fleet, mover, "Escape")
        keep_pointing_until("[data-count=working]", count)
    expect(board.column("working").locator(f'[data-card="{mover}"]')).to_be_visible()  # as it was before
    board.point_nowhere()
    expect(board.column("waiting").locator(f'[data-card="{mover}"]')).to_be_visible()
    assert pointed.bounding_box() != box


def test_the_address_of_an_agent_opens_its_drawer(board: BoardVisit) -> None:
    page = board.page
    page.goto("about:blank")
    page.goto(f"{board.url}/#/agent/reader/record")
    expect(board.drawer.locator("#tab-body")).to_contain_text("reader")
    expect(board.drawer.locator("[data-tab=record]")).to_have_attribute("aria-selected", "true")
    page.locator("[data-tab=screen]").click()
    expect(board.drawer.locator("[data-screen=reader]")).to_contain_text("demo agent reader")
    page.keyboard.press("Escape")
    expect(board.drawer).to_have_count(0)
    page.goto(f"{board.url}/#/agent/nobody")
    expect(board.drawer).to_contain_text("There is no agent “nobody” on the board.")
