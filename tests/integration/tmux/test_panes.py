"""One pane of a person's session as an agent's: only that is marked, typed into, ended and let go."""

import os
import signal
import sys
from collections.abc import Sequence

import pytest

from shared.system.tmux import AlreadyStamped, NotTyped, Pane, WrongSpawn
from tests.integration.tmux.server import SLEEPER, Server, eventually, log_to

STAMPS = {"agent": "builder", "spawn": "s-1", "fleet": "home fleet"}
OTHER = {"agent": "reviewer", "spawn": "s-2", "fleet": "home fleet"}
ECHO = "import sys\nfor line in sys.stdin: print('said', line.strip(), flush=True)"


@pytest.fixture
def theirs(server: Server) -> list[Pane]:
    """A person's session of three panes: two in one window, one in another."""
    server.run("new-session", "-d", "-s", "theirs", *SLEEPER)
    server.run("split-window", "-t", "=theirs:", sys.executable, "-c", ECHO)
    server.run("new-window", "-t", "=theirs:", *SLEEPER)
    return server.tmux.look()


def take(server: Server, pane: Pane, **stamps: str) -> Pane:
    taken = server.tmux.stamp(pane.session, **{**STAMPS, **stamps}, pane_id=pane.pane_id)
    assert taken is not None
    return taken


def agents(server: Server) -> dict[str, str | None]:
    return {pane.pane_id: pane.agent for pane in server.tmux.look()}


def ids(panes: Sequence[Pane]) -> list[str]:
    return [pane.pane_id for pane in panes]


def test_every_pane_of_a_persons_session_is_seen(server: Server, theirs: list[Pane]) -> None:
    assert ids(theirs) == ["%0", "%1", "%2"]
    server.start("one")
    server.run("split-window", "-t", "=one:", *SLEEPER)
    assert [pane.agent for pane in server.tmux.look() if pane.session == "one"] == ["one", None]


def test_a_stamp_on_a_pane_is_its_own(server: Server, theirs: list[Pane]) -> None:
    taken = take(server, theirs[1])
    assert (taken.pane_id, taken.agent, taken.spawn, taken.fleet) == ("%1", *STAMPS.values())
    assert (taken.pane_only, taken.target, taken.pid) == (True, "%1", theirs[1].pid)
    assert agents(server) == {"%0": None, "%1": "builder", "%2": None}
    assert server.run("show-options", "-t", "=theirs:", "-v", "remain-on-exit") == "", "how it behaves is up to them"


def test_two_agents_in_one_session(server: Server, theirs: list[Pane]) -> None:
    take(server, theirs[1])
    take(server, theirs[2], **OTHER)
    assert agents(server) == {"%0": None, "%1": "builder", "%2": "reviewer"}
    assert server.tmux.kill("%1", spawn="s-1")
    assert agents(server) == {"%0": None, "%2": "reviewer"}


def test_what_is_somebodys_is_not_taken(server: Server, theirs: list[Pane]) -> None:
    take(server, theirs[1])
    with pytest.raises(AlreadyStamped, match=r"the pane %1 of the session 'theirs' belongs to the fleet"):
        server.tmux.stamp("theirs", **OTHER, pane_id="%1")
    with pytest.raises(AlreadyStamped, match=r"the session 'theirs' belongs to the fleet"):
        server.tmux.stamp("theirs", **OTHER)
    assert take(server, theirs[1]).spawn == "s-1", "the same again is done already"
    assert agents(server) == {"%0": None, "%1": "builder", "%2": None}


def test_no_pane_of_an_agents_session_is_taken(server: Server) -> None:
    one = server.start("one")
    server.run("split-window", "-t", "=one:", *SLEEPER)
    with pytest.raises(AlreadyStamped):
        server.tmux.stamp("one", **STAMPS, pane_id=one.pane_id)
    assert server.tmux.stamp("one", **STAMPS, pane_id="%99") is None


