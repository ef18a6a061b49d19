"""The board's web server on a real socket: who is let in, what is sent, and that nobody can hold it."""

import contextlib
import io
import json
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from services.board.web import connections, stream
from services.board.web import server as web_server
from services.board.web.app import LOGINS_A_MINUTE
from services.board.web.connections import MOST_CONNECTIONS
from services.board.web.server import BoardServer
from services.board.web.stream import MOST_STREAMS
from shared.client.board_access import BoardAccess, BoardAddress, last_address, save_address
from shared.contract.commands import Send
from shared.errors import MusterError
from shared.system.files import write
from shared.system.log import Log
from tests.fakes.fleets import WrittenFleet
from tests.fakes.pages import HOSTILE, INDEX, SHOWN, FakePageSource, write_page
from tests.fixtures.broker import wait_until
from tests.fixtures.browser import RawAnswer, RawBrowser

SECURITY = {
    "server": "muster",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}


class World:
    """A board that serves, and what is behind it."""

    def __init__(self, directory: Path, **board: Any) -> None:
        self.fleet = WrittenFleet(directory, {"builder": {}}, board=board).file.fleet
        self.source, self.said = FakePageSource(), io.StringIO()
        self.source.feed.put_cards({"builder": {"headline": HOSTILE}})
        self.server = BoardServer(self.fleet, self.source, write_page(directory / "page"), Log("board", self.said))
        self.port = self.server.start()

    @property
    def access(self) -> BoardAccess:
        return BoardAccess(self.fleet.home)

    def browser(self) -> RawBrowser:
        return RawBrowser(self.fleet, self.port)

    def entered(self, *, acts: bool = False) -> RawBrowser:
        browser = self.browser()
        browser.log_in(acts=acts)
        return browser


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    made.server.stop()
    assert not made.server.is_running
    assert '"level": "error"' not in made.said.getvalue(), made.said.getvalue()


def refused(found: RawAnswer, status: int, *words: str) -> None:
    """It is a sentence with the headers of every answer."""
    assert found.status == status, found.text
    assert found.json["said"]
    for word in words:
        assert word in found.json["said"]
    secured(found)


def secured(found: RawAnswer) -> None:
    assert {name: found.headers.get(name) for name in SECURITY} == SECURITY
    assert "default-src 'none'; script-src 'self' 'sha256-" in found.headers["content-security-policy"]
    assert "camera=()" in found.headers["permissions-policy"]
    assert not [name for name in found.headers if name.startswith("access-control")]


# --- whom it answers ---


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "evil.example:{port}", "[::1]:{port}", ""]
)
@pytest.mark.parametrize("path", ["/", "/page/app.js", "/api/session"])
def test_a_foreign_name_for_it_gets_nothing(world: World, host: str, path: str) -> None:
    browser = world.entered()
    refused(browser.get(path, Host=host.format(port=world.port)), 421, "`muster board`")


def test_its_own_names_are_known(world: World) -> None:
    for host in (f"127.0.0.1:{world.port}", f"localhost:{world.port}", f"LOCALHOST:{world.port}"):
        assert world.browser().get("/", Host=host).status == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": None},
        {"Origin": "null"},
        {"Origin": "http://evil.example"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "https://127.0.0.1:{port}"},
        {"Origin": "http://localhost:{port}"},
        {"Origin": "http://127.0.0.1:{port}/"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "none"},
    ],
)
@pytest.mark.parametrize("path", ["/api/commands", "/api/login", "/api/lock", "/api/logout"])
def test_other_pages_can_send_nothing(world: World, path: str, headers: dict[str, str | None]) -> None:
    browser = world.entered(acts=True)
    sent = {name: value and value.format(port=world.port) for name, value in headers.items()}
    body = {"verb": "stop", "agent": "builder", "token": world.access.make_link(acts=True)}
    refused(browser.request("POST", path, body, sent), 403)
    assert world.source.submitted == []
    assert browser.get("/api/session").json["may_act"] is True


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None])
def test_what_a_form_can_send_is_refused(world: World, kind: str | None) -> None:
    browser = world.entered(acts=True)
    refused(browser.post("/api/commands", {"verb": "stop", "agent": "builder"}, Content_Type=kind), 400)
    assert world.source.submitted == []


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
def test_other_pages_can_ask_nothing(world: World, site: str) -> None:
    browser = world.entered()
    refused(browser.get("/api/session", Sec_Fetch_Site=site), 403)
    assert browser.get("/api/session", Sec_Fetch_Site="same-origin").status == 200
    assert browser.get("/", Sec_Fetch_Site=site).status == 200


