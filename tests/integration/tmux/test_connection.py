"""Connecting: where there is nothing, while the server or its sessions end, and taking one's leave."""

import itertools
import os
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress

import psutil
import pytest

from shared.system.tmux import NoSession, Tmux
from shared.system.tmux.server import end_server
from tests.integration.tmux.server import SLEEPER, Server, eventually, start_by


def test_without_a_server_there_is_nothing(server: Server) -> None:
    assert server.tmux.look() == []
    assert server.tmux.screens(["%0"]) == {}
    assert server.tmux.kill("$0") is False
    assert not server.tmux.connected
    with pytest.raises(NoSession, match=f"no tmux session on socket '{server.socket}'"):
        server.tmux.ask(["list-sessions"])
    assert not server.path.exists(), "looking must not start a server"
    assert server.changes == 0, "who looks when woken would never stop"


def test_a_socket_file_left_behind_is_nothing(server: Server) -> None:
    server.start()
    server.run("kill-server")
    assert server.path.exists()
    eventually(lambda: server.changes)
    assert server.tmux.look() == []


def test_a_server_kept_without_sessions_is_nothing_and_can_be_started_on(server: Server) -> None:
    (server.home / ".tmux.conf").write_text("set -s exit-empty off\n")
    server.run("start-server")
    changes = server.changes
    assert server.tmux.look() == []
    assert server.changes == changes
    assert server.start("one").session == "one"


@pytest.mark.parametrize("end", ["SIGKILL", "kill-server"])
def test_the_servers_end_is_pushed_and_a_new_one_is_found(server: Server, end: str) -> None:
    server.start("one")
    changes = server.changes
    if end == "SIGKILL":
        os.kill(server.pid, signal.SIGKILL)
    else:
        server.run(end)
    eventually(lambda: server.changes > changes and not server.tmux.connected)
    assert server.tmux.look() == []
    server.run("new-session", "-d", "-s", "new", *SLEEPER)
    assert [pane.session for pane in server.tmux.look()] == ["new"]
    assert server.tmux.connected


@pytest.mark.parametrize("configuration", ["", "set -g detach-on-destroy off\n"], ids=["sent away", "moved"])
def test_the_attached_session_may_be_killed(server: Server, configuration: str) -> None:
    (server.home / ".tmux.conf").write_text(configuration)
    left = {"one", "two", "three"}
    for name in left:
        server.run("new-session", "-d", "-s", name, *SLEEPER)
    server.tmux.look()
    while len(left) > 1:
        attached = server.attached()
        left.remove(attached)
        with server.pushed():
            server.run("kill-session", "-t", f"={attached}")
        assert {pane.session for pane in server.tmux.look()} == left
    changes = server.changes
    server.run("kill-session", "-t", f"={left.pop()}")
    eventually(lambda: server.changes > changes and not server.tmux.connected)
    assert server.tmux.look() == []


def test_the_connection_outlives_every_agent_but_the_last(server: Server) -> None:
    server.run("new-session", "-d", "-s", "theirs", *SLEEPER)
    early = server.watch()
    early.look()  # connected before there was a better place, it moves when it sees one
    panes = [server.start(name) for name in ("one", "two", "three")]
    early.look()
    clients = server.clients("#{client_pid}")
    assert server.clients("#{client_session}") == ["muster-keeper"] * 2
    server.run("kill-session", "-t", "=theirs")
    server.run("kill-session", "-t", "=one")
    server.tmux.kill(panes[1].session_id)
    assert [pane.session for pane in early.look()] == ["three"]
    assert server.clients("#{client_pid}") == clients
    server.tmux.kill(panes[2].session_id)
    assert early.look() == []
    early.close()
    with pytest.raises(subprocess.CalledProcessError):
        server.run("list-sessions")


@pytest.mark.parametrize("configuration", ["", "set -g detach-on-destroy off\n"], ids=["sent away", "moved"])
def test_a_killed_keeper_is_replaced(server: Server, configuration: str) -> None:
    (server.home / ".tmux.conf").write_text(configuration)
    server.start("one")
    with server.pushed():
        server.run("kill-session", "-t", "=muster-keeper")
    assert [pane.session for pane in server.tmux.look()] == ["one"]
    assert server.attached() == "one"
    server.start("two")
    assert server.attached() == "muster-keeper"
    assert [pane.session for pane in server.tmux.look()] == ["one", "two"]


