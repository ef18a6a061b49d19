"""One browser and one fleet for all tests of a process. Each test has agents of its own in it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.browser.served_page import ServedPage
from tests.browser.visits import BoardVisit, VisitedBoard
from tests.fixtures.chromium import chromium
from tests.fixtures.fleet import RunningFleet

AGENTS: dict[str, dict[str, Any]] = {
    **{name: {} for name in ("asker", "caller", "changer", "chooser", "held", "locked", "phoned", "pressed", "quick")},
    **{name: {} for name in ("aimed", "paused", "phone-worker", "reader")},
    **{name: {"prompt": "begin"} for name in ("drifter", "muted", "unread")},  # which they take up again when they die
    **{name: {} for name in ("aa-mover", "mm-pointed")},  # cards stand in the order of their names
}


# Of the package, not of the session: what runs before and after it may need an event loop of its own.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    with chromium() as launched:
        yield launched


@pytest.fixture(scope="package")
def shared_fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFleet]:
    """For tests that change nothing but their own agents: a fleet takes longer to start than most of them to run."""
    start = {"at_once": 20, "gap_s": 0}
    fleet = RunningFleet(tmp_path_factory.mktemp("browser"), AGENTS, start=start)
    try:
        fleet.up()
        for agent in AGENTS:
            fleet.wait_until_ready(agent)
        yield fleet
    finally:
        fleet.end()


@pytest.fixture(scope="package")
def shared_board(browser: Browser, shared_fleet: RunningFleet) -> VisitedBoard:
    return VisitedBoard(browser, shared_fleet)


@pytest.fixture
def board(shared_board: VisitedBoard) -> Iterator[BoardVisit]:
    """A page that may act."""
    with shared_board.visit() as visit:
        yield visit


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ServedPage]:
    """A page whose service only the test moves."""
    made = ServedPage(tmp_path)
    yield made
    made.server.stop()
