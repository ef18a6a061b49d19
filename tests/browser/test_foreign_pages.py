"""Other pages in the same browser, on another port of this machine or by another name for it: they get nothing done."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from playwright.sync_api import Error, Page, expect

from tests.browser.visits import VisitedBoard
from tests.fixtures.browser import RawBrowser
from tests.fixtures.chromium import REBOUND
from tests.fixtures.fleet import RunningFleet


class ForeignSite:
    """Serves an empty page on a port of its own, and remembers the cookies that it is sent."""

    def __init__(self) -> None:
        site = self
        self.cookies: list[str] = []

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.cookies.append(self.headers.get("Cookie", ""))
                self.send_response(200)
                self.send_header("Content-Type", "text/html")
                self.end_headers()
                self.wfile.write(b"<!doctype html><title>foreign</title><link rel=icon href=data:,>")

            def log_message(self, *_: object) -> None:
                """Not to the terminal."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}/"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def site() -> Iterator[ForeignSite]:
    made = ForeignSite()
    yield made
    made.close()


FETCH = """
async ([url, body, headers]) => {
  try {
    const options = body === null ? {} : { method: "POST", body };
    const answer = await fetch(url, { ...options, headers, credentials: "include" });
    return `read ${answer.status}`;
  } catch (error) {
    return "not read";
  }
}
"""
SUBMIT = """
([url, name]) => {
  const form = document.createElement("form");
  Object.assign(form, { action: url, method: "post", enctype: "text/plain" });
  const field = document.createElement("input");
  Object.assign(field, { name, value: '"}' });
  form.append(field);
  document.body.append(form);
  form.submit();
}
"""
ADD = """
([tag, given]) => new Promise((resolve) => {
  document.addEventListener("securitypolicyviolation", () => setTimeout(resolve), { once: true });
  document.body.append(Object.assign(document.createElement(tag), given));
})
"""
FRAME = """
(url) => new Promise((resolve) => {
  const frame = document.createElement("iframe");
  Object.assign(frame, { src: url, onload: resolve });
  document.body.append(frame);
})
"""


def _stop(agent: str) -> str:
    return json.dumps({"verb": "stop", "agent": agent})


def test_a_page_on_another_port_has_the_cookie_and_gets_nothing_by_it(
    shared_board: VisitedBoard, shared_fleet: RunningFleet, site: ForeignSite
) -> None:
    with shared_board.visit() as visit:
        visit.announce("CORS policy|Failed to load resource|X-Frame-Options|frame-ancestors")
        page, api = visit.page, f"{visit.url}/api/commands"
        statuses = _statuses(page, "/api/")
        page.goto(site.url)
        (cookie,) = [each for each in site.cookies if each]
        assert cookie.startswith("muster-"), "it is sent to every port of the machine"
        assert page.evaluate("document.cookie") == "", "yet no script can read it"
        assert page.evaluate("localStorage.length") == 0, "and the token is stored for the board's port alone"

        posted = _stop("aimed")
        for headers in ({"Content-Type": "text/plain"}, {"Content-Type": "application/json"}, {"X-Muster-Token": "x"}):
            assert page.evaluate(FETCH, [api, posted, headers]) == "not read"
        for path in ("/api/session", "/api/agents/aimed/transcript", "/api/stream", "/api/login"):
            assert page.evaluate(FETCH, [visit.url + path, None, {}]) == "not read"
        page.evaluate(SUBMIT, [api, f'{posted[:-1]}, "x": "'])
        page.wait_for_url(api)
        expect(page.locator("body")).to_contain_text("only the board's own page may send this")
        assert set(statuses) <= {403, 400, 405}, statuses

        # Who has taken it from there, without the token that only the board's own page can read:
        thief = RawBrowser(shared_fleet.fleet, int(visit.url.rpartition(":")[2]))
        thief.cookie = cookie
        assert thief.get("/api/session").status == 401
        for token in (None, "", "x", cookie.partition("=")[2]):
            thief.token = token
            assert thief.post("/api/commands", {"verb": "stop", "agent": "aimed"}).status == 401

        page.goto(site.url)
        page.evaluate(FRAME, visit.url)
        expect(page.frame_locator("iframe").locator("#app")).to_have_count(0)

        # The same cookie and token do work where they belong, so it was not for something else.
        page.goto(visit.url)
        visit.wait_for_agents()
        thief.token = page.evaluate("localStorage.getItem('muster-token')")
        assert thief.get("/api/session").status == 200
        wrong = {"verb": "stop", "agent": "aimed"}
        assert thief.post("/api/commands", wrong, Origin=site.url.rstrip("/")).status == 403
    assert shared_fleet.records()["aimed"].status == "running"


def test_another_name_for_this_machine_is_refused(shared_board: VisitedBoard, shared_fleet: RunningFleet) -> None:
    with shared_board.visit() as visit:
        visit.announce("421|Cross-Origin-Opener-Policy header has been ignored")
        port = visit.url.rpartition(":")[2]
        for path in ("/", "/page/app.js", "/api/session"):
            answer = visit.page.goto(f"http://{REBOUND}:{port}{path}")
            assert answer is not None
            assert answer.status == 421
            assert "not an address of the board" in answer.text()
        assert visit.page.evaluate(FETCH, [f"http://{REBOUND}:{port}/api/session", None, {}]) == "read 421"


def test_the_board_opens_no_window_and_no_other_site(shared_board: VisitedBoard, shared_fleet: RunningFleet) -> None:
    """What it is sent is text: nothing is loaded from anywhere but the board itself, or run from a text."""
    with shared_board.visit() as visit:
        asked: list[str] = []
        visit.page.on("request", lambda request: asked.append(request.url))
        visit.page.reload()
        visit.wait_for_agents()
        assert asked
        assert [each for each in asked if not each.startswith(f"{visit.url}/")] == []


def test_what_a_policy_forbids_is_a_fault_of_the_page(shared_board: VisitedBoard) -> None:
    """Shows that tests of this folder fail on it."""
    with shared_board.visit() as visit:
        visit.announce("Content Security Policy|TrustedHTML")
        foreign = "http://127.0.0.1:9/x"
        for tag, given in (("img", {"src": foreign}), ("link", {"rel": "stylesheet", "href": foreign})):
            visit.page.evaluate(ADD, [tag, given])
        assert len(visit.faults) == 2, visit.faults
        with pytest.raises(Error, match="requires 'Trusted"):
            visit.page.evaluate("document.body.innerHTML = '<b>text</b>'")


def _statuses(page: Page, part: str) -> list[int]:
    """What requests to addresses with that part are answered, as they are."""
    found: list[int] = []
    page.on("response", lambda response: found.append(response.status) if part in response.url else None)
    return found
