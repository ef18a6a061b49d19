"""Killing exactly the session that was meant."""

import pytest

from shared.system.tmux import WrongSpawn
from tests.integration.tmux.server import SLEEPER, Server


def test_killing_by_id_and_stamp(server: Server) -> None:
    one, two = server.start("one"), server.start("two")
    with pytest.raises(WrongSpawn, match=r"session \$0 was left alone: its spawn stamp is 'one-1', not 'other'"):
        server.tmux.kill(one.session_id, spawn="other")
    assert {pane.session for pane in server.tmux.look()} == {"one", "two"}
    assert server.tmux.kill(one.session_id, spawn="one-1") is True
    assert [pane.session for pane in server.tmux.look()] == ["two"]
    assert server.tmux.kill(one.session_id, spawn="one-1") is False
    assert server.tmux.kill(one.session_id) is False
    assert server.tmux.kill(two.session_id) is True
    assert server.tmux.kill(two.session_id, spawn="two-1") is False
    assert server.tmux.look() == []


def test_a_stamp_is_asked_for_where_there_is_none(server: Server) -> None:
    server.run("new-session", "-d", "-s", "theirs", *SLEEPER)
    with pytest.raises(WrongSpawn, match="its spawn stamp is ''"):
        server.tmux.kill(server.pane("theirs").session_id, spawn="one-1")
    assert server.pane("theirs").session == "theirs"


def test_many_are_killed_in_one_batch_and_one_with_another_stamp_is_told(server: Server) -> None:
    one, two, three = (server.start(name) for name in ("one", "two", "three"))
    server.tmux.kill(one.session_id)
    with pytest.raises(WrongSpawn):
        server.tmux.kill_all([(one.session_id, "one-1"), (two.session_id, "other"), (three.session_id, "three-1")])
    assert [pane.session for pane in server.tmux.look()] == ["two"]
    server.tmux.kill_all([(two.session_id, "two-1"), (three.session_id, "three-1")])
    assert server.tmux.look() == []
    server.tmux.kill_all([(two.session_id, "two-1")])


def test_an_unused_keeper_is_ended_and_one_that_an_agent_needs_is_not(server: Server) -> None:
    one = server.start("one")
    server.tmux.end_unused_keeper()
    assert server.run("list-sessions", "-F", "#{session_name}").split() == ["muster-keeper", "one"]
    server.run("new-session", "-d", "-s", "mine", "sleep", "1000")
    server.run("kill-session", "-t", one.session_id)
    server.tmux.end_unused_keeper()
    assert server.run("list-sessions", "-F", "#{session_name}").split() == ["mine"]
