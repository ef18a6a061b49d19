"""The page while parts of Muster are down: it says so in a line, people's commands still work, and it recovers."""

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.dialogs import ask_for_permission, wait_for_screen
from tests.browser.visits import BoardVisit, VisitedBoard
from tests.fixtures.by_hand import run_tmux
from tests.fixtures.fleet import RunningFleet

pytestmark = pytest.mark.real_broker_down


@pytest.fixture
def lonely_board(browser: Browser, tmp_path: Path) -> Iterator[VisitedBoard]:
    """A fleet that may be broken."""
    fleet = RunningFleet(tmp_path, {"builder": {"prompt": "begin"}})
    try:
        fleet.up()
        fleet.wait_until_ready("builder")
        yield VisitedBoard(browser, fleet)
    finally:
        fleet.end()


@contextlib.contextmanager
def killed(fleet: RunningFleet, program: str) -> Iterator[None]:
    """Nobody starts it again before the end."""
    fleet.signal("supervisor", signal.SIGSTOP)
    try:
        fleet.signal(program, signal.SIGKILL)
        yield
    finally:
        fleet.signal("supervisor", signal.SIGCONT)


def test_what_fails_is_told_in_a_line_that_goes_away_by_itself(lonely_board: VisitedBoard) -> None:
    """One after the other, since a fleet takes long to start."""
    with lonely_board.visit() as visit:
        expect(visit.page.locator("[data-notice]")).to_have_count(0)
        for accident in (_wrong_fleet_file, _dead_broker, _dead_service, _dead_tmux, _dead_board):
            accident(visit, lonely_board.fleet)
            visit.point_nowhere()
            expect(visit.page.locator("[data-notice]")).to_have_count(0)
        _is_answered(visit, lonely_board.fleet, "the last thing")


def _is_answered(visit: BoardVisit, fleet: RunningFleet, what: str) -> None:
    ask_for_permission(fleet, "builder", what)
    panel = visit.panel("builder").filter(has_text=what)
    panel.locator("[data-action=approve]").click()
    expect(panel.locator("[data-outcome=done]")).to_contain_text("builder was told yes")
    wait_for_screen(fleet, "builder", "* allowed")


def _wrong_fleet_file(visit: BoardVisit, fleet: RunningFleet) -> None:
    good = fleet.path.read_text()
    fleet.path.write_text(good.replace('"prompt": "begin"', '"prompt": "begin", "colour": "<b>red</b>"'))
    expect(visit.notice("fleet").first).to_contain_text("colour")
    fleet.path.write_text(good)


def _dead_broker(visit: BoardVisit, fleet: RunningFleet) -> None:
    with fleet.broker_down():
        expect(visit.notice("broker")).to_have_text(
            "Broker down: services go on by polling, and commands go through the journal"
        )
        expect(visit.page.locator("[data-notice]")).to_have_count(1)
        expect(visit.page.locator(".health")).to_have_text("brokerservices")
        _is_answered(visit, fleet, "without a broker")
        old = fleet.kill_session("builder")
        expect(visit.card("builder").locator(".unread")).to_be_visible()
        fleet.wait_for_new_session("builder", old, within_s=40)


def _dead_service(visit: BoardVisit, fleet: RunningFleet) -> None:
    with killed(fleet, "monitor"):
        expect(visit.notice("service")).to_contain_text("monitor: ")
        expect(visit.page.locator(".health")).to_contain_text("monitor ")
    expect(visit.page.locator(".health")).to_have_text("brokerservices")


def _dead_tmux(visit: BoardVisit, fleet: RunningFleet) -> None:
    old = fleet.spawn_of("builder")
    assert old is not None
    visit.open("builder", "comments")
    before = visit.comments("tmux has no session builder").count()
    run_tmux(fleet.socket, "kill-server")
    expect(visit.comments("tmux has no session builder")).to_have_count(before + 1)
    fleet.wait_for_new_session("builder", old, within_s=40)
    visit.page.keyboard.press("Escape")
    expect(visit.column("waiting").locator("[data-card=builder]")).to_be_visible()


def _dead_board(visit: BoardVisit, fleet: RunningFleet) -> None:
    visit.announce("ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET")
    with killed(fleet, "board"):
        expect(visit.notice("offline")).to_contain_text("This page is offline")
        expect(visit.card("builder")).to_be_visible()
        visit.open("builder", "transcript")
        expect(visit.drawer.locator("#tab-body")).to_have_text("the board's server does not answer")
    expect(visit.drawer.locator("#tab-body")).to_contain_text("All done.")
    visit.page.keyboard.press("Escape")
