"""`muster board`: the link is printed and never on a command line, and what is missing is said."""

import json
import os
import stat
import sys
import webbrowser
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from services.cli import board
from services.cli.__main__ import main
from shared.client.board_access import BoardAccess, BoardAddress, save_address
from shared.client.processes import last_good
from shared.contract.commands import Comment, Reply
from shared.fleet import Fleet, load_fleet
from shared.system.lock import hold


@pytest.fixture(autouse=True)
def no_display(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION", "SSH_TTY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What a browser was started with."""
    found: list[str] = []

    def start(url: str) -> bool:
        found.append(url)
        return True

    monkeypatch.setattr(webbrowser, "open", start)
    return found


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    path = tmp_path / "fleet.yaml"
    path.write_text("agents: {builder: {}}\n")
    return load_fleet(path)


@pytest.fixture
def serving(fleet: Fleet) -> Iterator[Fleet]:
    """A fleet whose board runs: this process."""
    save_address(fleet.home, BoardAddress(4711, os.getpid()))
    with hold(fleet.home / "run" / "board.lock"):
        yield fleet


def muster(fleet: Fleet, *words: str) -> int:
    return main(["--fleet", str(fleet.path), "board", *words])


def token_in(printed: str) -> str:
    (link,) = printed.splitlines()
    address, _, token = link.partition("/#")
    assert address == "http://127.0.0.1:4711"
    return token


@pytest.mark.parametrize("words", [[], ["--url"], ["--act"], ["--url", "--act"]])
def test_the_link_that_is_printed_lets_somebody_in(
    serving: Fleet, words: list[str], opened: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert muster(serving, *words) == 0
    shown = capsys.readouterr()
    found = BoardAccess(serving.home).log_in(token_in(shown.out))
    assert found is not None
    assert (found[1].granted is not None) == ("--act" in words)
    assert "works once, within 10 minutes" in shown.err
    assert token_in(shown.out) not in shown.err
    assert opened == []


def test_a_browser_gets_a_private_file_and_no_token(
    serving: Fleet, opened: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    assert muster(serving) == 0
    token = token_in(capsys.readouterr().out)
    page = BoardAccess(serving.home).redirect_page
    assert opened == [page.as_uri()]
    assert token not in opened[0]
    assert f'content="0;url=http://127.0.0.1:4711/#{token}"' in page.read_text()
    assert stat.S_IMODE(page.stat().st_mode) == 0o600
    assert muster(serving, "--url") == 0
    assert muster(serving, "--json") == 0
    assert len(opened) == 1


def test_a_browser_that_can_t_be_started_is_said(
    serving: Fleet, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DISPLAY", ":0")
    monkeypatch.setattr(webbrowser, "open", lambda _: False)
    assert muster(serving) == 0
    assert "open the link yourself" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("environment", "platform", "seen"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({"DISPLAY": ""}, "linux", False),
        ({"DISPLAY": ":0", "SSH_CONNECTION": "1 2 3 4"}, "linux", False),
        ({}, "darwin", True),
        ({"SSH_TTY": "/dev/pts/1"}, "darwin", False),
    ],
)
def test_where_a_browser_is_seen(
    environment: dict[str, str], platform: str, seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)
    assert board.has_display() is seen


def test_the_link_as_json(serving: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    assert muster(serving, "--json", "--act") == 0
    found = json.loads(capsys.readouterr().out)
    assert found["url"].startswith("http://127.0.0.1:4711/#")
    assert (found["acts"], found["lasts_s"]) == (True, 600)


def test_a_broken_fleet_file_does_not_lock_people_out(serving: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    serving.path.write_text("agents: [")
    assert muster(serving, "--url") == 0
    shown = capsys.readouterr()
    assert token_in(shown.out)
    assert "the file of the last `muster up` counts" in shown.err


@pytest.mark.parametrize(
    ("text", "before", "up", "says"),
    [
        ("board: {enabled: false}\n", "", True, "set `board: {enabled: true}` there, then run `muster down`"),
        ("{}\n", "", False, "start them with: muster up"),
        ("{}\n", "board: {enabled: false}\n", True, "switched on after the services were started"),
        ("{}\n", "{}\n", True, "`muster status` tells how it is"),
    ],
)
def test_why_there_is_no_page(
    fleet: Fleet, text: str, before: str, up: bool, says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet.path.write_text(text)
    save_address(fleet.home, BoardAddress(4711, os.getpid()))
    (fleet.home / "run").mkdir()
    if before:
        last_good(fleet).write_text(before)
    lock = hold(fleet.home / "run" / "supervisor.lock") if up else None
    assert muster(fleet) == 1
    shown = capsys.readouterr()
    assert says in shown.err
    assert shown.out == ""
    if lock is not None:
        lock.release()


def test_revoking_says_how_many(fleet: Fleet, capsys: pytest.CaptureFixture[str]) -> None:
    access = BoardAccess(fleet.home)
    found = access.log_in(access.make_link(acts=False))
    assert found is not None
    for _ in range(2):
        access.make_link(acts=False)
    assert muster(fleet, "--revoke") == 0
    assert capsys.readouterr().out == "ended 1 session and 2 unused links\n"
    assert access.current(found[1]) is None
    assert muster(fleet, "--revoke", "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"sessions": 0, "links": 0}


@pytest.mark.parametrize(
    "words", [["comment", "builder", "well", "done", "--json"], ["--json", "comment", "builder", "x"]]
)
def test_a_comment_is_sent_and_its_reply_printed(
    fleet: Fleet, words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sent: list[Any] = []

    def ask(_: Fleet, command: Comment, **__: Any) -> Reply:
        sent.append(command.text)
        return Reply(id="c1", verb="comment", by="board", time=datetime.now(UTC), ok=True, said="commented\x1b")

    monkeypatch.setattr(board, "ask", ask)
    assert muster(fleet, *words) == 0
    assert json.loads(capsys.readouterr().out)["said"] == "commented\x1b"
    assert muster(fleet, "comment", "builder", "well", "done") == 0
    assert capsys.readouterr().out == "commented\\x1b\n"
    assert sent[-1] == "well done"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["comment", "Not An Id", "x"], "'Not An Id' is no agent's name"),
        (["comment", "builder", " "], "comment can't be sent: text: "),
    ],
)
def test_a_comment_that_can_t_be_is_refused(
    fleet: Fleet, words: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert muster(fleet, *words) == 1
    assert says in capsys.readouterr().err


def test_only_the_board_itself_imports_a_web_server() -> None:
    for name in ("services.cli.board", "shared.client.board_access"):
        assert not {"starlette", "uvicorn"} & {each.split(".")[0] for each in imported_by(name)}


def imported_by(module: str) -> set[str]:
    import subprocess  # noqa: PLC0415

    code = f"import sys, {module}; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout.split())
