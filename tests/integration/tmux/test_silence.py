"""Where it can't be known what runs: no answer is never read as nothing."""

import os
import signal
import socket
import threading
from contextlib import suppress
from pathlib import Path

import pytest

from shared.errors import Retryable
from shared.system.tmux import SessionExists, Tmux, TmuxMissing, TmuxUnavailable
from tests.integration.tmux.server import Server


def test_a_socket_that_can_not_be_reached_is_not_nothing(home: Path) -> None:
    (home / "file").touch()
    tmux = Tmux(str(home / "file" / "socket"))
    with pytest.raises(
        TmuxUnavailable, match=r"tmux did not answer 'list-panes': error connecting to .*Not a directory"
    ):
        tmux.look()


@pytest.mark.parametrize("greeting", [None, b"garbage\n" * 100, b""], ids=["silent", "garbage", "closed"])
def test_a_socket_with_something_else_behind_is_not_nothing(home: Path, greeting: bytes | None) -> None:
    path = home / "s"
    tmux = Tmux(os.path.relpath(path, Path.cwd()) if len(str(path)) > 100 else str(path), timeout_s=0.5)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        kept = []

        def serve() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                if greeting is None:
                    kept.append(peer)
                    continue
                peer.sendall(greeting)
                peer.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with pytest.raises(TmuxUnavailable) as raised:
                tmux.look()
            assert isinstance(raised.value, Retryable)
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for peer in kept:
                peer.close()


def test_a_stopped_server_raises_and_recovers(server: Server) -> None:
    server.start("one")
    server.tmux.close()
    hasty = server.tmux = server.watch(timeout_s=1)
    before = hasty.look()
    pid = server.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        for _ in range(2):  # over the old connection, then over a new one
            with pytest.raises(TmuxUnavailable, match="did not answer 'list-panes': no reply within 1 s"):
                hasty.look()
            assert not hasty.connected
        with pytest.raises(TmuxUnavailable):
            hasty.ask(["display-message", "-p", "an old question"])
        with pytest.raises(TmuxUnavailable):
            server.start("never")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert hasty.ask(["display-message", "-p", "a new question"])[0].text == "a new question"
    assert hasty.look() == before
    assert server.pid == pid


def test_what_a_stopped_server_was_told_to_start_is_started_once(server: Server) -> None:
    server.start("one")
    server.tmux.close()
    server.tmux = server.watch(timeout_s=1)
    server.tmux.look()
    pid = server.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(TmuxUnavailable, match="'new-session': no reply"):
            server.start("late")
    finally:
        os.kill(pid, signal.SIGCONT)
    server.tmux.close()
    server.tmux = server.watch()
    # It may have been done on waking or have gone with the connection: the name decides.
    with suppress(SessionExists):
        server.start("late")
    assert sorted(str(pane.spawn) for pane in server.tmux.look()) == ["late-1", "one-1"]
    assert server.pid == pid


def test_a_batch_too_big_for_a_stopped_server_raises(server: Server) -> None:
    server.start()
    server.tmux.close()
    server.tmux = server.watch(timeout_s=1)
    pid = server.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(TmuxUnavailable):
            server.tmux.ask(*([["display-message", "-p", "x" * 1000]] * 2000))
    finally:
        os.kill(pid, signal.SIGCONT)


def test_missing_tmux_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(home))
    with pytest.raises(TmuxMissing, match="tmux is not installed; install it with apt-get install tmux"):
        Tmux("muster-test-none").look()
