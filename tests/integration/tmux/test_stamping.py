"""Taking over a session that somebody else started."""

import os
import signal
import threading
from contextlib import suppress

import pytest

from shared.errors import MusterError
from shared.system.tmux import AlreadyStamped, Pane, Tmux, WrongSpawn
from tests.integration.tmux.server import SLEEPER, Server, eventually, has_ended

STAMPS = {"agent": "builder", "spawn": "s-1", "fleet": "home fleet"}


def stamps(pane: Pane) -> dict[str, str | None]:
    return {"agent": pane.agent, "spawn": pane.spawn, "fleet": pane.fleet}


@pytest.fixture
def theirs(server: Server) -> Pane:
    """Two sessions that somebody else started, of which this one has a program to itself."""
    server.run("new-session", "-d", "-s", "theirs", *SLEEPER)
    server.run("new-session", "-d", "-s", "theirs-too", *SLEEPER)
    return server.pane("theirs")


def test_a_stamped_session_is_ours(server: Server, theirs: Pane) -> None:
    assert stamps(theirs) == dict.fromkeys(STAMPS)
    pane = server.tmux.stamp("theirs", **STAMPS)
    assert pane is not None
    assert stamps(pane) == STAMPS
    assert (pane.session_id, pane.pane_id, pane.pid) == (theirs.session_id, theirs.pane_id, theirs.pid)
    assert stamps(server.pane("theirs")) == STAMPS
    assert stamps(server.pane("theirs-too")) == dict.fromkeys(STAMPS)
    with pytest.raises(WrongSpawn):
        server.tmux.kill(pane.session_id, spawn="s-2")
    assert server.tmux.kill(pane.session_id, spawn="s-1") is True
    assert [pane.session for pane in server.tmux.look()] == ["theirs-too"]


def test_what_is_somebodys_is_not_taken(server: Server, theirs: Pane) -> None:
    server.tmux.stamp("theirs", **STAMPS)
    other = server.watch()
    with pytest.raises(AlreadyStamped, match=r"the session 'theirs' belongs to the fleet with the stamp 'home fleet'"):
        other.stamp("theirs", agent="reviewer", spawn="s-2", fleet="away")
    other.close()
    assert stamps(server.pane("theirs")) == STAMPS
    assert server.tmux.stamp("theirs", **STAMPS) == server.pane("theirs"), "the same again is done already"


def test_of_two_that_take_it_at_once_one_does(server: Server, theirs: Pane) -> None:
    others = [server.watch() for _ in range(4)]
    for other in others:
        other.look()
    outcomes: list[str] = []

    def take(place: int, tmux: Tmux) -> None:
        try:
            pane = tmux.stamp("theirs", agent="a", spawn=f"s-{place}", fleet=f"fleet-{place}")
            outcomes.append(pane.spawn or "" if pane else "gone")
        except AlreadyStamped:
            outcomes.append("taken")

    threads = [threading.Thread(target=take, args=each) for each in enumerate(others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for other in others:
        other.close()
    assert sorted(outcomes) == sorted([*["taken"] * 3, server.pane("theirs").spawn or ""])


def test_what_was_left_says_so_until_it_is_taken_again(server: Server, theirs: Pane) -> None:
    server.tmux.stamp("theirs", **STAMPS)
    with pytest.raises(WrongSpawn, match=r"session \$0 was left alone"):
        server.tmux.unstamp(theirs.session_id, spawn="s-2")
    assert server.tmux.unstamp(theirs.session_id, spawn="s-1", left="home fleet")
    assert server.tmux.unstamp(theirs.session_id, spawn="s-1", left="home fleet"), "it is let go already"
    pane = server.pane("theirs")
    assert (stamps(pane), pane.left) == (dict.fromkeys(STAMPS), "home fleet")
    assert server.pane("theirs-too").left is None
    again = server.tmux.stamp("theirs", **STAMPS)
    assert again is not None
    assert server.tmux.unstamp(theirs.session_id)
    assert server.pane("theirs").left is None
    assert not server.tmux.unstamp("$99", spawn="s-1")


def test_a_stamped_session_stays_when_its_program_ends_and_that_is_pushed(server: Server, theirs: Pane) -> None:
    server.tmux.stamp("theirs", **STAMPS)
    pid = server.pid
    with server.pushed():
        os.kill(theirs.pid, signal.SIGKILL)
        eventually(lambda: server.run("list-panes", "-t", "=theirs:", "-F", "#{pane_dead}") == "1")
        eventually(lambda: has_ended(theirs.pid))
        os.kill(pid, signal.SIGCHLD)  # as in the test of a started one's death
    eventually(lambda: server.pane("theirs").dead_status == -signal.SIGKILL)
    assert stamps(server.pane("theirs")) == STAMPS
    assert server.told("display-message", "-p", "-t", "=theirs:", "#{window_name}") == "dead"


@pytest.mark.parametrize(
    "name", ["my session", "a;b", "'q'", '"', "é ✳", "=theirs", "-dash", "a*", "~", "{x}", "%1", "@1"]
)
def test_a_session_of_an_odd_name_can_be_stamped(server: Server, theirs: Pane, name: str) -> None:
    server.run("new-session", "-d", "-s", name, *SLEEPER)
    pane = server.tmux.stamp(name, **STAMPS)
    assert pane is not None
    assert pane.session == name
    assert {pane.session for pane in server.tmux.look() if pane.agent} == {name}


def test_without_a_server_nothing_is_stamped(server: Server) -> None:
    assert server.tmux.stamp("theirs", **STAMPS) is None
    assert not server.path.exists()


@pytest.mark.parametrize("name", ["unknown", "their", "theirs-", "thei*", "THEIRS", "{last}", "@0", "%0"])
def test_no_other_session_is_stamped(server: Server, theirs: Pane, name: str) -> None:
    with suppress(MusterError, ValueError):
        server.tmux.stamp(name, **STAMPS)
    assert [stamps(pane) for pane in server.tmux.look()] == [dict.fromkeys(STAMPS)] * 2


@pytest.mark.parametrize("name", ["unknown", "their", "theirs-"])
def test_an_unknown_session_can_not_be_stamped(server: Server, theirs: Pane, name: str) -> None:
    assert server.tmux.stamp(name, **STAMPS) is None


@pytest.mark.parametrize("name", ["$0", "theirs:0", "", "muster-keeper"])
def test_what_is_no_name_of_theirs_stamps_nothing(server: Server, theirs: Pane, name: str) -> None:
    server.start("one", spawn="known")
    with suppress(MusterError, ValueError):
        server.tmux.stamp(name, **STAMPS)
    assert "s-1" not in server.told("list-sessions", "-F", "#{session_name} #{@muster_spawn}")


@pytest.mark.parametrize("bad", [{"agent": ""}, {"agent": "a\nb"}, {"fleet": "a\tb"}, {"spawn": "a b"}], ids=str)
def test_a_stamp_that_would_break_the_list_is_refused(server: Server, theirs: Pane, bad: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"stamp|spawn"):
        server.tmux.stamp("theirs", **{**STAMPS, **bad})
    assert len(server.tmux.look()) == 2


def test_the_first_pane_stays_though_another_window_is_shown(server: Server, theirs: Pane) -> None:
    server.run("new-window", "-t", "=theirs:", *SLEEPER)
    pane = server.tmux.stamp("theirs", **STAMPS)
    assert pane is not None
    assert pane.pane_id == theirs.pane_id
    os.kill(theirs.pid, signal.SIGKILL)
    eventually(lambda: (found := server.pane("theirs")).dead or found.pane_id != theirs.pane_id)
    assert server.pane("theirs").pane_id == theirs.pane_id
