"""A glance: the agents of one fleet, without what costs most to tell."""

import os
import signal
from dataclasses import replace

import pytest

from shared.system.tmux import Pane, TmuxUnavailable
from tests.integration.tmux.server import Server, eventually


def seen(server: Server, fleet: str = "home") -> dict[str, Pane]:
    """The same by a look."""
    found = {pane.agent: pane for pane in server.tmux.look() if pane.agent and pane.fleet == fleet}
    return {agent: replace(pane, command="", path="") for agent, pane in found.items()}


def test_it_tells_the_same_as_a_look_without_program_and_directory(server: Server) -> None:
    server.start("one", ["sh", "-c", r"printf '\033]0;✳ a title\007'; exec sleep 1000"])
    server.start("two")
    server.run("new-session", "-d", "-s", "stranger", "sleep 1000")
    server.run("split-window", "-t", "=one:", "sleep 1000")
    eventually(lambda: server.tmux.agent_panes("home")["one"].title == "✳ a title")
    eventually(lambda: server.tmux.agent_panes("home") == seen(server))
    found = server.tmux.agent_panes("home")
    assert set(found) == {"one", "two"}
    assert {(pane.command, pane.path) for pane in found.values()} == {("", "")}
    assert found["one"].spawn == "one-1"


def test_how_a_program_ended_is_told(server: Server) -> None:
    two = server.start("two")
    server.start("one", ["sh", "-c", "exit 7"])
    eventually(lambda: server.tmux.agent_panes("home")["one"].dead_status == 7)
    assert not server.tmux.agent_panes("home")["two"].dead
    os.kill(two.pid, signal.SIGKILL)
    eventually(lambda: server.tmux.agent_panes("home")["two"].dead_status == -signal.SIGKILL)


def test_tmux_is_reminded_of_an_end_that_it_may_have_missed(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    server.start("one", ["sh", "-c", "trap '' HUP; exec <&- >&- 2>&-; sleep 1000"])
    eventually(lambda: server.run("list-panes", "-t", "=one:", "-F", "#{pane_dead}") == "1")
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *what: sent.append(what))
    pane = server.tmux.agent_panes("home")["one"]
    monkeypatch.undo()
    assert (pane.dead, pane.dead_status) == (True, None)
    assert sent == [(server.pid, signal.SIGCHLD)]
    os.killpg(pane.pid, signal.SIGKILL)


def test_other_fleets_and_the_unstamped_are_left_out(server: Server) -> None:
    server.start("mine")
    server.start("theirs", fleet="away")
    server.run("new-session", "-d", "-s", "nobodys", "sleep 1000")
    assert set(server.tmux.agent_panes("home")) == {"mine"}
    assert set(server.tmux.agent_panes("away")) == {"theirs"}
    assert server.tmux.agent_panes("nowhere") == {}


def test_a_server_without_sessions_has_no_agents(server: Server) -> None:
    assert server.tmux.agent_panes("home") == {}


def test_a_server_that_does_not_answer_is_told(server: Server) -> None:
    server.start("one")
    tmux = server.watch(timeout_s=0.3)
    pid = server.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(TmuxUnavailable):
            tmux.agent_panes("home")
    finally:
        os.kill(pid, signal.SIGCONT)
        tmux.close()


def test_a_directory_with_a_strange_name_does_not_break_it(server: Server) -> None:
    strange = server.home / "a\tb\nc"
    strange.mkdir()
    server.start("one", cwd=strange)
    assert set(server.tmux.agent_panes("home")) == {"one"}
