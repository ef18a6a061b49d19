"""Texts that agents, remotes and files bring to the page stay texts, and what is invisible in them is shown."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect

from shared.errors import MusterError
from tests.browser.dialogs import press, tell
from tests.browser.visits import BoardVisit, VisitedBoard
from tests.fixtures.fleet import RunningFleet
from tests.fixtures.repositories import Clone, bare

IMAGE = "<img src=x onerror=window.pwned=1>"
SCRIPT = "<script>window.pwned=2</script>"
LINK = "javascript:window.pwned=3"
BIDI, BIDI_SHOWN = "safe\u202egnp.exe", "safe⟨U+202E⟩gnp.exe"
CONTROL, CONTROL_SHOWN = "bell\x07 \x1b[31mred", "bell⟨U+0007⟩ ⟨U+001B⟩[31mred"
HOSTILE = f"{IMAGE} {SCRIPT} {LINK} {BIDI}"
SHOWN = f"{IMAGE} {SCRIPT} {LINK} {BIDI_SHOWN}"

MADE_OF_TEXT = """
() => ({
  pwned: window.pwned ?? null,
  elements: document.getElementById("app").querySelectorAll("img, script, iframe, object, svg, [onerror]").length,
  links: [...document.querySelectorAll("a")].filter((each) => !each.getAttribute("href").startsWith("#/agent/")).length,
  hidden: /[\\u202a-\\u202e\\u2066-\\u2069\\u0007\\u001b]/.test(document.documentElement.innerHTML),
})
"""
NOTHING = {"pwned": None, "elements": 0, "links": 0, "hidden": False}


@pytest.fixture
def hostile_board(browser: Browser, tmp_path: Path) -> Iterator[VisitedBoard]:
    directory = tmp_path
    remote = bare(directory / "remote.git")
    clone = Clone(remote, directory / "clone", author=f"eve {IMAGE}"[:60])
    clone.commit("begin")
    clone.push()
    agents: dict[str, Any] = {
        "builder": {"kind": "loop", "role": HOSTILE, "dir": str(directory / "work")},
        "reviewer": {"kind": "loop"},
        "other": {"role": HOSTILE, "prompt": HOSTILE, "model": IMAGE, "account": "x"},
    }
    loops = {
        "main": {
            "remote": str(remote),
            "branch": "main",
            "poll_s": 1,
            "roles": {"build": "builder", "review": "reviewer"},
            "patterns": {"claim": {"to": "review", "text": "{subject}"}},
            "phases": [{"name": "one"}],
        }
    }
    (directory / "work").mkdir()
    fleet = RunningFleet(directory, agents, loops=loops)
    try:
        fleet.up()
        for agent in agents:
            fleet.wait_until_ready(agent)
        yield VisitedBoard(browser, fleet)
    finally:
        fleet.end()


def test_whatever_comes_to_the_page_stays_text(hostile_board: VisitedBoard) -> None:
    with hostile_board.visit() as visit:
        for part in (_roles_prompts_screens_and_dialogs, _directions_on_a_screen, _comments, _subjects_of_commits):
            part(visit, hostile_board.fleet)
            assert visit.page.evaluate(MADE_OF_TEXT) == NOTHING


def _is_text(visit: BoardVisit, selector: str, text: str) -> None:
    expect(visit.page.locator(selector).first).to_contain_text(text)
    assert visit.page.evaluate(MADE_OF_TEXT) == NOTHING, selector


def _roles_prompts_screens_and_dialogs(visit: BoardVisit, fleet: RunningFleet) -> None:
    _is_text(visit, "[data-card=other] .role", SHOWN)
    _is_text(visit, "[data-card=other] .where", IMAGE)
    visit.open("other")
    _is_text(visit, "[data-screen=other]", IMAGE)
    visit.open("other", "record")
    _is_text(visit, "#tab-body", IMAGE)
    tell(fleet, "other", f"ask {IMAGE}")
    _is_text(visit, "[data-question=other] pre", "<img src=x onerror=")
    visit.open("other")
    _is_text(visit, "[data-drawer-question] pre", "<img src=x onerror=")
    press(fleet, "other", "2")
    tell(fleet, "other", f"choose {SCRIPT}? | {IMAGE} | {LINK}")
    _is_text(visit, "[data-drawer-question] [data-key='1']", IMAGE)
    _is_text(visit, "[data-drawer-question] [data-key='2']", LINK)
    press(fleet, "other", "1")
    visit.page.fill("#search", IMAGE)
    _is_text(visit, "[data-card=other]", SHOWN)
    visit.page.fill("#search", "")


def _directions_on_a_screen(visit: BoardVisit, fleet: RunningFleet) -> None:
    assert fleet.ask("send", agent="other", text=BIDI)["ok"]  # keys would not bring it there
    visit.open("other")
    _is_text(visit, "[data-screen=other]", BIDI_SHOWN)


def _comments(visit: BoardVisit, fleet: RunningFleet) -> None:
    visit.open("other", "comments")
    visit.drawer.locator("textarea[name=comment]").fill(HOSTILE)
    visit.drawer.locator("[data-action=comment]").click()
    _is_text(visit, "[data-comment][data-kind=said]", SHOWN)
    assert fleet.ask("comment", agent="other", text=CONTROL, by=IMAGE)["ok"]
    expect(visit.comments(CONTROL_SHOWN)).to_be_visible()
    visit.drawer.locator("[data-tab=timeline]").click()
    _is_text(visit, "#tab-body", SHOWN)


def _subjects_of_commits(visit: BoardVisit, fleet: RunningFleet) -> None:
    directory = fleet.path.parent
    clone = Clone(directory / "remote.git", directory / "another", author="eve")
    clone.commit(f"claim: {IMAGE}")
    clone.push()
    visit.open("reviewer")
    _is_text(visit, "[data-screen=reviewer]", f"claim: {IMAGE}")
    visit.open("reviewer", "timeline")
    expect(visit.drawer.locator("#tab-body")).to_contain_text("session reviewer")


@pytest.mark.parametrize("name", [IMAGE, '"><script>', "a b", "../x", BIDI, "javascript:x", "A", ""])
def test_a_name_can_only_be_an_id(tmp_path: Path, name: str) -> None:
    """So it needs no care in an address or an attribute."""
    with pytest.raises(MusterError, match=r"name|agents"):
        RunningFleet(tmp_path, {name: {}})
