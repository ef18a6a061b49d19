"""Somebody cleans up /tmp: the server lives on without its socket, and so do its agents."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from shared.system.tmux import Tmux, TmuxUnavailable
from shared.system.tmux.server import end_server, restore_socket, socket_of
from tests.fixtures.broker import wait_until
from tests.fixtures.lives import Lives
from tests.integration.tmux.server import Server, eventually

SLEEPER = {"sleeper": {"binary": "sleep", "argv": ["{binary}", "1000"], "deliver": "arg"}}


def looked(tmux: Tmux) -> list[str | None]:
    """What is seen in the end: never nothing."""
    found: list[str | None] = []

    def answers() -> bool:
        try:
            found[:] = [pane.agent for pane in tmux.look()]
        except TmuxUnavailable:
            return False
        return True

    eventually(answers)
    return found


def test_a_client_that_was_connected_does_not_believe_it(server: Server) -> None:
    server.start("one")
    server.connect()
    server.tmux.close()
    server.path.unlink()
    assert looked(server.tmux) == ["one"]
    assert server.path.exists()


@pytest.mark.parametrize("quick", [False, True])
def test_while_it_does_not_answer_that_is_not_nothing(server: Server, *, quick: bool) -> None:
    server.start("one")
    server.connect()
    pid = server.pid
    server.tmux.close()
    server.path.unlink()
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(TmuxUnavailable, match="was removed"):
            server.tmux.stamps("home") if quick else server.tmux.look()
    finally:
        os.kill(pid, signal.SIGCONT)
    assert looked(server.tmux) == ["one"]


def test_a_client_that_expects_the_server_does_not_believe_it_either(server: Server) -> None:
    server.start("one")
    server.connect()
    known = server.tmux.server or ""
    server.tmux.close()
    server.path.unlink()
    fresh = server.watch()
    fresh.expect([known, "1-1", "nonsense", ""])
    assert looked(fresh) == ["one"]
    fresh.close()


def test_a_server_that_has_ended_is_none(server: Server) -> None:
    server.start("one")
    server.connect()
    known = server.tmux.server or ""
    end_server(server.socket)
    assert looked(server.tmux) == []
    assert not restore_socket(known, server.path)


def test_a_server_on_another_socket_is_none(server: Server) -> None:
    server.start("one")
    server.connect()
    elsewhere = Tmux(f"{server.socket}-other")
    elsewhere.expect([server.tmux.server or ""])
    assert elsewhere.look() == []
    pid, _, started = (server.tmux.server or "").partition("-")
    assert not restore_socket(f"{pid}-{int(started) - 100}", server.path), "another process has its number"


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    lives = Lives(tmp_path, {"builder": {"backend": "sleeper"}}, backends=SLEEPER)
    yield lives
    lives.end()


def test_a_spawner_that_is_started_anew_finds_its_agents_alive(lives: Lives) -> None:
    with lives.life("services.spawner"):
        (before,) = wait_until(lives.sessions, "it runs")
        lives.settle()
    lives.tmux.close()
    socket_of(lives.socket).unlink()
    with lives.life("services.spawner"):
        for _ in range(3):
            lives.settle()
        (now,) = lives.sessions()
    assert (now.spawn, now.pid) == (before.spawn, before.pid)
    assert psutil.pid_exists(before.pid)
    assert [data["kind"] for data in lives.told()] == ["spawned"]
