"""`muster status` on a running fleet: filters, what ended, a broken registry, and a watch in a real terminal."""

import contextlib
import json
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import psutil
import pytest

from shared.contract.ids import new_id
from shared.system.tmux.server import end_server
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import ROOT, RunningFleet


def status(fleet: RunningFleet, *arguments: str, code: int = 0) -> str:
    return fleet.cli("status", *arguments, code=code).stdout


def test_names_and_filters(fleet: RunningFleet) -> None:
    fleet.cli("stop", "reviewer")
    fleet.wait_for_status("reviewer", "stopped")
    assert "builder" not in status(fleet, "--status", "stopped,exited")
    assert "SERVICE" not in status(fleet, "reviewer")
    assert list(json.loads(status(fleet, "--wanted", "running", "--json"))["agents"]) == ["builder"]
    assert status(fleet, "--drift") == "none of the 2 agents is like that\n"
    assert "there are: builder, reviewer" in fleet.cli("status", "nobody", code=1).stderr
    (ended,) = json.loads(status(fleet, "--ended", "--json"))["history"]
    assert (ended["agent"], ended["status"]) == ("reviewer", "stopped")
    assert "asked for by" in status(fleet, "--ended").split("ENDED")[1]


def test_a_broken_registry_is_told_with_its_place(fleet: RunningFleet) -> None:
    before = sessions(status(fleet, "--json"))
    good = fleet.fleet.registry.read_text()
    fleet.fleet.registry.write_text(good + "\nbroken: [\n")
    said = status(fleet, code=3)
    assert f"{fleet.fleet.registry}, line " in said
    assert ", column " in said
    assert "the agents are shown as the journal has them" in said
    after = status(fleet, "--json", code=3)
    assert (json.loads(after)["from"], sessions(after)) == ("journal", before)


def sessions(said: str) -> dict[str, dict[str, Any]]:
    """What is known of each agent's session, and does not change while that goes on."""
    lasting = ("status", "desired", "since", "backend", "workspace", "session", "pane", "pid", "spawn", "started")
    return {agent: {key: known[key] for key in lasting} for agent, known in json.loads(said)["agents"].items()}


# --- the watch ---


class Terminal:
    """A shell in tmux, on a server of its own."""

    def __init__(self, socket: str) -> None:
        self._socket = socket
        self.tmux("new-session", "-d", "-x", "100", "-y", "24", "-s", "w", "bash --norc --noprofile")
        wait_until(lambda: "$" in self.screen() or "#" in self.screen(), "a prompt")

    def tmux(self, *words: str) -> str:
        argv = ["tmux", "-L", self._socket, "-f", "/dev/null", *words]
        return subprocess.run(argv, capture_output=True, text=True, timeout=20, check=True).stdout

    def screen(self) -> str:
        return self.tmux("capture-pane", "-p", "-t", "w")

    def type(self, *keys: str) -> None:
        self.tmux("send-keys", "-t", "w", *keys)

    def resize(self, columns: int, rows: int) -> None:
        self.tmux("resize-window", "-t", "w", "-x", f"{columns}", "-y", f"{rows}")

    def wait(self, text: str, what: str, within_s: float = 20.0) -> str:
        wait_until(lambda: text in self.screen(), f"{what}; it shows\n{self.screen()}", within_s)
        return self.screen()

    def mode(self) -> str:
        """Whether the alternate screen is on, and the cursor is shown."""
        return self.tmux("display-message", "-p", "-t", "w", "#{alternate_on} #{cursor_flag}").strip()

    def row(self, agent: str) -> str:
        return next((line for line in self.screen().splitlines() if line.startswith(agent)), "")


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    socket = f"muster-test-{new_id()[-10:]}"
    try:
        yield Terminal(socket)
    finally:
        end_server(socket)


def watching(fleet: RunningFleet, *more: str) -> list[str]:
    return [sys.executable, "-P", "-m", "services.cli", "--fleet", str(fleet.path), "status", "--watch", *more]


def start(fleet: RunningFleet, terminal: Terminal, *more: str) -> None:
    terminal.type(f"cd {ROOT} && clear", "Enter")
    terminal.type(shlex.join(watching(fleet, *more)) + "; echo code=$?", "Enter")
    terminal.wait("2 agents: 2 running", "the first picture")