def test_a_pane_beside_an_agents_own_is_another_agents(server: Server) -> None:
    one = server.start("one")
    server.run("split-window", "-d", "-t", "=one:", *SLEEPER)
    beside = take(server, server.tmux.look()[1])
    assert (beside.pane_id, beside.pane_only, beside.agent) == ("%2", True, "builder"), "%1 is the keeper's"
    assert agents(server) == {one.pane_id: "one", "%2": "builder"}
    with pytest.raises(AlreadyStamped):
        server.tmux.stamp("one", **OTHER, pane_id="%2")
    assert server.tmux.unstamp("%2", spawn="s-1", left="home fleet")
    assert [(pane.pane_id, pane.agent, pane.left) for pane in server.tmux.look()] == [
        (one.pane_id, "one", None),
        ("%2", None, "home fleet"),
    ]


def test_an_agent_that_shares_its_session_with_another_is_ended_alone(server: Server) -> None:
    one = server.start("one", spawn="one-1")
    server.run("split-window", "-d", "-t", "=one:", *SLEEPER)
    take(server, server.tmux.look()[1])
    with pytest.raises(WrongSpawn):
        server.tmux.kill(one.target, spawn="one-2")
    assert server.tmux.kill(one.target, spawn="one-1")
    assert [(pane.session, pane.pane_id, pane.agent) for pane in server.tmux.look()] == [
        ("one-left-one-1", "%2", "builder")
    ]
    assert server.start("one").session == "one", "its name is free"


def test_the_agents_own_pane_is_told_from_an_older_one_that_people_join_to_it(server: Server) -> None:
    server.run("new-session", "-d", "-s", "mine", *SLEEPER)
    one = server.start("one")
    server.run("join-pane", "-d", "-s", "=mine:", "-t", "=one:")
    assert agents(server) == {one.pane_id: "one", "%0": None}
    server.run("new-session", "-d", "-s", "theirs", *SLEEPER)
    adopted = server.tmux.stamp("theirs", **STAMPS)
    assert adopted is not None
    server.run("join-pane", "-d", "-s", "%0", "-t", "=theirs:")
    assert agents(server) == {one.pane_id: "one", adopted.pane_id: "builder", "%0": None}


@pytest.mark.parametrize(("session", "pane_id"), [("theirs", "%9"), ("other", "%1"), ("their", "%1")])
def test_a_pane_that_is_not_there_is_not_taken(server: Server, theirs: list[Pane], session: str, pane_id: str) -> None:
    assert server.tmux.stamp(session, **STAMPS, pane_id=pane_id) is None
    assert set(agents(server).values()) == {None}


def test_the_pane_alone_is_ended(server: Server, theirs: list[Pane]) -> None:
    pane = take(server, theirs[1])
    with pytest.raises(WrongSpawn, match=r"pane %1 was left alone: its spawn stamp is 's-1', not 's-2'"):
        server.tmux.kill(pane.target, spawn="s-2")
    with pytest.raises(WrongSpawn, match=r"pane %0 was left alone: its spawn stamp is ''"):
        server.tmux.kill("%0", spawn="s-1")
    assert server.tmux.kill(pane.target, spawn="s-1") is True
    assert ids(server.tmux.look()) == ["%0", "%2"]
    assert server.tmux.kill(pane.target, spawn="s-1") is False
    assert server.tmux.kill("%99") is False


def test_a_pane_is_let_go(server: Server, theirs: list[Pane]) -> None:
    pane = take(server, theirs[1])
    with pytest.raises(WrongSpawn):
        server.tmux.unstamp(pane.target, spawn="s-2")
    assert server.tmux.unstamp(pane.target, spawn="s-1", left="home fleet")
    assert server.tmux.unstamp(pane.target, spawn="s-1", left="home fleet"), "it is let go already"
    assert {each.pane_id: each.left for each in server.tmux.look()} == {"%0": None, "%1": "home fleet", "%2": None}
    assert take(server, theirs[1]).left is None
    server.tmux.unstamp(pane.target)
    assert {each.left for each in server.tmux.look()} == {None}
    assert not server.tmux.unstamp("%99", spawn="s-1")


