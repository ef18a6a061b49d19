"""Links open once and in time, sessions need both secrets and end when they should, files open nothing."""

import io
import json
import os
import stat
import threading
from pathlib import Path

import pytest

from shared.client import board_access
from shared.client.board_access import (
    GRANT_LASTS_AT_MOST_S,
    GRANT_LASTS_S,
    LINK_LASTS_S,
    MOST_SESSIONS,
    SESSION_LASTS_S,
    BoardAccess,
    BoardAddress,
    BoardSession,
    Revoked,
    SessionSecrets,
    board_directory,
    last_address,
    page_url,
    running_address,
    save_address,
    system_user,
)
from shared.fleet import Declaration, Fleet
from shared.system.lock import hold
from shared.system.log import Log


class Now:
    def __init__(self) -> None:
        self.time = 1_900_000_000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def now() -> Now:
    return Now()


@pytest.fixture
def said() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def access(tmp_path: Path, now: Now, said: io.StringIO) -> BoardAccess:
    return BoardAccess(tmp_path, Log("board", said), now)


def entered(access: BoardAccess, *, acts: bool = False) -> tuple[SessionSecrets, BoardSession]:
    found = access.log_in(access.make_link(acts=acts))
    assert found is not None
    assert found[0] is not None
    return found[0], found[1]


# --- where it runs ---


def test_the_address_of_a_dead_board_is_not_believed(tmp_path: Path) -> None:
    save_address(tmp_path, BoardAddress(4711, os.getpid()))
    assert running_address(tmp_path) is None
    assert last_address(tmp_path) == BoardAddress(4711, os.getpid())
    with hold(tmp_path / "run" / "board.lock"):
        assert running_address(tmp_path) == BoardAddress(4711, os.getpid())
        save_address(tmp_path, BoardAddress(4711, os.getpid() + 1))
        assert running_address(tmp_path) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"port": "x", "pid": 1}', '{"port": 1}', "null"])
def test_a_broken_address_is_none(tmp_path: Path, text: str) -> None:
    board_directory(tmp_path).mkdir()
    (board_directory(tmp_path) / "address.json").write_text(text)
    assert last_address(tmp_path) is None


@pytest.mark.parametrize(
    ("board", "url"),
    [
        ({}, "http://127.0.0.1:4711"),
        ({"listen": "[::1]:0"}, "http://[::1]:4711"),
        ({"public_url": "https://board.example/"}, "https://board.example"),
    ],
)
def test_the_page_is_where_people_reach_it(tmp_path: Path, board: dict[str, str], url: str) -> None:
    fleet = Fleet(tmp_path / "fleet.yaml", Declaration.model_validate({"board": board}))
    assert page_url(fleet, BoardAddress(4711, 1)) == url


# --- links ---


def test_a_link_opens_once(access: BoardAccess) -> None:
    token = access.make_link(acts=False)
    assert len(token) >= 43
    assert access.log_in(token) is not None
    assert access.log_in(token) is None
    assert access.log_in("") is None
    assert access.log_in("../../sessions.json") is None
    assert access.log_in("\ud800") is None


def test_of_many_at_once_one_gets_in(access: BoardAccess, tmp_path: Path, now: Now) -> None:
    token = access.make_link(acts=True)
    ready, won = threading.Barrier(8), []

    def take() -> None:
        own = BoardAccess(tmp_path, clock=now)
        ready.wait()
        if own.log_in(token) is not None:
            won.append(1)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert won == [1]


def test_a_link_that_is_too_old_opens_nothing_and_goes(access: BoardAccess, tmp_path: Path, now: Now) -> None:
    tokens = [access.make_link(acts=False), access.make_link(acts=False)]
    now.time += LINK_LASTS_S
    assert access.log_in(tokens[0]) is None
    access.make_link(acts=False)
    assert len(list((board_directory(tmp_path) / "links").iterdir())) == 1


def test_a_link_from_before_the_clock_was_set_back_opens_nothing(access: BoardAccess, now: Now) -> None:
    token = access.make_link(acts=False)
    now.time -= 3600
    assert access.log_in(token) is None


def test_taking_a_link_removes_the_page_that_leads_to_it(access: BoardAccess) -> None:
    token = access.make_link(acts=False)
    access.redirect_page.write_text(token)
    access.log_in(token)
    assert not access.redirect_page.exists()


def test_no_secret_is_in_any_file_and_only_the_owner_reads_them(access: BoardAccess, tmp_path: Path) -> None:
    unused = access.make_link(acts=True)
    kept, _ = entered(access)
    paths = [board_directory(tmp_path), *board_directory(tmp_path).rglob("*")]
    assert len(paths) >= 5
    for path in paths:
        assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600)
        content = str(path) + (path.read_text() if path.is_file() else "")
        assert not any(secret in content for secret in (unused, kept.id, kept.token))


# --- sessions ---


def test_a_session_needs_both_its_secrets(access: BoardAccess) -> None:
    one, session = entered(access)
    other, _ = entered(access)
    assert access.find([one.id], one.token) == session
    assert access.find(["planted", one.id], one.token) == session
    assert session.user == system_user()
    assert access.find([one.id], other.token) is None
    assert access.find([other.id], one.token) is None
    assert access.find([], one.token) is None
    assert access.find([one.id], "") is None
    assert access.find([one.token], one.id) is None
    assert access.find([session.id_digest], session.token_digest) is None


