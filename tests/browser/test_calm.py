"""Columns stay where they are, whoever comes and goes; a card that moves is seen whole."""

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, ViewportSize, expect

from services.board.documents import card_document
from shared.contract.states import CardColumn, CardState
from tests.browser.served_page import ServedPage
from tests.fakes.records import START

DESKTOP = ViewportSize(width=1440, height=900)
ALWAYS = ["trouble", "limited", "working", "waiting", "starting", "done", "stopped"]

WATCH_THE_MOVE = """
() => {
  Object.assign(window, { cut: [], moved: new Set(), places: new Set() });
  const style = (element) => getComputedStyle(element);
  const cutsItself = (element) => /hidden|auto|scroll/.test(style(element).overflow);
  const cuts = (element) => element && (cutsItself(element) || cuts(element.parentElement));
  const look = () => {
    const area = document.querySelector(".columns");
    for (const element of [area, ...area.querySelectorAll("*")]) {
      const scrolls = /auto|scroll/.test(style(element).overflowX);
      if (scrolls && element.scrollWidth > element.clientWidth) cut.push(element.className);
    }
    if (document.documentElement.scrollWidth > innerWidth) cut.push("page");
    for (const each of document.getAnimations()) {
      const card = each.effect.target?.closest("[data-card]");
      if (!card) continue;
      moved.add(card.dataset.card);
      if (style(card).transform !== "none" && cuts(card.parentElement)) cut.push(`below ${card.dataset.card}`);
    }
    const { x, width } = document.querySelector("[data-card=still]").getBoundingClientRect();
    places.add(`${x} ${width}`);
    requestAnimationFrame(look);
  };
  look();
}
"""


def _card(name: str, column: CardColumn) -> dict[str, Any]:
    state = CardState(card=name, agent=name, column=column, since=START, headline="-", backend="demo", status="running")
    return {name: card_document(state)}


@pytest.fixture
def page(browser: Browser, served: ServedPage) -> Iterator[Page]:
    served.source.feed.put_cards(
        {**_card("still", CardColumn.WAITING), **_card("last", CardColumn.STOPPED)}, gone=["builder"]
    )
    with browser.new_context(viewport=DESKTOP) as context:
        page = context.new_page()
        served.open(page)
        expect(page.locator("[data-card=still]")).to_be_visible()
        yield page


def test_no_column_moves_when_another_gets_its_first_card(page: Page, served: ServedPage) -> None:
    assert page.locator("[data-column]").evaluate_all("all => all.map((each) => each.dataset.column)") == ALWAYS
    boxes = page.locator("[data-column]").evaluate_all(
        "all => all.map((each) => each.getBoundingClientRect().toJSON())"
    )
    assert len({box["top"] for box in boxes}) == 1
    assert len({round(box["width"]) for box in boxes}) == 1
    expect(page.locator("[data-column=done]")).to_have_text("Done0")
    page.evaluate(WATCH_THE_MOVE)
    for column in (CardColumn.STARTING, CardColumn.WORKING, CardColumn.TROUBLE, CardColumn.WAITING, CardColumn.DONE):
        served.source.feed.put_cards(_card("guest", column))
        expect(page.locator(f"[data-column={column}] [data-card=guest]")).to_be_visible()
    assert page.evaluate("[...window.moved]").count("guest") == 1, "it slid"
    assert page.evaluate("window.cut") == []
    assert len(page.evaluate("[...window.places]")) == 1


def test_nothing_slides_out_of_a_column_that_scrolls(page: Page, served: ServedPage) -> None:
    many = {name: card for at in range(13) for name, card in _card(f"guest-{at}", CardColumn.WORKING).items()}
    served.source.feed.put_cards(many)
    expect(page.locator("[data-column=working] .cards")).to_have_attribute("data-long", "true")
    page.evaluate(WATCH_THE_MOVE)
    served.source.feed.put_cards({**_card("guest-1", CardColumn.DONE), **_card("other", CardColumn.WORKING)})
    expect(page.locator("[data-column=done] [data-card=guest-1]")).to_be_visible()
    assert page.evaluate("window.cut") == []
    page.locator("[data-count=working]").click()
    expect(page.locator("[data-column]")).to_have_count(1)
    width = page.locator("[data-card=guest-2]").evaluate("card => card.getBoundingClientRect().width")
    assert width < DESKTOP["width"] / 4, "no wider than in its column"
