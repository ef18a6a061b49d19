"""When nothing is typed: into another spawn, where nobody is, and while somebody scrolls."""

from collections.abc import Callable

import pytest

from shared.system.tmux import NoSession, NotTyped, Tmux
from tests.integration.tmux.reader import Reader
from tests.integration.tmux.server import SLEEPER, Server, eventually

Typing = Callable[[Tmux, str, str], None]


def paste(tmux: Tmux, pane_id: str, spawn: str) -> None:
    tmux.paste(pane_id, "text", spawn=spawn)


def press(tmux: Tmux, pane_id: str, spawn: str) -> None:
    tmux.press(pane_id, ["a", "Enter"], spawn=spawn)


both = pytest.mark.parametrize("put", [paste, press])


@both
def test_nothing_is_typed_into_another_spawn(server: Server, put: Typing) -> None:
    reader = Reader(server)
    for spawn in ("one-2", "one", "one-11", "ONE-1"):
        with pytest.raises(NotTyped, match=rf"into pane {reader.pane_id}: it is of another session now \(one-1\)"):
            put(server.tmux, reader.pane_id, spawn)
    assert reader.read() == b""
    put(server.tmux, reader.pane_id, "one-1")
    assert reader.read() in (b"text", b"a\r")


@both
def test_nothing_is_typed_into_an_unstamped_session(server: Server, put: Typing) -> None:
    server.run("new-session", "-d", "-s", "theirs", *SLEEPER)
    with pytest.raises(NotTyped, match=r"of another session now \(\)"):
        put(server.tmux, server.pane("theirs").pane_id, "one-1")


@both
def test_nothing_is_typed_where_a_pane_is_gone(server: Server, put: Typing) -> None:
    reader = Reader(server)
    gone = server.start("gone")
    server.run("kill-session", "-t", "=gone")
    for pane_id, spawn in ((gone.pane_id, "gone-1"), (gone.pane_id, "one-1"), ("%99", "one-1")):
        with pytest.raises(NotTyped, match=f"into pane {pane_id}: it is gone"):
            put(server.tmux, pane_id, spawn)
    assert reader.read() == b""


@both
def test_a_gone_pane_is_not_taken_for_another_of_its_session(server: Server, put: Typing) -> None:
    pane = server.start("one")
    server.run("split-window", "-t", "=one:", *SLEEPER)
    server.run("kill-pane", "-t", pane.pane_id)
    server.run("kill-session", "-t", "=muster-keeper")  # so that we are attached to the agent's own
    assert server.attached() == "one"
    with pytest.raises(NotTyped, match="it is gone"):
        put(server.tmux, pane.pane_id, "one-1")


@both
def test_nothing_is_typed_while_somebody_scrolls(server: Server, put: Typing) -> None:
    reader = Reader(server)
    server.run("copy-mode", "-t", reader.pane_id)
    assert server.pane("one").in_mode
    with pytest.raises(NotTyped, match=f"into pane {reader.pane_id}: somebody scrolls in it"):
        put(server.tmux, reader.pane_id, reader.spawn)
    server.run("send-keys", "-t", reader.pane_id, "-X", "cancel")
    assert not server.pane("one").in_mode
    assert reader.read() == b""


@both
def test_without_a_server_nothing_is_typed(server: Server, put: Typing) -> None:
    with pytest.raises((NotTyped, NoSession)):
        put(server.tmux, "%0", "one-1")
    assert not server.path.exists()


@both
@pytest.mark.parametrize("pane_id", ["", "one", "%", "%1;", "=one:", "$0", "%1 x"])
def test_only_into_an_id_is_typed(server: Server, put: Typing, pane_id: str) -> None:
    with pytest.raises(ValueError, match="tmux id"):
        put(server.tmux, pane_id, "one-1")


def test_a_paste_where_the_program_has_ended_is_refused(server: Server) -> None:
    server.start("stays")
    pane = server.start("one", ["true"])
    eventually(lambda: server.pane("one").dead)
    with pytest.raises(NotTyped):
        server.tmux.paste(pane.pane_id, "text", spawn="one-1")
    assert [pane.session for pane in server.tmux.look()] == ["one", "stays"]


def test_keys_are_refused_where_the_program_has_ended(server: Server) -> None:
    pane = server.start("one", ["true"])
    eventually(lambda: server.pane("one").dead)
    with pytest.raises(NotTyped):
        server.tmux.press(pane.pane_id, ["Enter"], spawn="one-1")


@both
def test_nothing_is_typed_where_input_is_switched_off(server: Server, put: Typing) -> None:
    reader = Reader(server)
    server.run("select-pane", "-d", "-t", reader.pane_id)
    with pytest.raises(NotTyped):
        put(server.tmux, reader.pane_id, reader.spawn)
