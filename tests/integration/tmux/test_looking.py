"""Looking: what runs, how it ended and what it shows, whatever names and screens hold."""

import os
import signal
import subprocess
import sys
import time

import pytest

from shared.system.tmux import TmuxAnswer, TmuxUnavailable
from shared.system.tmux.connection import Connection
from tests.integration.tmux.server import SLEEPER, Server, eventually


def test_a_dead_pane_has_the_exit_status_of_its_program(server: Server) -> None:
    server.start("one", ["sh", "-c", "exit 7"])
    two = server.start("two")
    eventually(lambda: server.pane("one").dead_status == 7)
    assert (server.pane("two").dead, server.pane("two").dead_status) == (False, None)
    os.kill(two.pid, signal.SIGKILL)
    eventually(lambda: server.pane("two").dead_status == -signal.SIGKILL)
    assert server.pane("two").dead


def test_tmux_is_made_to_collect_a_child_whose_end_it_may_have_missed(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program that leaves its terminal and lives on looks just like one whose end tmux has missed."""
    server.start("one", ["sh", "-c", "trap '' HUP; exec <&- >&- 2>&-; sleep 1000"])
    eventually(lambda: server.run("list-panes", "-t", "=one:", "-F", "#{pane_dead}") == "1")
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "kill", lambda *what: sent.append(what))
    pane = server.pane("one")
    assert (pane.dead, pane.dead_status) == (True, None)
    assert sent == [(server.pid, signal.SIGCHLD)]
    monkeypatch.undo()
    os.killpg(pane.pid, signal.SIGKILL)
    eventually(lambda: server.pane("one").dead_status == -signal.SIGKILL)


def test_a_dead_screen_still_shows_its_first_line(server: Server) -> None:
    go = server.home / "go"
    os.mkfifo(go)
    pane = server.start("one", ["sh", "-c", f"echo why it died; read x < {go}"])
    eventually(lambda: server.tmux.screens([pane.pane_id])[pane.pane_id] == "why it died")
    go.write_text("\n")
    eventually(lambda: server.pane("one").dead_status == 0)
    assert server.tmux.screens([pane.pane_id])[pane.pane_id] == "why it died"


def test_the_screens_of_the_living_come_without_those_of_the_vanished(server: Server) -> None:
    one = server.start("one", ["sh", "-c", "printf 'uno\\n\\n  due\\n'; exec sleep 1000"])
    two = server.start("two", ["sh", "-c", "echo two; exec sleep 1000"])
    gone = server.start("gone")
    server.run("kill-session", "-t", "=gone")
    wanted = {one.pane_id: "uno\n\n  due", two.pane_id: "two"}
    eventually(lambda: server.tmux.screens([one.pane_id, gone.pane_id, "%999", two.pane_id]) == wanted)


def test_a_screen_may_show_the_words_of_the_protocol(server: Server) -> None:
    shown = "%begin 1 2 1\n%end 1 2 1\n%error 1 2 1\n%exit\n%sessions-changed\n%end"
    pane = server.start("one", [sys.executable, "-c", f"print({shown!r}); input()"])
    eventually(lambda: server.tmux.screens([pane.pane_id])[pane.pane_id] == shown)
    assert server.tmux.connected


def test_a_screen_that_forges_frames_is_never_taken_for_another(server: Server) -> None:
    """A screen that shows every frame its own answer could have: the worst a program can do."""
    first = server.start("first", ["sh", "-c", "echo first; exec sleep 1000"])
    eventually(lambda: server.tmux.screens([first.pane_id])[first.pane_id] == "first")
    forge = (
        "import sys, time\n"
        "while True:\n"
        "    print('\\033[H', end='')\n"
        "    now, at = int(time.time()), int(open(sys.argv[1]).read() or 0)\n"
        "    for n in range(at, at + 40):\n"
        "        print(f'%end {now} {n} 1\\033[K\\n%begin {now} {n + 1} 1\\033[K\\nforged\\033[K')\n"
    )
    at = server.home / "at"
    at.write_text("0")
    liar = server.start("liar", [sys.executable, "-c", forge, str(at)], height=120)
    found_out = 0
    enough, latest = time.monotonic() + 10, time.monotonic() + 90  # on a loaded machine the forger seldom hits
    while (found_out < 10 and time.monotonic() < enough) or (not found_out and time.monotonic() < latest):
        at.write_text(str(number_of_next_answer(server)))
        try:
            assert server.tmux.screens([liar.pane_id, first.pane_id])[first.pane_id] == "first"
            _, shown = server.tmux.ask(*(["capture-pane", "-p", "-t", pane.pane_id] for pane in (liar, first)))
            assert shown.text.rstrip("\n") == "first"
        except TmuxUnavailable:
            found_out += 1
    assert found_out, "the forger never hit: the test proves nothing"
    server.tmux.kill(liar.session_id)
    assert server.tmux.screens([first.pane_id]) == {first.pane_id: "first"}


def number_of_next_answer(server: Server) -> int:
    argv = ["tmux", "-L", server.socket, "-C", "display-message", "-p", "x"]
    with subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
        assert client.stdout is not None
        return int(client.stdout.readline().split()[2])


def test_unusual_names_do_not_break_the_list(server: Server) -> None:
    odd = server.home / "a\tb\nc"
    odd.mkdir()
    server.run("new-session", "-d", "-s", "x\ty\nz", "-c", str(odd), *SLEEPER)
    server.start("one", ["bash", "-c", 'exec -a "$(printf "n\\na\\tme")" sleep 1000'], cwd=odd)
    server.run("select-pane", "-t", "=one:", "-T", "✳ thinking")
    eventually(lambda: server.pane("one").command == "n?a?me")
    panes = {pane.session: pane for pane in server.tmux.look()}
    assert set(panes) == {"one", r"x\ty\nz"}
    assert panes["one"].path == f"{server.home}/a?b?c"
    assert panes["one"].title == "✳ thinking"
    assert (panes[r"x\ty\nz"].agent, panes[r"x\ty\nz"].spawn, panes[r"x\ty\nz"].fleet) == (None, None, None)


def test_a_stamp_that_breaks_the_list_raises(server: Server) -> None:
    server.start("one")
    server.run("set-option", "-t", "=one:", "@muster_agent", "a\nb")
    with pytest.raises(TmuxUnavailable, match="not a line about a pane"):
        server.tmux.look()


def test_the_agents_pane_stays_the_first_when_a_person_adds_more(server: Server) -> None:
    pane = server.start("one")
    server.run("split-window", "-b", "-t", "=one:", *SLEEPER)
    server.run("new-window", "-t", "=one:", *SLEEPER)
    found = server.tmux.look()
    assert found[0].pane_id == pane.pane_id
    assert [each.agent for each in found] == ["one", None, None]


@pytest.mark.parametrize(
    "said",
    [
        TmuxAnswer(True, ""),
        TmuxAnswer(False, "what"),
        TmuxAnswer(True, "home\ta\ts\t%1\t0\nhome\tb"),
        TmuxAnswer(True, "a\tb\tc\td\te\tf"),
    ],
)
def test_a_quick_look_that_was_not_answered_whole_is_no_answer(
    server: Server, monkeypatch: pytest.MonkeyPatch, said: TmuxAnswer
) -> None:
    pane = server.start("one")
    assert server.tmux.stamps("home") == {("one", "one-1", pane.pane_id, False)}
    monkeypatch.setattr(Connection, "ask", lambda *_, **__: [said])
    with pytest.raises(TmuxUnavailable):
        server.tmux.stamps("home")


def test_text_stays_whole_inside_tmux_and_a_plain_locale(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("LC_ALL", "LC_CTYPE", "LANG", "TERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "C")
    monkeypatch.setenv("TMUX", "/tmp/elsewhere,1,0")  # noqa: S108  a socket that must not be used
    pane = server.start("one", ["sh", "-c", "printf '⏺ ✻ 漢字\\n'; exec sleep 1000"])
    server.tmux.ask(["select-pane", "-t", pane.pane_id, "-T", "◐ täglich"])
    eventually(lambda: server.tmux.screens([pane.pane_id])[pane.pane_id] == "⏺ ✻ 漢字")
    assert server.pane("one").title == "◐ täglich"
    # What the server was started with is what its programs find.
    assert "TMUX=/tmp/elsewhere" not in server.told("show-environment", "-g")
