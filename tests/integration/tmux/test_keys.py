"""Pressing keys, by tmux's names for them."""

import pytest

from tests.integration.tmux.reader import Reader
from tests.integration.tmux.server import Server

BYTES = {
    **{"a": b"a", "Z": b"Z", "7": b"7", "Enter": b"\r", "Escape": b"\x1b", "Tab": b"\t", "BTab": b"\x1b[Z"},
    **{"Space": b" ", "BSpace": b"\x7f", "C-c": b"\x03", "C-u": b"\x15", "M-Enter": b"\x1b\r", "M-a": b"\x1ba"},
    **{"Up": b"\x1b[A", "Down": b"\x1b[B", "Right": b"\x1b[C", "Left": b"\x1b[D", "S-Up": b"\x1b[1;2A"},
    **{"C-Left": b"\x1b[1;5D", "Home": b"\x1b[1~", "End": b"\x1b[4~", "PageUp": b"\x1b[5~", "PageDown": b"\x1b[6~"},
    **{"PPage": b"\x1b[5~", "NPage": b"\x1b[6~", "IC": b"\x1b[2~", "DC": b"\x1b[3~"},
    **{"F1": b"\x1bOP", "F12": b"\x1b[24~"},
}


def test_keys_arrive_as_their_bytes(server: Server) -> None:
    reader = Reader(server)
    came = {}
    for key in BYTES:
        server.tmux.press(reader.pane_id, [key], spawn=reader.spawn)
        came[key] = reader.read()
    assert came == BYTES


def test_keys_arrive_in_order(server: Server) -> None:
    reader = Reader(server, marks=True)
    server.tmux.press(reader.pane_id, ["C-u", "a", "Space", "Up", "Enter", "Enter", "Escape"], spawn=reader.spawn)
    assert reader.read() == b"\x15a \x1b[A\r\r\x1b"


def test_a_bad_name_among_the_keys_presses_none_of_them(server: Server) -> None:
    reader = Reader(server)
    for bad in ("Entr", "a b", ";", "-t", "`", ""):
        with pytest.raises(ValueError, match="is not the name of a key"):
            server.tmux.press(reader.pane_id, ["a", bad, "Enter"], spawn=reader.spawn)
    assert reader.read() == b""


@pytest.mark.parametrize("key", ["S-Enter", "S-Tab", "S-a", "C-S-a", "M-S-Enter", "C-M-Enter"])
def test_a_key_whose_name_tmux_would_type_is_refused(server: Server, key: str) -> None:
    reader = Reader(server)
    with pytest.raises(ValueError, match="is not the name of a key"):
        server.tmux.press(reader.pane_id, [key], spawn=reader.spawn)


@pytest.mark.parametrize("key", ["C-Enter", "C-Tab", "C-5"])
def test_a_key_that_tmux_would_not_send_is_refused(server: Server, key: str) -> None:
    reader = Reader(server)
    with pytest.raises(ValueError, match="is not the name of a key"):
        server.tmux.press(reader.pane_id, [key], spawn=reader.spawn)
