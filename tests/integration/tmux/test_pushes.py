"""What others do and how programs end is told unasked; looking is no change."""

import os
import signal

import pytest

from shared.system.tmux import Tmux
from tests.integration.tmux.server import SLEEPER, Server, eventually, has_ended


def test_what_others_do_is_pushed(server: Server) -> None:
    server.start("one")
    for action in (
        ["new-session", "-d", "-s", "theirs", *SLEEPER],
        ["rename-session", "-t", "=theirs", "renamed"],
        ["new-window", "-d", "-t", "=renamed:", *SLEEPER],
        ["kill-window", "-t", "=renamed:"],
        ["kill-session", "-t", "=renamed"],
    ):
        with server.pushed():
            server.run(*action)


def test_a_death_is_pushed_as_soon_as_tmux_knows_its_status(server: Server) -> None:
    pane = server.start("one")
    pid = server.pid
    with server.pushed():
        os.kill(pane.pid, signal.SIGKILL)
        # tmux may have missed the word (see Tmux.look); this is what it would have got.
        eventually(lambda: server.run("list-panes", "-t", "=one:", "-F", "#{pane_dead}") == "1")
        eventually(lambda: has_ended(pane.pid))
        os.kill(pid, signal.SIGCHLD)
    assert server.told("display-message", "-p", "-t", "=one:", "#{window_name}") == "dead"


def test_looking_is_no_change(server: Server) -> None:
    server.start("one")
    server.tmux.close()
    server.tmux.look()
    changes = server.changes
    with_another = server.watch()
    pane = with_another.look()[0]
    for _ in range(5):
        server.tmux.look()
        server.tmux.screens([pane.pane_id])
    with_another.close()
    eventually(lambda: server.clients("x") == ["x"])
    server.tmux.look()
    assert server.changes == changes


def test_a_listener_that_fails_does_not_make_it_deaf(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    calls = 0

    def fail() -> None:
        nonlocal calls
        calls += 1
        raise RuntimeError("the listener is broken")

    server.start("one")
    server.tmux.close()
    server.tmux = Tmux(server.socket, on_change=fail)
    server.tmux.look()
    for name, told in (("a", 1), ("b", 2)):
        server.run("new-session", "-d", "-s", name, *SLEEPER)
        eventually(lambda told=told: calls >= told)  # type: ignore[misc]
    assert server.tmux.connected
    assert "the listener is broken" in caplog.text
