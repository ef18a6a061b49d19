"""What is written to and read from tmux's control mode, for every text a screen or an argument may hold."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.system.tmux import requests as tmux_panes
from shared.system.tmux import stamps as tmux_stamps
from shared.system.tmux.control import Block, Framer, Garbled, Notification, line, quote
from shared.system.tmux.requests import literal
from shared.system.tmux.server_link import NOTHING_THERE

# Words that a screen may show and that are framing elsewhere, beside any other text.
TRAPS = st.sampled_from(["%end 7 3 1", "%error 7 3 1", "%begin 7 99 1", "%exit", "%e", "%sessions-changed", "", "%"])
SCREEN_LINE = TRAPS | st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=12)
SCREEN = st.lists(SCREEN_LINE, max_size=6).map("\n".join)


def framed(number: int, text: str, *, ok: bool = True, flag: int = 1) -> bytes:
    body = f"{text}\n" if text else ""
    return f"%begin 7 {number} {flag}\n{body}%{'end' if ok else 'error'} 7 {number} {flag}\n".encode()


def read(*chunks: bytes) -> list[Block | Notification]:
    framer = Framer()
    return [found for chunk in chunks for found in framer.feed(chunk)]


@given(st.lists(st.tuples(SCREEN, st.booleans()), max_size=5), st.lists(st.integers(0, 400), max_size=8))
def test_answers_come_back_whole_however_they_are_cut(answers: list[tuple[str, bool]], cuts: list[int]) -> None:
    wire = b"".join(framed(100 + place, text, ok=ok) for place, (text, ok) in enumerate(answers))
    edges = [0, *sorted(min(cut, len(wire)) for cut in cuts), len(wire)]
    chunks = [wire[start:end] for start, end in pairwise(edges)]
    assert read(*chunks) == [Block(ok, text, asked=True) for text, ok in answers]


def test_notices_stand_between_answers() -> None:
    wire = framed(1, "a") + b"%sessions-changed\n" + framed(2, "can't find pane: %9", ok=False) + b"%exit\n"
    assert read(wire) == [
        Block(True, "a", asked=True),
        Notification(b"%sessions-changed"),
        Block(False, "can't find pane: %9", asked=True),
        Notification(b"%exit"),
    ]


def test_an_answer_to_a_hook_is_not_ours() -> None:
    assert read(framed(1, "from a hook", flag=0)) == [Block(True, "from a hook", asked=False)]


@pytest.mark.parametrize(
    "forged",
    [
        "%end 7 1 1",
        "%error 7 1 1",
        "%end 7 1 1\n%begin 7 2 1\nnot what the next pane shows\n%end 7 2 1",
        "%end 7 1 1\n%begin 7 2 1\nfalse\n%end 7 2 1\n%begin 7 1 1",
    ],
)
def test_a_screen_that_guesses_its_own_frame_is_detected(forged: str) -> None:
    with pytest.raises(Garbled):
        read(framed(1, forged) + framed(2, "true"))


@pytest.mark.parametrize("wire", [b"%begin 7 one 1\n", b"%begin 7\n", b"%begin 7 5 1 1\n", b"%end 7 5 1\n"])
def test_what_is_no_frame_is_detected(wire: bytes) -> None:
    with pytest.raises(Garbled):
        read(wire)


@pytest.mark.parametrize(
    ("notice", "is_change"),
    [
        (b"%sessions-changed", True),
        (b"%unlinked-window-close @3", True),
        (b"%unlinked-window-renamed @3 dead", True),
        (b"%window-add @1", True),
        (b"%session-renamed $1 b", True),
        (b"%exit", True),
        (b"%output %1 text", False),
        (b"%session-changed $1 a", False),
        (b"%client-session-changed /dev/pts/1 $1 a", False),
    ],
)
def test_only_what_may_change_the_picture_is_a_change(notice: bytes, *, is_change: bool) -> None:
    assert Notification(notice).is_change is is_change


def test_a_line_keeps_unusual_line_ends_of_a_screen() -> None:
    (block,) = read(framed(1, "one\u2028still one\x0bstill\ntwo"))
    assert isinstance(block, Block)
    assert block.lines == ("one\u2028still one\x0bstill", "two")


@given(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])))
def test_a_quoted_argument_is_one_printable_line(text: str) -> None:
    quoted = quote(text)
    assert b"\n" not in quoted
    assert quoted.isascii()
    assert not set(quoted.removeprefix(b'"').removesuffix(b'"')) & set(b'"$~\n')


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        ("list-panes", b"list-panes"),
        ("", b'""'),
        ("%5", b'"%5"'),
        ("$3", rb'"\0443"'),
        ("a;b", b'"a;b"'),
        ("~", rb'"\176"'),
        ('say "hi"\n', rb'"say \042hi\042\012"'),
        ("é", rb'"\303\251"'),
        ("\udcff", rb'"\377"'),
    ],
)
def test_quoting(text: str, quoted: bytes) -> None:
    assert quote(text) == quoted


def test_a_nul_byte_is_refused() -> None:
    with pytest.raises(ValueError, match="NUL"):
        quote("a\0b")


def test_commands_on_one_line() -> None:
    assert line(("kill-session", "-t", "$1"), ("list-sessions",)) == (
        b'kill-session -t "\\0441" ; list-sessions\n',
        2,
        "kill-session",
    )


def test_a_hash_is_kept_from_formats() -> None:
    assert literal("/a#[b]") == "/a###{l:[}b]"


@pytest.mark.parametrize("session", ["", "a.b", "a:b", "a b", "$1", "=a", "a\n", "é"])
def test_a_name_that_tmux_would_change_is_refused(session: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="session"):
        order(tmp_path, session=session)


@pytest.mark.parametrize("argv", [[], [""], ["A=b", "c"]])
def test_a_program_that_can_not_run_is_refused(argv: list[str], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="can't run"):
        order(tmp_path, argv=argv)


@pytest.mark.parametrize("fleet", ["", "a\tb", "a\nb"])
def test_a_stamp_that_would_break_the_list_is_refused(fleet: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="stamp"):
        order(tmp_path, fleet=fleet)


@pytest.mark.parametrize("name", ["", "A=b", "-i", "a b", "1A", "A\n", "é", "A;"])
def test_a_variable_that_no_shell_could_name_is_not_set(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="can't have an environment variable named"):
        order(tmp_path, env={name: "value"})


@pytest.mark.parametrize("name", ["", "A=b"])
def test_what_can_be_no_variable_is_not_unset(name: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="can't have an environment variable named"):
        order(tmp_path, unset=[name])


def order(cwd: Path, *, session: str = "a", argv: list[str] | None = None, fleet: str = "home", **more: Any) -> None:
    stamps = {"agent": "a", "spawn": "s1", "fleet": fleet}
    argv = ["true"] if argv is None else argv
    tmux_panes.start(session, **{"argv": argv, "cwd": cwd, "env": {}, "width": 80, "height": 24, **more}, stamps=stamps)


BAD_KEYS = [
    "",
    "Entr",
    "enter",
    "a b",
    "ab",
    ";",
    "-t",
    "-",
    "`",
    "'",
    "$x",
    "#",
    "C-",
    "C-c;",
    "X-a",
    "Enter\n",
    "F13",
    "é",
]


@pytest.mark.parametrize("key", BAD_KEYS)
def test_what_is_no_key_is_not_pressed(key: str) -> None:
    with pytest.raises(ValueError, match="is not the name of a key"):
        tmux_panes.press("%1", "s1", ["a", key])


@pytest.mark.parametrize("target", ["", "3", "a", "$", "$3a", "%", "%3a", "%3;", "$3;", "$١", "@3", "=a:"])
def test_only_an_id_is_killed_or_let_go(target: str) -> None:
    with pytest.raises(ValueError, match="tmux id"):
        tmux_stamps.kill(target, None)
    with pytest.raises(ValueError, match="tmux id"):
        tmux_stamps.unstamp(target, "s1")


@pytest.mark.parametrize("spawn", ["", "a,b", "a}", "#{pid}", "'"])
def test_a_stamp_that_is_no_word_is_never_compared(spawn: str) -> None:
    for target in ("$1", "%1"):
        with pytest.raises(ValueError, match="spawn"):
            tmux_stamps.kill(target, spawn)
        with pytest.raises(ValueError, match="spawn"):
            tmux_stamps.unstamp(target, spawn)
    with pytest.raises(ValueError, match="spawn"):
        tmux_panes.paste("%1", spawn, "text")
    with pytest.raises(ValueError, match="spawn"):
        tmux_panes.press("%1", spawn, ["a"])


@pytest.mark.parametrize(
    ("said", "sure"),
    [
        ("no server running on /tmp/tmux-0/x", True),
        ("error connecting to /tmp/tmux-0/x (No such file or directory)", True),
        ("no sessions", True),
        ("error connecting to /tmp/tmux-0/x (Permission denied)", False),
        ("error connecting to /tmp/tmux-0/x (Resource temporarily unavailable)", False),
        ("server exited unexpectedly", False),
        ("lost server", False),
        ("", False),
        ("no sessions\nbut more", False),
    ],
)
def test_when_tmux_is_sure_that_nothing_is_there(said: str, *, sure: bool) -> None:
    assert bool(NOTHING_THERE.fullmatch(said)) is sure
