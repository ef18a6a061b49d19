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
