"""Pasting: any text arrives byte for byte and once, marked as a paste where the program asked for that."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.system.tmux import NotTyped
from tests.integration.tmux.reader import Reader
from tests.integration.tmux.server import NASTY, Server

PASTES = [
    *(text for text in NASTY if text),
    *(
        "a 'quoted' \"word\"",
        "two\nlines\n",
        "a\r\nb",
        "tab\tbed",
        "-t %0",
        "-- x",
        "#{pane_id} %H",
        "$(touch pwned)\n",
    ),
    *("\x1b[31mred\x1b[0m", "\x1b[200~", "\x1b[201~", "before\x1b[201~after\r", "\x1b]0;title\x07", "\x03\x04\x1a"),
    *("".join(map(chr, range(1, 0x20))), "\x9b201~", "👩‍🚀 ✳ é e\u0301 \u202e", "refused %0 0 x", "%end 1 1 1\n%exit"),
]


@pytest.fixture(params=[True, False], ids=["marked", "plain"])
def reader(server: Server, request: pytest.FixtureRequest) -> Reader:
    return Reader(server, marks=request.param)


def test_nasty_text_arrives_byte_for_byte(server: Server, reader: Reader) -> None:
    for text in PASTES:
        server.tmux.paste(reader.pane_id, text, spawn=reader.spawn)
        assert reader.read() == reader.pasted(text)
    assert not list(server.home.rglob("pwned"))


@pytest.mark.parametrize(
    "text", ["x" * 10_000, "a line\n" * 30_000, "é✳\x1b" * 35_000], ids=["10k", "200k", "wide 200k"]
)
def test_long_text_arrives_byte_for_byte(server: Server, reader: Reader, text: str) -> None:
    server.tmux.paste(reader.pane_id, text, spawn=reader.spawn)
    assert reader.read() == reader.pasted(text)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), min_size=1), min_size=1, max_size=5
    )
)
def test_any_text_arrives_byte_for_byte_and_in_order(server: Server, reader: Reader, texts: list[str]) -> None:
    for text in texts:
        server.tmux.paste(reader.pane_id, text, spawn=reader.spawn)
    assert reader.read() == b"".join(map(reader.pasted, texts))


def test_a_text_that_tmux_can_not_hold_is_refused(server: Server) -> None:
    reader = Reader(server)
    with pytest.raises(ValueError, match="NUL"):
        server.tmux.paste(reader.pane_id, "a\0b", spawn=reader.spawn)
    assert reader.read() == b""


def test_a_paste_leaves_no_buffer_and_those_of_others(server: Server) -> None:
    reader = Reader(server)
    server.run("set-buffer", "-b", "theirs", "their text")
    server.tmux.paste(reader.pane_id, "ours", spawn=reader.spawn)
    assert buffers(server) == ["theirs"]


@pytest.mark.parametrize("why", ["spawn", "gone", "mode"])
def test_a_refused_paste_leaves_no_buffer(server: Server, why: str) -> None:
    server.start("theirs")
    reader = Reader(server)
    if why == "mode":
        server.run("copy-mode", "-t", reader.pane_id)
    pane_id = "%99" if why == "gone" else reader.pane_id
    with pytest.raises(NotTyped):
        server.tmux.paste(pane_id, "a secret", spawn="theirs-1" if why == "spawn" else reader.spawn)
    assert buffers(server) == []


def test_an_empty_text_is_pasted_as_nothing(server: Server) -> None:
    reader = Reader(server)
    server.tmux.paste(reader.pane_id, "", spawn=reader.spawn)
    assert reader.read() in (b"", reader.pasted(""))


def test_an_empty_text_brings_back_no_refused_one(server: Server) -> None:
    reader = Reader(server)
    server.run("copy-mode", "-t", reader.pane_id)
    with pytest.raises(NotTyped):
        server.tmux.paste(reader.pane_id, "refused", spawn=reader.spawn)
    server.run("send-keys", "-t", reader.pane_id, "-X", "cancel")
    server.tmux.paste(reader.pane_id, "", spawn=reader.spawn)
    assert reader.read() == b""


def buffers(server: Server) -> list[str]:
    told = server.told("list-buffers", "-F", "#{buffer_name}", ";", "display-message", "-p", "end")
    return told.split("\n")[:-1]