@pytest.mark.parametrize("method", ["HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "NONSENSE"])
@pytest.mark.parametrize("path", ["/", "/api/commands", "/api/session"])
def test_other_methods_are_unknown(world: World, method: str, path: str) -> None:
    found = world.entered().request(method, path)
    assert found.status == 405
    secured(found)
    assert found.headers["allow"] == "GET, POST"


def test_nothing_acts_by_a_get_and_nothing_is_read_by_a_post(world: World) -> None:
    browser = world.entered(acts=True)
    for path in ("/api/commands", "/api/login", "/api/lock", "/api/logout"):
        refused(browser.get(f"{path}?verb=stop&agent=builder"), 405)
    for path in ("/", "/api/session", "/api/stream", "/api/day"):
        refused(browser.post(path), 405)
    assert world.source.submitted == []


# --- who is logged in ---


@pytest.mark.parametrize(
    "path",
    ["/api/session", "/api/stream", "/api/day", "/api/agents/builder/record", "/api/commands/c1", "/api/nothing"],
)
def test_without_a_session_nothing_is_told(world: World, path: str) -> None:
    refused(world.browser().get(path), 401, "run `muster board`")


def test_cookie_and_token_must_be_of_one_session(world: World) -> None:
    one, other = world.entered(acts=True), world.entered(acts=True)
    mixed = [(one.cookie, None), (None, one.token), (one.cookie, other.token), (other.cookie, one.token)]
    for cookie, token in mixed:
        refused(one.get("/api/session", Cookie=cookie, X_Muster_Token=token), 401)
        command = {"verb": "stop", "agent": "builder"}
        refused(one.post("/api/commands", command, Cookie=cookie, X_Muster_Token=token), 401)
    assert world.source.submitted == []


def test_a_cookie_that_a_neighbour_planted_does_no_harm(world: World) -> None:
    browser = world.entered()
    name = browser.cookie.partition("=")[0]
    assert browser.get("/api/session", Cookie=f"{name}=planted; other=1; {browser.cookie}").status == 200
    refused(browser.get("/api/session", Cookie=f"{name}=planted"), 401)


def test_the_cookie_stays_with_this_page(world: World) -> None:
    found = world.browser().log_in()
    attributes = found.headers["set-cookie"].split("; ")
    assert attributes[0].startswith(f"muster-{world.fleet.stamp}=")
    assert attributes[1:] == ["Path=/", "Max-Age=604800", "HttpOnly", "SameSite=Strict"]
    secured(found)


def test_a_link_works_once(world: World) -> None:
    token = world.access.make_link(acts=False)
    assert world.browser().post("/api/login", {"token": token}).status == 200
    refused(world.browser().post("/api/login", {"token": token}), 401, "used already or is too old")
    refused(world.browser().post("/api/login", {"token": "nonsense"}), 401, "used already or is too old")
    refused(world.browser().post("/api/login", {"token": 7}), 400)


def test_a_link_that_is_too_old_opens_nothing(world: World) -> None:
    token = BoardAccess(world.fleet.home, clock=lambda: time.time() - 700).make_link(acts=True)
    refused(world.browser().post("/api/login", {"token": token}), 401, "used already or is too old")


def test_of_two_who_come_with_one_link_one_gets_in(world: World) -> None:
    token, ready = world.access.make_link(acts=True), threading.Barrier(6)
    statuses: list[int] = []

    def come() -> None:
        ready.wait()
        statuses.append(world.browser().post("/api/login", {"token": token}).status)

    threads = [threading.Thread(target=come) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(statuses) == [200, 401, 401, 401, 401, 401]


def test_wrong_tries_are_limited_and_keep_nobody_out(world: World) -> None:
    for _ in range(LOGINS_A_MINUTE):
        refused(world.browser().post("/api/login", {"token": "guess"}), 401)
    refused(world.browser().post("/api/login", {"token": "guess"}), 429)
    world.entered()


def test_an_acting_link_unlocks_the_session_that_is_there(world: World) -> None:
    browser = world.entered()
    assert browser.get("/api/session").json["may_act"] is False
    cookie, token = browser.cookie, browser.token
    found = browser.log_in(acts=True)
    assert (browser.cookie, browser.token) == (cookie, token)
    assert "set-cookie" not in found.headers
    assert found.json["session"]["may_act"] is True
    assert browser.get("/api/session").json == found.json["session"]
    assert browser.post("/api/lock").json["may_act"] is False
    refused(browser.post("/api/commands", {"verb": "stop", "agent": "builder"}), 403)


def test_logging_out_ends_it(world: World) -> None:
    browser, other = world.entered(), world.entered()
    found = browser.post("/api/logout")
    assert "Max-Age=0" in found.headers["set-cookie"]
    refused(browser.get("/api/session"), 401)
    assert other.get("/api/session").status == 200


def test_a_session_says_who_and_where(world: World) -> None:
    found = world.entered().get("/api/session").json
    assert found["fleet"] == world.fleet.path.parent.name
    assert (found["host"], found["may_act"], found["acts_until"]) == ("box", False, None)
    assert set(found) == {"fleet", "host", "user", "may_act", "acts_until", "expires", "version"}


def test_a_session_survives_a_restart(world: World) -> None:
    browser = world.entered(acts=True)
    world.server.stop()
    world.port = world.server.start()
    assert world.port == browser.port
    assert browser.get("/api/session").json["may_act"] is True


# --- commands ---


def test_a_command_is_sent_in_the_name_of_the_link_s_maker(world: World) -> None:
    browser = world.entered(acts=True)
    user = browser.get("/api/session").json["user"]
    found = browser.post("/api/commands", {"verb": "send", "agent": "builder", "text": "go", "when": "idle"})
    assert (found.status, found.json) == (202, {"id": "c1"})
    assert world.source.submitted == [(Send(agent="builder", text="go", when="idle"), f"{user} (page)")]
    progress = browser.get("/api/commands/c1").json
    assert (progress["id"], progress["state"], progress["agent"]) == ("c1", "sent", "builder")
    refused(world.entered().get("/api/commands/c1"), 404)
    refused(browser.get("/api/commands/c2"), 404)


def test_a_session_that_only_looks_sends_nothing(world: World) -> None:
    found = world.entered().post("/api/commands", {"verb": "comment", "agent": "builder", "text": "x"})
    refused(found, 403, "muster board --act")
    assert found.json["code"] == "locked"
    assert world.source.submitted == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"\xff",
        b"[1]",
        b'"x"',
        b"[" * 100_000,
        b'{"verb": "send", "agent": "builder", "text": NaN}',
        b'{"verb": "send", "agent": "builder", "text": "\\ud800"}',
        *(
            json.dumps(each).encode()
            for each in (
                {},
                {"verb": "rebuild"},
                {"verb": "park", "agent": "builder"},
                {"verb": "stop"},
                {"verb": ["stop"], "agent": "builder"},
                {"verb": "stop", "agent": "../x"},
                {"verb": "stop", "agent": 7},
                {"verb": "stop", "agent": "builder", "by": "root (cli)"},
                {"verb": "stop", "agent": "builder", "id": "x"},
                {"verb": "approve", "agent": "builder"},
                {"verb": "send", "agent": "builder", "text": ["x"]},
            )
        ),
    ],
)
def test_what_no_page_sends_is_refused(world: World, body: bytes) -> None:
    refused(world.entered(acts=True).post("/api/commands", body), 400)
    assert world.source.submitted == []


def test_what_the_service_refuses_is_said(world: World) -> None:
    world.source.refuses = "there is no agent 'x'"
    refused(world.entered(acts=True).post("/api/commands", {"verb": "stop", "agent": "x"}), 400, "there is no agent")


def test_commands_are_limited(world: World) -> None:
    browser = world.entered(acts=True)
    statuses = [browser.post("/api/commands", {"verb": "stop", "agent": "builder"}).status for _ in range(40)]
    assert 429 in statuses
    assert statuses[:20] == [202] * 20


@pytest.mark.parametrize("announced", [True, False])
def test_a_huge_body_is_refused(world: World, announced: bool) -> None:
    browser = world.entered(acts=True)
    with browser.raw() as peer:
        length = "Content-Length: 10000000" if announced else "Transfer-Encoding: chunked"
        peer.sendall(head(browser, length))
        if not announced:
            for _ in range(5):
                peer.sendall(b"10000\r\n" + b"x" * 0x10000 + b"\r\n")
        assert peer.recv(12) == b"HTTP/1.1 413"


def head(browser: RawBrowser, *more: str) -> bytes:
    lines = [
        "POST /api/commands HTTP/1.1",
        f"Host: {browser.host}",
        f"Origin: http://{browser.host}",
        "Content-Type: application/json",
        f"Cookie: {browser.cookie}",
        f"X-Muster-Token: {browser.token}",
        *more,
    ]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


# --- questions, files ---


def test_questions_are_answered(world: World) -> None:
    browser = world.entered()
    assert browser.get("/api/agents/builder/transcript").json == {"transcript": [SHOWN]}
    assert browser.get("/api/day").json["bucket_s"] == 120
    for path in ("/api/agents/nobody/record", "/api/agents/builder/secrets", "/api/agents/%2e%2e/record", "/api/x"):
        refused(browser.get(path), 404)


def test_slow_answers_delay_no_command_and_are_limited(world: World) -> None:
    browser = world.entered(acts=True)
    world.source.blocked.clear()
    statuses: list[int] = []
    asking = [
        threading.Thread(target=lambda: statuses.append(browser.get("/api/agents/builder/record").status))
        for _ in range(20)
    ]
    for each in asking:
        each.start()
    wait_until(lambda: statuses.count(503) == 4, "four are refused")
    assert browser.post("/api/commands", {"verb": "stop", "agent": "builder"}).status == 202
    world.source.blocked.set()
    for each in asking:
        each.join()
    assert sorted(statuses) == [200] * 16 + [503] * 4


def test_the_page_s_files_are_served_as_what_they_are(world: World) -> None:
    kinds = {
        "/": "text/html; charset=utf-8",
        "/page/app.js": "text/javascript; charset=utf-8",
        "/page/style.css": "text/css; charset=utf-8",
        "/page/icon.svg": "image/svg+xml",
        "/page/vendor/font.woff2": "font/woff2",
        "/page/vendor/LICENSE": "text/plain; charset=utf-8",
    }
    for path, kind in kinds.items():
        found = world.browser().get(path)
        assert (found.status, found.headers["content-type"]) == (200, kind)
        secured(found)
    assert world.browser().get("/").text == INDEX


@pytest.mark.parametrize(
    "path",
    [
        *("/page/../fleet.yaml", "/page/%2e%2e/fleet.yaml", "/page/..%2ffleet.yaml", "/page//index.html", "/page/"),
        *("/page/vendor", "/page/app.js%00", "/page/app.js/", "//", "/fleet.yaml", "/page/vendor/../../fleet.yaml"),
        *("/page/%5c..%5cfleet.yaml", "http://evil.example/", "/page/%252e%252e/fleet.yaml", "/favicon.ico"),
        *("/%0A", "/page/app.js%0A"),
    ],
)
def test_no_path_leads_elsewhere(world: World, path: str) -> None:
    refused(world.browser().get(path), 404)


# --- streams ---


def test_a_stream_begins_with_the_whole_board(world: World) -> None:
    with world.entered().stream() as page:
        assert page.status == 200
        assert page.headers["content-type"] == "text/event-stream; charset=utf-8"
        assert {name: page.headers.get(name) for name in SECURITY} == SECURITY
        board = page.next("board")
        assert board["whole"] is True
        assert board["cards"] == {"builder": {"headline": SHOWN}}
        assert board["now"]
        world.source.feed.put_lines({"builder": "ls\x1b"})
        assert {**page.next("board"), "now": ""} == {"whole": False, "lines": {"builder": "ls⟨U+001B⟩"}, "now": ""}


def test_changes_come_at_once_and_then_in_turns(world: World) -> None:
    with world.entered().stream() as page:
        page.next("board")
        began, number = time.monotonic(), 0
        while time.monotonic() < began + 0.5:
            number += 1
            world.source.feed.put_lines({"builder": str(number)})
        texts = [page.next("board")["lines"]["builder"]]
        while texts[-1] != str(number):
            texts.append(page.next("board")["lines"]["builder"])
        assert int(texts[0]) < number / 2
        assert len(texts) <= 0.5 / stream.TURN_S + 2


def test_watchers_are_counted_until_the_page_is_gone(world: World) -> None:
    feed = world.source.feed
    with world.entered().stream() as page:
        page.next("board")
        assert feed.watchers == 1
    wait_until(lambda: feed.watchers == 0, "the stream has ended")


def test_pings_come(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "PING_S", 0.1)
    with world.entered().stream() as page:
        assert [page.next("ping"), page.next("ping")] == [{}, {}]


def test_a_screen_comes_when_it_is_asked_for_and_changed(world: World) -> None:
    with world.entered().stream("/api/stream?agent=builder") as page:
        assert page.next("screen")["said"] == "not running"
        seen = world.source.asked_screens
        wait_until(lambda: world.source.asked_screens > seen + 2, "it is read again")
        world.source.screens["builder"] = {"agent": "builder", "rows": [[["\x07", 0]]], "said": ""}
        assert page.next("screen")["rows"] == [[["⟨U+0007⟩", 0]]]
        world.source.screen_failure = MusterError("tmux does not answer")
        assert page.next("screen")["said"] == "tmux does not answer"
    with world.entered().stream() as page:
        page.next("board")
        wait_until(lambda: world.source.feed.watchers == 1, "the other stream has ended")
        seen = world.source.asked_screens
        world.source.feed.put_lines({"builder": "ls"})
        page.next("board")
        assert world.source.asked_screens <= seen + 1


def test_a_screen_of_no_agent_is_refused(world: World) -> None:
    refused(world.entered().get("/api/stream?agent=../x"), 400)


def test_a_page_hears_of_its_own_commands_only(world: World) -> None:
    browser, other = world.entered(acts=True), world.entered(acts=True)
    with browser.stream() as page, other.stream() as foreign:
        page.next("board")
        foreign.next("board")
        browser.post("/api/commands", {"verb": "stop", "agent": "builder"})
        assert page.next("command")["state"] == "sent"
        world.source.advance("c1", "waiting", "for the input box")
        assert page.next("command")["said"] == "for the input box"
        world.source.advance("c1", "done")
        assert page.next("command")["state"] == "done"
        other.post("/api/commands", {"verb": "restart", "agent": "builder"})
        assert foreign.next("command")["id"] == "c2"
    with browser.stream() as page:
        assert page.next("command")["state"] == "done"


def test_a_grant_that_is_given_and_taken_is_told_to_open_pages(world: World) -> None:
    browser = world.entered()
    with browser.stream() as page:
        page.next("board")
        browser.log_in(acts=True)
        assert page.next("session")["may_act"] is True
        browser.post("/api/lock")
        assert page.next("session")["may_act"] is False


def test_a_grant_that_ends_is_told_to_open_pages(world: World) -> None:
    browser = world.entered(acts=True)
    with browser.stream() as page:
        page.next("board")
        file = world.fleet.home / "board" / "sessions.json"
        found = json.loads(file.read_text())
        found["sessions"][0]["acts_until"] = time.time() - 1
        write(file, json.dumps(found))
        assert page.next("session")["may_act"] is False
    refused(browser.post("/api/commands", {"verb": "stop", "agent": "builder"}), 403)
    assert world.source.submitted == []


def test_acting_makes_the_grant_last(world: World) -> None:
    browser = world.entered(acts=True)
    file = world.fleet.home / "board" / "sessions.json"
    found = json.loads(file.read_text())
    found["sessions"][0]["acts_until"] = soon = time.time() + 60
    write(file, json.dumps(found))
    assert browser.post("/api/commands", {"verb": "stop", "agent": "builder"}).status == 202
    assert json.loads(file.read_text())["sessions"][0]["acts_until"] > soon + 600


def test_revoking_ends_open_streams_within_two_seconds(world: World) -> None:
    browser = world.entered(acts=True)
    with browser.stream() as page:
        page.next("board")
        began = time.monotonic()
        assert world.access.revoke().sessions == 1
        assert list(page.messages()) == []
        assert time.monotonic() - began < 2
    refused(browser.get("/api/session"), 401)


def test_streams_are_limited(world: World) -> None:
    browser = world.entered()
    pages = [browser.stream() for _ in range(MOST_STREAMS)]
    refused(browser.get("/api/stream"), 503, "too many pages")
    for page in pages:
        page.close()
    wait_until(lambda: world.source.feed.watchers == 0, "they have ended")
    with browser.stream() as page:
        assert page.status == 200


# --- connections that want to hold it ---


def test_there_is_an_end_of_connections(world: World) -> None:
    held = [world.browser().raw() for _ in range(MOST_CONNECTIONS)]
    with world.browser().raw() as one_more:
        assert read_all(one_more).startswith(b"HTTP/1.1 503 ")
    for each in held:
        each.close()
    wait_until(lambda: status_of(world) == 200, "there is room again")


def status_of(world: World) -> int | None:
    try:
        return world.browser().get("/").status
    except OSError:
        return None


def read_all(peer: socket.socket) -> bytes:
    """Until the server closes it."""
    found = b""
    try:
        while piece := peer.recv(65536):
            found += piece
    except ConnectionResetError:
        pass
    return found


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\n", b"POST"])
def test_a_request_that_does_not_come_to_its_end_is_dropped(
    world: World, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connections, "REQUEST_WITHIN_S", 0.3)
    with world.browser().raw() as peer:
        peer.sendall(sent)
        assert read_all(peer) == b""


def test_a_body_that_does_not_come_to_its_end_is_dropped(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    browser = world.entered(acts=True)
    monkeypatch.setattr(connections, "REQUEST_WITHIN_S", 0.5)
    with browser.raw() as peer:
        peer.sendall(head(browser, "Content-Length: 100") + b"{")
        dripping = threading.Event()

        def drip() -> None:
            while not dripping.wait(0.1):
                try:
                    peer.sendall(b" ")
                except OSError:
                    return

        thread = threading.Thread(target=drip)
        thread.start()
        began = time.monotonic()
        found = read_all(peer)
        dripping.set()
        thread.join()
    assert time.monotonic() - began < 5
    assert b"202" not in found
    assert world.source.submitted == []


def test_a_body_that_began_with_another_request_is_dropped(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_WITHIN_S", 0.5)
    browser = world.browser()
    with browser.raw() as peer:
        whole = f"GET / HTTP/1.1\r\nHost: {browser.host}\r\n\r\n".encode()
        peer.sendall(whole + head(browser, "Content-Length: 100").replace(b"/api/commands", b"/api/login") + b"{")
        began = time.monotonic()
        assert read_all(peer).startswith(b"HTTP/1.1 200")
    assert time.monotonic() - began < 5


def test_a_stream_outlives_the_time_for_requests(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_WITHIN_S", 0.2)
    monkeypatch.setattr(stream, "PING_S", 0.15)
    with world.entered().stream() as page:
        for _ in range(4):
            page.next("ping")


def test_a_page_that_takes_nothing_is_dropped(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "TCP_USER_TIMEOUT", raising=False)  # the kernel would be first
    monkeypatch.setattr(connections, "TAKES_WITHIN_S", 0.3)
    browser = world.entered()
    with socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.connect(("127.0.0.1", world.port))
        peer.sendall(head(browser).replace(b"POST /api/commands", b"GET /api/stream"))
        wait_until(lambda: world.source.feed.watchers == 1, "the stream is open")

        def is_dropped() -> bool:
            world.source.feed.put_fleet({"much": os.urandom(100_000).hex()})
            return world.source.feed.watchers == 0

        wait_until(is_dropped, "the stream was dropped")


@pytest.mark.parametrize(
    "sent",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nX: " + b"x" * 40_000,
        b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n",
    ],
)
def test_what_is_no_request_gets_a_sentence_with_all_headers(world: World, sent: bytes) -> None:
    with world.browser().raw() as peer:
        peer.sendall(sent)
        head_, _, body = read_all(peer).partition(b"\r\n\r\n")
    assert head_.startswith(b"HTTP/1.1 400")
    for name, value in SECURITY.items():
        assert f"{name}: {value}".encode() in head_
    assert b"content-security-policy: default-src 'none'" in head_
    assert json.loads(body)["said"] == "this is no request that the board understands"


def test_a_web_socket_is_not_opened(world: World) -> None:
    browser = world.entered()
    found = browser.get("/api/stream?agent=../x", Connection="Upgrade", Upgrade="websocket", Sec_WebSocket_Key="eA==")
    refused(found, 400)


# --- start and stop ---


def test_it_says_where_it_is_and_stops_soon_with_open_streams(world: World) -> None:
    assert last_address(world.fleet.home) == BoardAddress(world.port, os.getpid())
    world.source.blocked.clear()
    browser = world.entered()

    def ask() -> None:
        with contextlib.suppress(OSError):
            browser.get("/api/agents/builder/record")

    asking = threading.Thread(target=ask)
    with browser.stream() as page, browser.raw():
        page.next("board")
        asking.start()
        began = time.monotonic()
        world.server.stop()
        assert time.monotonic() - began < 2
        assert not world.server.is_running
        assert list(page.messages()) == []
    world.source.blocked.set()
    asking.join()


def test_a_port_that_somebody_else_has_is_left_to_them(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        taken = other.getsockname()[1]
        home = WrittenFleet(tmp_path, {}).file.fleet.home
        save_address(home, BoardAddress(taken, 1))
        world = World(tmp_path)
        world.server.stop()
        assert world.port != taken
        (tmp_path / "other").mkdir()
        with pytest.raises(MusterError, match=rf"can't listen on 127.0.0.1:{taken}: .*; free that port, or change"):
            World(tmp_path / "other", listen=f"127.0.0.1:{taken}")


def test_a_public_address_has_its_own_cookie_and_origin(tmp_path: Path) -> None:
    world = World(tmp_path, public_url="https://board.example")
    try:
        browser = world.browser()
        token = world.access.make_link(acts=False)
        there = {"Host": "board.example", "Origin": "https://board.example"}
        refused(browser.post("/api/login", {"token": token}, Host="board.example"), 403)
        refused(browser.post("/api/login", {"token": token}, **{**there, "Origin": "http://board.example"}), 403)
        found = browser.post("/api/login", {"token": token}, **there)
        assert found.headers["set-cookie"].startswith(f"__Host-muster-{world.fleet.stamp}=")
        assert found.headers["set-cookie"].endswith("; Path=/; Max-Age=604800; HttpOnly; SameSite=Strict; Secure")
        browser.keep(found)
        assert browser.get("/api/session", Host="board.example").status == 200
        refused(browser.get("/api/session"), 401)
        assert world.entered().get("/api/session").status == 200
    finally:
        world.server.stop()


def test_a_page_that_nobody_would_find_is_not_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def is_full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    fleet = WrittenFleet(tmp_path, {"builder": {}}).file.fleet
    server = BoardServer(fleet, FakePageSource(), write_page(tmp_path / "page"), Log("board", io.StringIO()))
    with monkeypatch.context() as patch:
        patch.setattr(web_server, "save_address", is_full)
        with pytest.raises(MusterError, match="No space left"):
            server.start()
    assert not server.is_running
    port = server.start()
    assert last_address(fleet.home) == BoardAddress(port, os.getpid())
    server.stop()