def test_a_watch_shows_what_changes_with_and_without_a_broker(fleet: RunningFleet, terminal: Terminal) -> None:
    start(fleet, terminal)
    assert terminal.mode() == "1 0"
    assert "up: supervisor broker  online: spawner" in terminal.screen()
    fleet.signal("spawner", signal.SIGSTOP)  # so that it stays down for as long as it takes to see it
    fleet.kill_session("builder")
    terminal.wait("builder   terminated", "the killed agent")
    fleet.signal("spawner", signal.SIGCONT)
    wait_until(lambda: "running" in terminal.row("builder"), "it runs again")
    with fleet.broker_down():
        terminal.wait("the broker is down", "that the broker is down")
        fleet.cli("stop", "reviewer")
        wait_until(lambda: "stopped" in terminal.row("reviewer"), "the stopped agent, without a broker")
    terminal.wait("up: supervisor broker", "the broker's return")
    assert "the broker is down" not in terminal.screen()
    wait_until(lambda: "online: spawner" in terminal.screen(), "the services at the broker")
    terminal.type("q")
    assert "\nAGENT" not in terminal.wait("code=0", "the shell")
    assert terminal.mode() == "0 1"


def test_a_watch_fits_its_window(shared_fleet: RunningFleet, terminal: Terminal) -> None:
    start(shared_fleet, terminal)
    terminal.resize(50, 24)
    wait_until(
        lambda: terminal.row("AGENT").split()[-1:] == ["WHY"] and "BACKEND" not in terminal.row("AGENT"), "narrow"
    )
    terminal.resize(100, 3)
    terminal.wait("… there is no room for 2 more agents", "that not all is shown")
    terminal.resize(100, 24)
    wait_until(lambda: "BACKEND" in terminal.row("AGENT") and terminal.row("reviewer"), "all of it again")


def test_a_watch_that_is_interrupted_leaves_the_terminal_as_it_was(
    shared_fleet: RunningFleet, terminal: Terminal
) -> None:
    start(shared_fleet, terminal)
    terminal.type("C-c")
    assert "\nAGENT" not in terminal.wait("code=130", "the shell")
    expect_a_sane_terminal(terminal)


def test_a_watch_gives_the_terminal_back_for_a_while_and_when_it_is_ended(
    shared_fleet: RunningFleet, terminal: Terminal
) -> None:
    start(shared_fleet, terminal)
    terminal.type("C-z")
    terminal.wait("Stopped", "the shell, in between")
    expect_a_sane_terminal(terminal)
    terminal.type("fg", "Enter")
    wait_until(lambda: terminal.row("AGENT"), "the table again")
    assert terminal.mode() == "1 0"
    shell = int(terminal.tmux("display-message", "-p", "-t", "w", "#{pane_pid}"))
    (watch,) = psutil.Process(shell).children()
    watch.terminate()
    watch.wait(20)
    expect_a_sane_terminal(terminal)


def expect_a_sane_terminal(terminal: Terminal) -> None:
    wait_until(lambda: terminal.mode() == "0 1", "the shell's own screen, and its cursor")
    terminal.type("clear; stty -a | grep -owE -- '-?(echo|icanon)' | xargs echo now", "Enter")
    wait_until(lambda: "now icanon echo" in terminal.screen() or "now echo icanon" in terminal.screen(), "sane modes")


def test_a_watch_into_a_pipe_prints_again_only_what_changed(fleet: RunningFleet) -> None:
    with subprocess.Popen(watching(fleet, "--json", "reviewer"), stdout=subprocess.PIPE, text=True, cwd="/") as process:
        assert process.stdout is not None
        try:
            printed = [json.loads(process.stdout.readline())]
            assert printed[0]["agents"]["reviewer"]["status"] == "running"
            began = time.monotonic()
            wait_until(lambda: time.monotonic() - began > 2.5, "time passes")
            fleet.cli("stop", "reviewer")
            while printed[-1]["agents"]["reviewer"]["status"] != "stopped":
                printed.append(json.loads(process.stdout.readline()))
            assert [now for before, now in pairwise(printed) if now == before] == []
        finally:
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
        assert process.returncode == 130