def test_the_server_survives_connecting_while_sessions_come_and_go(server: Server) -> None:
    """tmux dies of a change made while a control client introduces itself, so those two must never meet."""
    server.start("stays")
    pid = server.pid
    other = Tmux(server.socket)
    enough = threading.Event()

    def churn() -> None:
        for place in itertools.count():
            pane = start_by(other, server.home, f"short-{place}", spawn=f"s-{place}")
            other.kill(pane.session_id, spawn=f"s-{place}")
            if enough.is_set():
                return

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(10):
            server.tmux.close()
            assert "stays" in [pane.session for pane in server.tmux.look()]
    finally:
        enough.set()
        thread.join()
        other.close()
    assert server.pid == pid


def test_a_batch_meets_sessions_that_are_being_killed(server: Server) -> None:
    stays = server.start("stays", ["sh", "-c", "echo here; exec sleep 1000"])
    eventually(lambda: server.tmux.screens([stays.pane_id])[stays.pane_id] == "here")
    done = threading.Event()

    def churn() -> None:
        for place in range(60):
            server.run("new-session", "-d", "-s", f"short-{place}", *SLEEPER)
            server.run("kill-session", "-t", f"=short-{place}")
        done.set()

    thread = threading.Thread(target=churn)
    thread.start()
    seen = 0
    while not done.is_set():
        panes = server.tmux.look()
        screens = server.tmux.screens([pane.pane_id for pane in panes])
        assert screens[stays.pane_id] == "here"
        seen += len(panes) > 1
    thread.join()
    assert seen, "no session was ever met while it lived"


def test_closing_leaves_nothing_behind_and_tells_nobody(server: Server) -> None:
    server.start("one")
    threads = threading.active_count()
    changes = server.changes
    server.tmux.close()
    assert threading.active_count() == threads - 1
    assert server.changes == changes
    assert not server.tmux.connected
    eventually(lambda: server.clients("x") == [])
    assert server.pane("one").session == "one"


HOLDER = """
import sys, time
from shared.system.tmux import Tmux
Tmux(sys.argv[1]).look()
print("looked", flush=True)
time.sleep(600)
"""


def test_a_client_does_not_outlive_the_process_that_started_it(server: Server) -> None:
    """Also when the server can't take its leave: it would wait for such a client for ever when it ends itself."""
    server.start()
    with subprocess.Popen([sys.executable, "-c", HOLDER, server.socket], stdout=subprocess.PIPE) as asking:
        assert asking.stdout is not None
        assert asking.stdout.readline() == b"looked\n"
        (client,) = psutil.Process(asking.pid).children()
        held_up = server.pid
        os.kill(held_up, signal.SIGSTOP)
        try:
            asking.kill()
            asking.wait()
            eventually(lambda: not client.is_running() or client.status() == psutil.STATUS_ZOMBIE)
        finally:
            os.kill(held_up, signal.SIGCONT)


def test_a_server_ends_though_somebody_does_not_read_what_it_says(server: Server) -> None:
    """As a control client that was killed: tmux itself would wait for it for ever."""
    server.start("one")
    ours, theirs = socket.socketpair()
    with ours, theirs:
        argv = ["tmux", "-L", server.socket, "-C", "attach-session"]
        deaf = subprocess.Popen(argv, stdin=theirs.fileno(), stdout=theirs.fileno(), stderr=subprocess.DEVNULL)
        try:
            theirs.close()
            ours.setblocking(False)
            with suppress(BlockingIOError):
                while True:
                    ours.send(b"list-keys\n")
            eventually(lambda: server.run("list-clients", "-F", "#{client_flags}").find("control-mode") >= 0)
            process = psutil.Process(int(server.run("display-message", "-p", "#{pid}")))
            end_server(server.socket)
            assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
            assert not server.path.exists()
        finally:
            deaf.kill()
            deaf.wait()