def test_a_session_survives_a_restart_and_ends_after_a_week(access: BoardAccess, tmp_path: Path, now: Now) -> None:
    kept, session = entered(access)
    again = BoardAccess(tmp_path, clock=now)
    assert again.find([kept.id], kept.token) == session
    now.time += SESSION_LASTS_S - 1
    assert again.find([kept.id], kept.token) == session
    now.time += 1
    assert again.find([kept.id], kept.token) is None
    assert again.current(session) is None


def test_a_session_from_before_the_clock_was_set_back_is_over(access: BoardAccess, now: Now) -> None:
    kept, _ = entered(access, acts=True)
    now.time -= 3600
    assert access.find([kept.id], kept.token) is None


def test_the_oldest_session_goes(access: BoardAccess, now: Now) -> None:
    first, _ = entered(access)
    for _ in range(MOST_SESSIONS - 1):
        now.time += 1
        last, _ = entered(access)
    assert access.find([first.id], first.token) is not None
    now.time += 1
    entered(access)
    assert access.find([first.id], first.token) is None
    assert access.find([last.id], last.token) is not None


def test_a_grant_lasts_from_the_last_action_and_not_for_ever(access: BoardAccess, now: Now) -> None:
    _, session = entered(access, acts=True)
    began = now.time
    assert session.may_act(now.time)
    while now.time < began + GRANT_LASTS_AT_MOST_S - GRANT_LASTS_S:
        now.time += GRANT_LASTS_S - 1
        extended = access.extend(session)
        assert extended is not None
        assert extended.may_act(now.time)
    assert extended is not None
    assert extended.acts_until == began + GRANT_LASTS_AT_MOST_S
    now.time = began + GRANT_LASTS_AT_MOST_S
    assert not extended.may_act(now.time)


def test_a_grant_that_ended_is_not_extended(access: BoardAccess, now: Now) -> None:
    _, session = entered(access, acts=True)
    now.time += GRANT_LASTS_S
    after = access.extend(session)
    assert after is not None
    assert not after.may_act(now.time)


def test_a_session_that_only_looks_gets_no_grant_by_acting(access: BoardAccess, now: Now) -> None:
    _, session = entered(access)
    assert not session.may_act(now.time)
    after = access.extend(session)
    assert after is not None
    assert not after.may_act(now.time)


def test_an_acting_link_adds_to_the_session_of_the_browser(access: BoardAccess, now: Now) -> None:
    kept, session = entered(access)
    found = access.log_in(access.make_link(acts=True), session)
    assert found is not None
    assert found[0] is None
    now_there = access.find([kept.id], kept.token)
    assert now_there == found[1]
    assert now_there is not None
    assert now_there.may_act(now.time)
    looked = access.log_in(access.make_link(acts=False), now_there)
    assert looked == (None, now_there)


def test_a_link_of_another_user_opens_a_session_of_its_own(access: BoardAccess) -> None:
    _, session = entered(access)
    found = access.log_in(access.make_link(acts=True, user="grace"), session)
    assert found is not None
    assert found[0] is not None
    assert found[1].user == "grace"
    assert access.current(session) == session


def test_a_link_for_a_session_that_ended_opens_another(access: BoardAccess) -> None:
    _, session = entered(access)
    access.close(session)
    found = access.log_in(access.make_link(acts=False), session)
    assert found is not None
    assert found[0] is not None


def test_locking_takes_the_grant_back_and_closing_ends_it(access: BoardAccess, now: Now) -> None:
    kept, session = entered(access, acts=True)
    other, _ = entered(access)
    locked = access.lock(session)
    assert locked is not None
    assert not locked.may_act(now.time)
    access.close(session)
    assert access.find([kept.id], kept.token) is None
    assert access.lock(session) is None
    assert access.find([other.id], other.token) is not None


def test_revoking_ends_everything_also_for_another_process(access: BoardAccess, tmp_path: Path, now: Now) -> None:
    kept, session = entered(access, acts=True)
    token = access.make_link(acts=True)
    access.redirect_page.write_text(token)
    assert BoardAccess(tmp_path, clock=now).revoke() == Revoked(sessions=1, links=1)
    assert access.find([kept.id], kept.token) is None
    assert access.current(session) is None
    assert access.extend(session) is None
    assert access.log_in(token) is None
    assert not access.redirect_page.exists()
    assert BoardAccess(tmp_path, clock=now).revoke() == Revoked(0, 0)


def test_revoking_where_no_board_ever_was_makes_no_files(tmp_path: Path) -> None:
    assert BoardAccess(tmp_path).revoke() == Revoked(0, 0)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"sessions": 1}', '{"sessions": [{}]}', '{"sessions": [null]}', "\x00", "[" * 10**5],
)
def test_a_broken_file_means_no_sessions_and_is_said_once(
    access: BoardAccess, tmp_path: Path, said: io.StringIO, text: str
) -> None:
    kept, _ = entered(access)
    (board_directory(tmp_path) / "sessions.json").write_text(text)
    assert access.find([kept.id], kept.token) is None
    assert access.find([kept.id], kept.token) is None
    (line,) = said.getvalue().splitlines()
    assert json.loads(line)["said"] == "could not read the board's sessions, so there are none"
    again, _ = entered(access)
    assert access.find([again.id], again.token) is not None


def test_a_file_that_lets_a_session_last_longer_is_not_believed(access: BoardAccess, tmp_path: Path, now: Now) -> None:
    kept, _ = entered(access)
    file = board_directory(tmp_path) / "sessions.json"
    found = json.loads(file.read_text())
    found["sessions"][0]["expires"] = 1e300
    file.write_text(json.dumps(found))
    now.time += SESSION_LASTS_S
    assert access.find([kept.id], kept.token) is None


def test_the_user_is_the_system_s_word(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "somebody-else")
    assert board_access.system_user() != "somebody-else"
