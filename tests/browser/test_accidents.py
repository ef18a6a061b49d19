"""The page while parts of Muster are down: it says so in a line, people's commands still work, and it recovers."""

import contextlib
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.browser.dialogs import ask_for_permission, wait_for_screen
from tests.browser.visits import VisitedBoard
from tests.fixtures.by_hand import run_tmux
from tests.fixtures.fleet import RunningFleet

pytestmark = pytest.mark.real_broker_down


@pytest.fixture
def lonely_board(browser: Browser, tmp_path: Path) -> Iterator[VisitedBoard]:
    """A fleet that may be broken."""
    fleet = RunningFleet(tmp_path, {"builder": {}})
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


def test_broker_services_and_board_fail_one_after_the_other(lonely_board: VisitedBoard) -> None:
    fleet = lonely_board.fleet
    with lonely_board.visit() as visit:
        page, panel, notices = visit.page, visit.panel("builder"), visit.page.locator("[data-notice]")
        expect(notices).to_have_count(0)
        with fleet.broker_down():
            expect(visit.notice("broker")).to_have_text(
                "Broker down: services go on by polling, and commands go through the journal"
            )
            expect(notices).to_have_count(1)
            expect(page.locator(".health")).to_have_text("broker" + "services")
            ask_for_permission(fleet, "builder", "rm -r build")
            panel.locator("[data-action=approve]").click()
            expect(panel.locator("[data-outcome=done]")).to_contain_text("builder was told yes")
            wait_for_screen(fleet, "builder", "* allowed")
            fleet.kill_session("builder")
            expect(visit.card("builder").locator(".unread")).to_be_visible()
        visit.point_nowhere()
        expect(notices).to_have_count(0)

        with killed(fleet, "monitor"):
            expect(visit.notice("service")).to_contain_text("monitor: ")
            expect(page.locator(".health")).to_contain_text("monitor ")
        expect(notices).to_have_count(0)
        expect(page.locator(".health")).to_have_text("broker" + "services")

        visit.announce("ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_CONNECTION_RESET")
        with killed(fleet, "board"):
            expect(visit.notice("offline")).to_contain_text("This page is offline")
            expect(visit.card("builder")).to_be_visible()
        expect(notices).to_have_count(0)
        ask_for_permission(fleet, "builder", "rm -r source")
        asked = panel.filter(has_text="rm -r source")
        asked.locator("[data-action=deny]").click()
        expect(asked.locator("[data-outcome=done]")).to_contain_text("builder was told no")
        wait_for_screen(fleet, "builder", "* refused")


def test_a_fleet_file_that_is_wrong_is_told_on_the_page(lonely_board: VisitedBoard) -> None:
    path = lonely_board.fleet.path
    good = path.read_text()
    with lonely_board.visit() as visit:
        path.write_text(good.replace('"builder": {}', '"builder": {"colour": "<b>red</b>"}'))
        expect(visit.notice("fleet").first).to_contain_text("colour")
        path.write_text(good)
        expect(visit.notice("fleet")).to_have_count(0)


def test_the_end_of_tmux_is_told_and_mended_on_the_page(lonely_board: VisitedBoard) -> None:
    with lonely_board.visit() as visit:
        run_tmux(lonely_board.fleet.socket, "kill-server")
        expect(visit.card("builder").locator(".unread")).to_be_visible()
        expect(visit.column("waiting").locator("[data-card=builder]")).to_be_visible()
        expect(visit.page.locator("[data-notice]")).to_have_count(0)
