"""Visits to a board: a browser context with its page, and all that went wrong on it."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Error, Locator, Request, expect

from shared.client.board_access import BoardAccess, page_url, running_address
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet

SOON_MS = 20_000
"""How long a condition may take on a machine that is busy with other tests."""
DESKTOP = {"width": 1440, "height": 900}

expect.set_options(timeout=SOON_MS)


class BoardVisit:
    """One page of a board. What its console says is a fault, unless a test has announced it."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self.context, self.url = context, url
        self.page = context.new_page()
        self.faults: list[str] = []
        self._announced: list[str] = []
        self.page.on("console", self._note_console)
        self.page.on("pageerror", self._note_error)
        self.page.on("dialog", self._note_dialog)

    def _note_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self.faults.append(f"{message.type}: {message.text}")

    def _note_error(self, error: Error) -> None:
        self.faults.append(f"uncaught: {error}")

    def _note_dialog(self, dialog: Dialog) -> None:
        self.faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def announce(self, pattern: str) -> None:
        """What the console may say here, as of a request that is refused on purpose."""
        self._announced.append(pattern)

    def unexpected(self) -> list[str]:
        return [fault for fault in self.faults if not any(re.search(each, fault) for each in self._announced)]

    # --- where things are ---

    def card(self, name: str) -> Locator:
        return self.page.locator(f'[data-card="{name}"]')

    def panel(self, name: str) -> Locator:
        """The question of an agent in the strip on top. One that was answered stays for a moment."""
        return self.page.locator(f'[data-question="{name}"]')

    def column(self, key: str) -> Locator:
        return self.page.locator(f'[data-column="{key}"]')

    def notice(self, about: str) -> Locator:
        return self.page.locator(f'[data-notice="{about}"]')

    @property
    def drawer(self) -> Locator:
        return self.page.locator("[data-drawer]")

    def comments(self, text: str) -> Locator:
        """The comments in the open drawer that have a text."""
        return self.drawer.locator("[data-comment]", has_text=text)

    def wait_for_agents(self) -> None:
        expect(self.page.locator("[data-card], [data-question]").first).to_be_visible()

    def point_nowhere(self) -> None:
        """Take the pointer off cards and questions: nothing goes away below it."""
        self.page.mouse.move(5, 5)

    def open(self, name: str, tab: str = "screen") -> Locator:
        """The drawer of an agent, by its address."""
        self.page.evaluate("address => { location.hash = address; }", f"#/agent/{name}/{tab}")
        expect(self.drawer).to_have_attribute("data-drawer", name)
        expect(self.drawer.locator(f'[data-tab="{tab}"]')).to_have_attribute("aria-selected", "true")
        return self.drawer

    def commands_sent(self) -> list[dict[str, Any]]:
        """What the page asks for from now on, as it does."""
        sent: list[dict[str, Any]] = []

        def note(request: Request) -> None:
            if request.url.endswith("/api/commands") and request.post_data_json is not None:
                sent.append(request.post_data_json)

        self.page.on("request", note)
        return sent


class VisitedBoard:
    """The board of a fleet. It lets a browser log in only so often a minute: pages share one session of each kind."""

    def __init__(self, browser: Browser, fleet: RunningFleet) -> None:
        self._browser, self.fleet = browser, fleet
        self._sessions: dict[bool, Any] = {}

    @property
    def url(self) -> str:
        home = self.fleet.fleet.home
        return page_url(self.fleet.fleet, wait_until(lambda: running_address(home), "the board serves"))

    @property
    def access(self) -> BoardAccess:
        return BoardAccess(self.fleet.fleet.home)

    def link(self, *, acts: bool = False) -> str:
        return f"{self.url}/#{self.access.make_link(acts=acts)}"

    def forget_sessions(self) -> None:
        """They were ended: the next visit logs in again."""
        self._sessions.clear()

    @contextmanager
    def stranger(self, **options: Any) -> Iterator[BoardVisit]:
        """A browser that was never here. In the end nothing must have gone wrong on its page."""
        with self._browser.new_context(**{"viewport": DESKTOP, **options}) as context:
            context.set_default_timeout(SOON_MS)
            visit = BoardVisit(context, self.url)
            yield visit
            unexpected = visit.unexpected()
            assert not unexpected, unexpected

    @contextmanager
    def visit(self, *, acts: bool = True, **options: Any) -> Iterator[BoardVisit]:
        """A browser that is logged in, on the board."""
        known = self._sessions.get(acts)
        with self.stranger(**options, storage_state=known) as visit:
            visit.page.goto(visit.url if known else self.link(acts=acts))
            visit.wait_for_agents()
            if known is None:
                self._sessions[acts] = visit.context.storage_state()
            yield visit
