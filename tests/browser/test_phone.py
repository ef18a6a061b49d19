"""The page on a phone: one column, the same order, nothing to the side, and the thumb reaches the answer."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.dialogs import ask_for_permission, tell, wait_for_screen
from tests.browser.visits import BoardVisit, VisitedBoard
from tests.fixtures.fleet import RunningFleet

PHONE = {"width": 390, "height": 844}
THUMB_PX = 40

WIDER_THAN_THE_PAGE = """
() => [...document.querySelectorAll("body *")].filter((element) => {
  const box = element.getBoundingClientRect();
  const cuts = (each) => getComputedStyle(each).overflowX !== "visible";
  const inside = (each) => each && (cuts(each) || inside(each.parentElement));
  return box.width && (box.right > innerWidth + 0.5 || box.left < -0.5) && !inside(element.parentElement);
}).map((element) => `${element.tagName}.${element.className}`)
"""


@pytest.fixture
def phone(shared_board: VisitedBoard) -> Iterator[BoardVisit]:
    options: dict[str, Any] = {
        "is_mobile": True,
        "has_touch": True,
        "device_scale_factor": 2,
        "reduced_motion": "reduce",
    }
    with shared_board.visit(viewport=PHONE, **options) as visit:
        yield visit


def _nothing_is_to_the_side(visit: BoardVisit) -> None:
    width = visit.page.evaluate("document.scrollingElement.scrollWidth")
    assert width <= PHONE["width"], width
    assert visit.page.evaluate(WIDER_THAN_THE_PAGE) == []


def test_one_column_in_the_order_of_urgency(phone: BoardVisit, shared_fleet: RunningFleet) -> None:
    shared_fleet.cli("stop", "paused")
    tell(shared_fleet, "phone-worker", "work 600")
    ask_for_permission(shared_fleet, "phoned", "rm -r " + "a/very/long/path/" * 20)
    for column, agent in {"working": "phone-worker", "stopped": "paused"}.items():
        expect(phone.column(column).locator(f'[data-card="{agent}"]')).to_be_visible()
    panel = phone.panel("phoned")
    expect(panel).to_be_visible()
    _nothing_is_to_the_side(phone)
    shown = phone.page.locator("[data-question], [data-column]:not([data-empty=true])")
    boxes = [each.bounding_box() for each in shown.all()]
    tops = [box["y"] for box in boxes if box is not None]
    assert len(tops) >= 4
    assert tops == sorted(tops)
    assert shown.first.get_attribute("data-question") is not None
    columns = [each.get_attribute("data-column") for each in shown.all()]
    assert [each for each in columns if each in ("working", "waiting", "stopped")] == ["working", "waiting", "stopped"]

    approve = panel.locator("[data-action=approve]")
    approve.scroll_into_view_if_needed()
    box = approve.bounding_box()
    assert box is not None
    assert box["height"] >= THUMB_PX
    assert 0 <= box["x"] < box["x"] + box["width"] <= PHONE["width"]
    approve.tap()
    expect(panel.locator("[data-outcome=done]")).to_be_visible()
    wait_for_screen(shared_fleet, "phoned", "* allowed")


def test_the_drawer_is_the_whole_screen(phone: BoardVisit) -> None:
    phone.card("phoned").tap()
    expect(phone.drawer.locator("[data-screen=phoned]")).to_contain_text("demo agent phoned")
    assert phone.drawer.bounding_box() == {"x": 0, "y": 0, **PHONE}
    for tab in ("timeline", "evidence", "comments", "transcript", "record", "screen"):
        phone.drawer.locator(f"[data-tab={tab}]").tap()
        expect(phone.drawer.locator(f"[data-tab={tab}]")).to_have_attribute("aria-selected", "true")
        expect(phone.drawer.locator("#tab-body")).not_to_contain_text("Loading…")
        _nothing_is_to_the_side(phone)
    phone.drawer.locator("[data-action=close]").tap()
    expect(phone.drawer).to_have_count(0)