def test_only_the_pane_is_typed_into(server: Server, theirs: list[Pane]) -> None:
    take(server, theirs[1])
    with pytest.raises(NotTyped, match=r"into pane %0: it is of another session now \(\)"):
        server.tmux.paste("%0", "lost\n", spawn="s-1")
    with pytest.raises(NotTyped, match=r"of another session now \(s-1\)"):
        server.tmux.press("%1", ["a"], spawn="s-2")
    server.tmux.paste("%1", "hello", spawn="s-1")
    server.tmux.press("%1", ["Enter"], spawn="s-1")
    eventually(lambda: "said hello" in server.tmux.screens(["%1"])["%1"])


def test_a_program_that_ends_takes_its_pane_with_it(server: Server, theirs: list[Pane]) -> None:
    take(server, theirs[1])
    os.kill(theirs[1].pid, signal.SIGKILL)
    eventually(lambda: ids(server.tmux.look()) == ["%0", "%2"])


def test_a_pane_keeps_its_stamps_wherever_people_move_it(server: Server, theirs: list[Pane]) -> None:
    take(server, theirs[1])
    server.run("new-session", "-d", "-s", "elsewhere", *SLEEPER)

    def found() -> tuple[str, str, bool]:
        (pane,) = [pane for pane in server.tmux.look() if pane.agent]
        return pane.session, pane.pane_id, pane.pane_only

    server.run("split-window", "-t", "%1", *SLEEPER)
    assert found() == ("theirs", "%1", True), "what is split off it is not the agent's"
    server.run("break-pane", "-d", "-s", "%1", "-t", "=elsewhere:")
    assert found() == ("elsewhere", "%1", True)
    server.run("join-pane", "-d", "-s", "%1", "-t", "%0")
    assert found() == ("theirs", "%1", True)
    server.run("swap-pane", "-d", "-s", "%1", "-t", "%3")
    assert found() == ("elsewhere", "%1", True)
    assert server.tmux.kill("%1", spawn="s-1")
    assert set(agents(server).values()) == {None}


def test_a_pane_that_is_moved_into_an_agents_session_stays_another(server: Server, theirs: list[Pane]) -> None:
    one = server.start("one")
    take(server, theirs[1])
    server.run("join-pane", "-d", "-s", "%1", "-t", one.pane_id)
    assert {pane.agent: pane.session for pane in server.tmux.look() if pane.agent} == {"one": "one", "builder": "one"}
    server.run("select-pane", "-t", "%1")
    assert server.tmux.unstamp(one.session_id, spawn="one-1")
    assert {pane.agent for pane in server.tmux.look()} == {None, "builder"}


def test_a_session_in_which_people_watch_an_agent_shows_it_once(server: Server) -> None:
    one = server.start("one")
    server.run("new-session", "-d", "-s", "a-view", "-t", "one")
    assert [(pane.session, pane.pane_id) for pane in server.tmux.look()] == [("one", one.pane_id)]


def test_what_keeps_connections_goes_with_the_last_pane(server: Server, theirs: list[Pane]) -> None:
    one = server.start("one")
    take(server, theirs[1])
    server.tmux.kill(one.target, spawn="one-1")
    assert "muster-keeper" in server.told("list-sessions", "-F", "#{session_name}"), "an agent is there still"
    server.tmux.kill("%1", spawn="s-1")
    assert server.told("list-sessions", "-F", "#{session_name}") == "theirs"


def test_a_pipe_is_ended(server: Server, theirs: list[Pane]) -> None:
    log = server.home / "log"
    assert server.tmux.pipe("%1", log_to(log))
    assert [pane.piped for pane in server.tmux.look()] == [False, True, False]
    assert server.tmux.unpipe("%1")
    assert not any(pane.piped for pane in server.tmux.look())
    assert not server.tmux.unpipe("%99")


def test_another_server_is_told_from_the_one_before(server: Server) -> None:
    assert server.tmux.server is None
    server.start("one")
    first = server.tmux.server
    server.connect()
    assert (first or server.tmux.server) == server.tmux.server
    assert server.tmux.server == server.told("display-message", "-p", "#{pid}-#{start_time}")
    server.run("kill-server")
    assert server.tmux.look() == []
    assert server.tmux.server is None
    server.start("one")
    server.connect()
    assert server.tmux.server not in (None, first)
