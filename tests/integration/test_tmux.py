"""The tmux layer against real tmux servers, each on a socket of its own."""

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.errors import MusterError, Retryable
from shared.tmux import NoSession, Pane, SessionExists, Tmux, TmuxMissing, TmuxUnavailable, WrongSpawn
from shared.tmux.connection import Connection
from shared.tmux.control import Garbled, line

SLEEPER = ["sleep", "1000"]
DUMP = "import json, os, sys; json.dump([sys.argv[2:], dict(os.environ), os.getcwd()], open(sys.argv[1], 'w'))"
NASTY = [
    *("", " ", "a b", "'", '"', "\\", "a;", ";", "\\;", ";;", "$HOME", "$(touch pwned)", "`touch pwned`", "#{pid}"),
    *("#", "##", "#[fg=red]", "~", "~root", "-x", "--", "{", "}", "%if", "%1", "=a:", "a\nb", "\n", "\t", "\r", "\x1b"),
    *("é ✳ 漢字 🦀", "a=b", "|", "&", "*", "!", "C:\\new\\table\\012", "\udcff\udcfe", "\x7f"),
]


class Server:
    """A private tmux server, watched through a `Tmux` of which every change is counted."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.socket = f"muster-test-{secrets.token_hex(6)}"
        self.changes = 0
        self.tmux = self.watch()

    def watch(self, **options: Any) -> Tmux:
        return Tmux(self.socket, on_change=self.count, **options)

    def count(self) -> None:
        self.changes += 1

    def start(self, session: str = "one", argv: list[str] | None = None, **options: Any) -> Pane:
        return start_by(self.tmux, self.home, session, argv=argv or SLEEPER, **options)

    def run(self, *arguments: str) -> str:
        """Use tmux as a person would, past the code under test."""
        ran = subprocess.run(["tmux", "-u", "-L", self.socket, *arguments], capture_output=True, text=True, check=True)
        return ran.stdout.removesuffix("\n")

    @property
    def pid(self) -> int:
        return int(self.told("display-message", "-p", "#{pid}"))

    def clients(self, words: str) -> list[str]:
        return self.told("list-clients", "-F", words, ";", "display-message", "-p", "end").split("\n")[:-1]

    def told(self, *arguments: str) -> str:
        """Ask what has an answer: under load tmux now and then loses what a plain client should print."""
        told = ""
        deadline = time.monotonic() + 10
        while not told and time.monotonic() < deadline:
            told = self.run(*arguments)
        return told

    @property
    def path(self) -> Path:
        return Path("/tmp") / f"tmux-{os.getuid()}" / self.socket  # noqa: S108  where tmux keeps its sockets

    def attached(self) -> str:
        """Say where the connection is, once looking has brought it back from where it was sent away."""
        found: list[str] = []

        def is_somewhere() -> bool:
            self.tmux.look()
            found[:] = self.clients("#{client_session}")
            return bool(found) and self.tmux.connected

        eventually(is_somewhere)
        (session,) = found
        return session

    def pane(self, session: str) -> Pane:
        (pane,) = [pane for pane in self.tmux.look() if pane.session == session]
        return pane

    @contextmanager
    def pushed(self) -> Iterator[None]:
        """What is done inside must be told."""
        before = self.changes
        yield
        eventually(lambda: self.changes > before)

    def clean_up(self) -> None:
        self.tmux.close()
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], capture_output=True, check=False)
        self.path.unlink(missing_ok=True)


def start_by(tmux: Tmux, home: Path, session: str, **options: Any) -> Pane:
    given: dict[str, Any] = {"argv": SLEEPER, "cwd": home, "env": {}, "agent": session, "fleet": "home"}
    return tmux.start(session=session, **{**given, "spawn": f"{session}-1", **options})


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without anybody's tmux configuration."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("TMUX", "TMUX_PANE", "TMUX_TMPDIR", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


@pytest.fixture
def server(home: Path) -> Iterator[Server]:
    server = Server(home)
    yield server
    server.clean_up()


def eventually(holds: Callable[[], object], timeout_s: float = 10) -> None:
    deadline = time.monotonic() + timeout_s
    while not holds():
        assert time.monotonic() < deadline, "it did not come to hold in time"
        time.sleep(0.005)


# Where there is nothing


def test_without_a_server_there_is_nothing(server: Server) -> None:
    assert server.tmux.look() == []
    assert server.tmux.screens(["%0"]) == {}
    assert server.tmux.kill("$0") is False
    assert not server.tmux.connected
    with pytest.raises(NoSession, match=f"no tmux session on socket '{server.socket}'"):
        server.tmux.ask(["list-sessions"])
    assert not server.path.exists(), "looking must not start a server"
    assert server.changes == 0, "who looks when woken would never stop"


def test_a_socket_file_left_behind_is_nothing(server: Server) -> None:
    server.start()
    server.run("kill-server")
    assert server.path.exists()
    eventually(lambda: server.changes)
    assert server.tmux.look() == []


def test_a_server_kept_without_sessions_is_nothing_and_can_be_started_on(server: Server) -> None:
    (server.home / ".tmux.conf").write_text("set -s exit-empty off\n")
    server.run("start-server")
    changes = server.changes
    assert server.tmux.look() == []
    assert server.changes == changes
    assert server.start("one").session == "one"


# Where it can't be known


def test_a_socket_that_can_not_be_reached_is_not_nothing(home: Path) -> None:
    (home / "file").touch()
    tmux = Tmux(str(home / "file" / "socket"))
    with pytest.raises(
        TmuxUnavailable, match=r"tmux did not answer 'list-panes': error connecting to .*Not a directory"
    ):
        tmux.look()


@pytest.mark.parametrize("greeting", [None, b"garbage\n" * 100, b""], ids=["silent", "garbage", "closed"])
def test_a_socket_with_something_else_behind_is_not_nothing(home: Path, greeting: bytes | None) -> None:
    path = home / "s"
    tmux = Tmux(os.path.relpath(path, Path.cwd()) if len(str(path)) > 100 else str(path), timeout_s=0.5)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        kept = []

        def serve() -> None:
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:
                    return
                if greeting is None:
                    kept.append(peer)
                    continue
                peer.sendall(greeting)
                peer.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            with pytest.raises(TmuxUnavailable) as raised:
                tmux.look()
            assert isinstance(raised.value, Retryable)
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for peer in kept:
                peer.close()


def test_a_stopped_server_raises_and_recovers(server: Server) -> None:
    server.start("one")
    server.tmux.close()
    hasty = server.tmux = server.watch(timeout_s=1)
    before = hasty.look()
    pid = server.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        for _ in range(2):  # over the old connection, then over a new one
            with pytest.raises(TmuxUnavailable, match="did not answer 'list-panes': no reply within 1 s"):
                hasty.look()
            assert not hasty.connected
        with pytest.raises(TmuxUnavailable):
            hasty.ask(["display-message", "-p", "an old question"])
        with pytest.raises(TmuxUnavailable):
            server.start("never")
    finally:
        os.kill(pid, signal.SIGCONT)
    assert hasty.ask(["display-message", "-p", "a new question"])[0].text == "a new question"
    assert hasty.look() == before
    assert server.pid == pid


def test_what_a_stopped_server_was_told_to_start_is_started_once(server: Server) -> None:
    server.start("one")
    server.tmux.close()
    server.tmux = server.watch(timeout_s=1)
    server.tmux.look()
    pid = server.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(TmuxUnavailable, match="'new-session': no reply"):
            server.start("late")
    finally:
        os.kill(pid, signal.SIGCONT)
    server.tmux.close()
    server.tmux = server.watch()
    # It may have been done on waking or have gone with the connection: the name decides.
    with suppress(SessionExists):
        server.start("late")
    assert sorted(str(pane.spawn) for pane in server.tmux.look()) == ["late-1", "one-1"]
    assert server.pid == pid


def test_a_batch_too_big_for_a_stopped_server_raises(server: Server) -> None:
    server.start()
    server.tmux.close()
    server.tmux = server.watch(timeout_s=1)
    pid = server.pid
    os.kill(pid, signal.SIGSTOP)
    try:
        with pytest.raises(TmuxUnavailable):
            server.tmux.ask(*([["display-message", "-p", "x" * 1000]] * 2000))
    finally:
        os.kill(pid, signal.SIGCONT)


def test_missing_tmux_is_said(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(home))
    with pytest.raises(TmuxMissing, match="tmux is not installed; install it with apt-get install tmux"):
        Tmux("muster-test-none").look()


# Starting


def test_the_first_session_starts_the_server_and_connects(server: Server) -> None:
    pane = server.start("one", agent="builder", spawn="s-1", fleet="home fleet", width=120, height=40)
    assert (pane.session, pane.agent, pane.spawn, pane.fleet) == ("one", "builder", "s-1", "home fleet")
    assert not pane.dead
    assert Path(f"/proc/{pane.pid}/cwd").samefile(server.home)
    assert abs(pane.created - time.time()) < 60
    assert server.tmux.connected
    (client,) = server.clients("#{client_pid}")
    assert os.getpgid(int(client)) != os.getpgid(0), "an interrupt at our terminal would end the connection"
    found = server.pane("one")
    assert (found.session_id, found.pane_id, found.pid) == (pane.session_id, pane.pane_id, pane.pid)
    assert found.path == str(server.home)
    assert server.told("display-message", "-p", "-t", "=one:", "#{window_width}x#{window_height}") == "120x40"


@pytest.mark.parametrize("running", [False, True], ids=["first", "second"])
def test_arguments_directory_and_environment_arrive_byte_for_byte(
    server: Server, monkeypatch: pytest.MonkeyPatch, *, running: bool
) -> None:
    monkeypatch.setenv("DISPLAY", "ours, not the agent's")
    if running:
        server.run("new-session", "-d", "-s", "other", *SLEEPER)
        server.run("set-environment", "-g", "DISPLAY", "theirs")
    cwd = server.home / "a #[b] #{pid} ##x $HOME ~ ; 'é"
    cwd.mkdir()
    told = server.home / "told"
    env = {f"NASTY_{place}": text for place, text in enumerate(NASTY)}
    long = "a long prompt; " * 3000  # more than tmux takes as arguments
    argv = [sys.executable, "-c", DUMP, str(told), *NASTY, long, ";"]
    pane = server.start("one", argv, cwd=cwd, env=env)
    eventually(lambda: server.pane("one").dead)
    arguments, environment, directory = json.loads(told.read_text())
    assert arguments == [*NASTY, long, ";"]
    assert directory == str(cwd)
    assert {name: environment[name] for name in env} == env
    assert tuple(environment[f"MUSTER_STAMP_{name}"] for name in ("AGENT", "SPAWN", "FLEET")) == (
        *("one", "one-1"),
        "home",
    )
    assert environment["TMUX_PANE"] == pane.pane_id
    assert not list(server.home.rglob("pwned"))
    if running:
        assert environment["DISPLAY"] == "theirs"


def test_a_lone_program_meets_no_shell(server: Server) -> None:
    program = server.home / "my $(touch pwned) 'program'; exit 9"
    program.write_text(f"#!/bin/sh\ntr '\\0' '\\n' < /proc/$PPID/comm > {server.home}/parent\nexit 3\n")
    program.chmod(0o700)
    server.start("one", [str(program)])
    eventually(lambda: server.pane("one").dead_status == 3)
    assert (server.home / "parent").read_text() == "tmux: server\n"
    assert not list(server.home.rglob("pwned"))


def test_a_missing_program_is_told_by_its_status(server: Server) -> None:
    server.start("one", ["no-such-program"])
    eventually(lambda: server.pane("one").dead_status == 127)


def test_a_dead_screen_still_shows_its_first_line(server: Server) -> None:
    go = server.home / "go"
    os.mkfifo(go)
    pane = server.start("one", ["sh", "-c", f"echo why it died; read x < {go}"])
    eventually(lambda: server.tmux.screens([pane.pane_id])[pane.pane_id] == "why it died")
    go.write_text("\n")
    eventually(lambda: server.pane("one").dead_status == 0)
    assert server.tmux.screens([pane.pane_id])[pane.pane_id] == "why it died"


def test_a_taken_name_is_refused_and_a_part_of_one_is_not_taken(server: Server) -> None:
    server.start("builder")
    with pytest.raises(SessionExists, match="'builder' already exists"):
        server.start("builder", spawn="other")
    assert server.pane("builder").spawn == "builder-1"
    assert server.start("build").session == "build"
    assert (server.pane("build").agent, server.pane("builder").agent) == ("build", "builder")


def test_two_that_start_the_same_first_session_get_one(server: Server) -> None:
    others = [Tmux(server.socket) for _ in range(4)]
    outcomes: list[object] = []

    def start(place: int, tmux: Tmux) -> None:
        try:
            pane = start_by(tmux, server.home, "one", spawn=f"spawn-{place}")
            outcomes.append(pane.spawn)
        except MusterError as error:
            outcomes.append(type(error))

    threads = [threading.Thread(target=start, args=item) for item in enumerate(others)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for other in others:
        other.close()
    assert sorted(map(str, outcomes)) == sorted(map(str, [SessionExists] * 3 + [server.pane("one").spawn]))


def test_the_server_outlives_whoever_started_it(server: Server) -> None:
    script = (
        "import time; from pathlib import Path; from shared.tmux import Tmux\n"
        f"tmux = Tmux({server.socket!r})\n"
        f"tmux.start(session='one', argv={SLEEPER!r}, cwd=Path('/'), env={{}}, agent='one', spawn='s', fleet='f')\n"
        "while not tmux.connected: tmux.look()\n"
        "print('connected', flush=True); time.sleep(1000)"
    )
    argv = [sys.executable, "-c", script]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True, start_new_session=True) as parent:
        try:
            assert parent.stdout is not None
            assert parent.stdout.readline() == "connected\n"
            assert server.clients("x") == ["x"]
        finally:
            os.killpg(parent.pid, signal.SIGKILL)
    eventually(lambda: server.clients("x") == [])
    assert server.pane("one").spawn == "s"
    assert Path(f"/proc/{server.pid}/cwd").readlink() == Path("/")


def test_a_session_survives_a_configuration_that_ends_the_unattached(server: Server) -> None:
    (server.home / ".tmux.conf").write_text("set -g destroy-unattached on\n")
    server.start("one")
    server.start("two")
    server.tmux.close()
    eventually(lambda: server.clients("x") == [])
    assert [pane.session for pane in server.tmux.look()] == ["one", "two"]


# Looking


def test_a_dead_program_is_told_with_its_status(server: Server) -> None:
    server.start("one", ["sh", "-c", "exit 7"])
    two = server.start("two")
    eventually(lambda: server.pane("one").dead_status == 7)
    assert (server.pane("two").dead, server.pane("two").dead_status) == (False, None)
    os.kill(two.pid, signal.SIGKILL)
    eventually(lambda: server.pane("two").dead_status == -signal.SIGKILL)
    assert server.pane("two").dead


def test_tmux_is_reminded_of_a_child_whose_end_it_may_have_missed(
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


def test_a_death_is_pushed_as_soon_as_tmux_knows_its_status(server: Server) -> None:
    pane = server.start("one")
    pid = server.pid
    with server.pushed():
        os.kill(pane.pid, signal.SIGKILL)
        # tmux may have missed the word (see Tmux.look); this is what it would have got.
        eventually(lambda: server.run("list-panes", "-t", "=one:", "-F", "#{pane_dead}") == "1")
        eventually(lambda: has_ended(pane.pid))
        os.kill(pid, signal.SIGCHLD)
    assert server.told("display-message", "-p", "-t", "=one:", "#{window_name}") == "dead"


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


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
    deadline = time.monotonic() + 10
    while found_out < 10 and time.monotonic() < deadline:
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
    assert [found.pane_id for found in server.tmux.look()] == [pane.pane_id]


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


# Changes


def test_what_others_do_is_pushed(server: Server) -> None:
    server.start("one")
    for action in (
        ["new-session", "-d", "-s", "theirs", *SLEEPER],
        ["rename-session", "-t", "=theirs", "renamed"],
        ["new-window", "-d", "-t", "=renamed:", *SLEEPER],
        ["kill-window", "-t", "=renamed:"],
        ["kill-session", "-t", "=renamed"],
    ):
        with server.pushed():
            server.run(*action)


def test_looking_is_no_change(server: Server) -> None:
    server.start("one")
    server.tmux.close()
    server.tmux.look()
    changes = server.changes
    with_another = server.watch()
    pane = with_another.look()[0]
    for _ in range(5):
        server.tmux.look()
        server.tmux.screens([pane.pane_id])
    with_another.close()
    eventually(lambda: server.clients("x") == ["x"])
    server.tmux.look()
    assert server.changes == changes


@pytest.mark.parametrize("configuration", ["", "set -g detach-on-destroy off\n"], ids=["sent away", "moved"])
def test_the_attached_session_may_be_killed(server: Server, configuration: str) -> None:
    (server.home / ".tmux.conf").write_text(configuration)
    left = {"one", "two", "three"}
    for name in left:
        server.run("new-session", "-d", "-s", name, *SLEEPER)
    server.tmux.look()
    while len(left) > 1:
        attached = server.attached()
        left.remove(attached)
        with server.pushed():
            server.run("kill-session", "-t", f"={attached}")
        assert {pane.session for pane in server.tmux.look()} == left
    changes = server.changes
    server.run("kill-session", "-t", f"={left.pop()}")
    eventually(lambda: server.changes > changes and not server.tmux.connected)
    assert server.tmux.look() == []


def test_the_connection_outlives_every_agent_but_the_last(server: Server) -> None:
    server.run("new-session", "-d", "-s", "theirs", *SLEEPER)
    early = server.watch()
    early.look()  # connected before there was a better place, it moves when it sees one
    panes = [server.start(name) for name in ("one", "two", "three")]
    early.look()
    clients = server.clients("#{client_pid}")
    assert server.clients("#{client_session}") == ["muster-keeper"] * 2
    server.run("kill-session", "-t", "=theirs")
    server.run("kill-session", "-t", "=one")
    server.tmux.kill(panes[1].session_id)
    assert [pane.session for pane in early.look()] == ["three"]
    assert server.clients("#{client_pid}") == clients
    server.tmux.kill(panes[2].session_id)
    assert early.look() == []
    early.close()
    with pytest.raises(subprocess.CalledProcessError):
        server.run("list-sessions")


@pytest.mark.parametrize("configuration", ["", "set -g detach-on-destroy off\n"], ids=["sent away", "moved"])
def test_a_killed_keeper_is_replaced(server: Server, configuration: str) -> None:
    (server.home / ".tmux.conf").write_text(configuration)
    server.start("one")
    with server.pushed():
        server.run("kill-session", "-t", "=muster-keeper")
    assert [pane.session for pane in server.tmux.look()] == ["one"]
    assert server.attached() == "one"
    server.start("two")
    assert server.attached() == "muster-keeper"
    assert [pane.session for pane in server.tmux.look()] == ["one", "two"]


@pytest.mark.parametrize("end", ["SIGKILL", "kill-server"])
def test_the_servers_end_is_pushed_and_a_new_one_is_found(server: Server, end: str) -> None:
    server.start("one")
    changes = server.changes
    if end == "SIGKILL":
        os.kill(server.pid, signal.SIGKILL)
    else:
        server.run(end)
    eventually(lambda: server.changes > changes and not server.tmux.connected)
    assert server.tmux.look() == []
    server.run("new-session", "-d", "-s", "new", *SLEEPER)
    assert [pane.session for pane in server.tmux.look()] == ["new"]
    assert server.tmux.connected


def test_the_server_survives_connecting_while_sessions_come_and_go(server: Server) -> None:
    """tmux dies of a change made while a control client introduces itself, so those two must never meet."""
    server.start("stays")
    pid = server.pid
    other = Tmux(server.socket)
    done = threading.Event()

    def churn() -> None:
        for place in range(60):
            pane = start_by(other, server.home, f"short-{place}", spawn=f"s-{place}")
            other.kill(pane.session_id, spawn=f"s-{place}")
        done.set()

    thread = threading.Thread(target=churn)
    thread.start()
    connects = 0
    while not done.is_set():
        server.tmux.close()
        assert "stays" in [pane.session for pane in server.tmux.look()]
        connects += 1
    thread.join()
    other.close()
    assert connects > 3
    assert server.pid == pid


def test_a_batch_meets_sessions_that_are_being_killed(server: Server) -> None:
    stays = server.start("stays", ["sh", "-c", "echo here; exec sleep 1000"])
    eventually(lambda: server.tmux.screens([stays.pane_id])[stays.pane_id] == "here")
    done = threading.Event()

    def churn() -> None:
        for place in range(60):
            server.run("new-session", "-d", "-s", f"short-{place}", *SLEEPER)
            server.run("kill-session", "-t", f"=short-{place}")
        done.set()

    thread = threading.Thread(target=churn)
    thread.start()
    seen = 0
    while not done.is_set():
        panes = server.tmux.look()
        screens = server.tmux.screens([pane.pane_id for pane in panes])
        assert screens[stays.pane_id] == "here"
        seen += len(panes) > 1
    thread.join()
    assert seen, "no session was ever met while it lived"


def test_a_listener_that_fails_does_not_make_it_deaf(server: Server, caplog: pytest.LogCaptureFixture) -> None:
    calls = 0

    def fail() -> None:
        nonlocal calls
        calls += 1
        raise RuntimeError("the listener is broken")

    server.start("one")
    server.tmux.close()
    server.tmux = Tmux(server.socket, on_change=fail)
    server.tmux.look()
    for name, told in (("a", 1), ("b", 2)):
        server.run("new-session", "-d", "-s", name, *SLEEPER)
        eventually(lambda told=told: calls >= told)  # type: ignore[misc]
    assert server.tmux.connected
    assert "the listener is broken" in caplog.text


def test_closing_leaves_nothing_behind_and_tells_nobody(server: Server) -> None:
    server.start("one")
    threads = threading.active_count()
    changes = server.changes
    server.tmux.close()
    assert threading.active_count() == threads - 1
    assert server.changes == changes
    assert not server.tmux.connected
    eventually(lambda: server.clients("x") == [])
    assert server.pane("one").session == "one"


# Killing


def test_killing_by_id_and_stamp(server: Server) -> None:
    one, two = server.start("one"), server.start("two")
    with pytest.raises(WrongSpawn, match=r"session \$0 was not killed: its spawn stamp is 'one-1', not 'other'"):
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


# Asking


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=20))
def test_values_come_back_byte_for_byte(asking: Tmux, values: list[str]) -> None:
    values = [*values, *(text for text in NASTY if text.isprintable() or text == "\n")]
    batch = [
        command
        for value in values
        for command in (["set-option", "-t", "=one:", "@x", value], ["show-options", "-v", "-t", "=one:", "@x"])
    ]
    answers = asking.ask(*batch)
    assert [answer.text for answer in answers[1::2]] == values
    assert all(answer.ok and not answer.lines for answer in answers[0::2])


@pytest.fixture
def asking(server: Server) -> Tmux:
    server.start("one")
    return server.tmux


def test_an_error_in_a_batch_stays_with_its_question(asking: Tmux) -> None:
    answers = asking.ask(
        ["display-message", "-p", "a"],
        ["no-such-command"],
        ["has-session", "-t", "=none"],
        ["list-panes", "-t", "=one:", "-F", "b"],
    )
    assert [(answer.ok, answer.lines) for answer in answers] == [
        (True, ("a",)),
        (False, ("parse error: unknown command: no-such-command",)),
        (False, ("can't find session: none",)),
        (True, ("b",)),
    ]
    assert asking.ask() == []


@pytest.mark.parametrize(
    "forged",
    [
        "%end 7 1 1",
        "%end 7 1 1\n%begin 7 2 1",  # takes in the next frames whole
        "%end 7 1 1\n%begin 7 3 1",
        "%end 7 1 1\n%begin 7 2 1\nguess\n%end 7 2 1\n%begin 7 3 1\nfalse",
        "%end 7 1 1\n%begin 7 2 1\nguess\n%end 7 2 1\n%begin 7 3 1\nfalse\n%end 7 3 1",
    ],
)
def test_a_screen_that_guesses_the_frames_is_found_out(forged: str) -> None:
    """The worst that text can do, for it knows every number that tmux is about to use."""
    with answered_with(forged, "true") as connection, pytest.raises((Garbled, ConnectionError)):
        connection.ask([line(["first"]), line(["second"])], time.monotonic() + 5)


def test_a_screen_that_guesses_wrong_is_read_as_it_is() -> None:
    harmless = "%end 7 9 1\n%begin 7 2 1\n%error 6 1 1\n%end"
    with answered_with(harmless, "true") as connection:
        answers = connection.ask([line(["first"]), line(["second"])], time.monotonic() + 5)
    assert [answer.text for answer in answers] == [harmless, "true"]


@contextmanager
def answered_with(*texts: str) -> Iterator[Connection]:
    """A connection to something that answers as tmux would if these texts were on its screens."""
    ours, theirs = socket.socketpair()

    def answer() -> None:
        asked = b""
        while asked.count(b"\n") < 2 * len(texts):
            asked += theirs.recv(65536)
        word = asked.decode().split()[-1]
        for place, text in enumerate(texts):
            first, second = f"7 {2 * place + 1} 1", f"7 {2 * place + 2} 1"
            frames = f"%begin {first}\n{text}\n%end {first}\n"
            theirs.sendall(f"{frames}%begin {second}\n{word}\n%end {second}\n".encode())

    thread = threading.Thread(target=answer)
    thread.start()
    with theirs, subprocess.Popen(["sleep", "1000"], stderr=subprocess.PIPE) as client:
        connection = Connection(client, ours, lambda: None)
        yield connection
        thread.join()
        connection.close(patience_s=0)


def test_a_batch_may_be_larger_than_any_buffer(asking: Tmux) -> None:
    words = [f"{place} " + "x" * 2000 for place in range(1500)]
    answers = asking.ask(*(["display-message", "-p", word] for word in words))
    assert [answer.text for answer in answers] == words


def test_threads_get_their_own_answers(asking: Tmux) -> None:
    wrong: list[str] = []

    def ask(name: str) -> None:
        for place in range(50):
            text = asking.ask(["display-message", "-p", f"{name} {place}"])[0].text
            if text != f"{name} {place}":
                wrong.append(text)

    threads = [threading.Thread(target=ask, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


# When who asked is killed

HOLDER = """
import sys, time
from shared.tmux import Tmux
Tmux(sys.argv[1]).look()
print("looked", flush=True)
time.sleep(600)
"""


def test_a_client_does_not_outlive_the_process_that_started_it(server: Server) -> None:
    """Also when the server can't take its leave: it would wait for such a client for ever when it ends itself."""
    server.start()
    with subprocess.Popen([sys.executable, "-c", HOLDER, server.socket], stdout=subprocess.PIPE) as asking:
        assert asking.stdout is not None
        assert asking.stdout.readline() == b"looked\n"
        (client,) = psutil.Process(asking.pid).children()
        held_up = server.pid
        os.kill(held_up, signal.SIGSTOP)
        try:
            asking.kill()
            asking.wait()
            eventually(lambda: not client.is_running() or client.status() == psutil.STATUS_ZOMBIE)
        finally:
            os.kill(held_up, signal.SIGCONT)
