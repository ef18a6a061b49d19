"""Starting sessions: everything arrives as it was given, once, and outlives who gave it."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from shared.errors import MusterError
from shared.system.tmux import SessionExists, Tmux
from tests.integration.tmux.server import NASTY, SLEEPER, Server, eventually, start_by

DUMP = "import json, os, sys; json.dump([sys.argv[2:], dict(os.environ), os.getcwd()], open(sys.argv[1], 'w'))"


def test_the_first_session_starts_the_server_and_connects(server: Server) -> None:
    pane = server.start("one", agent="builder", spawn="s-1", fleet="home fleet", width=120, height=40)
    assert (pane.session, pane.agent, pane.spawn, pane.fleet) == ("one", "builder", "s-1", "home fleet")
    assert not pane.dead
    assert Path(f"/proc/{pane.pid}/cwd").samefile(server.home)
    assert abs(pane.created - time.time()) < 60
    assert server.tmux.connected
    told: list[str] = []

    def is_listed() -> bool:  # at times only after a while: see Server.told
        told[:] = server.clients("#{client_pid}")
        return bool(told)

    eventually(is_listed)
    (client,) = told
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


def test_a_missing_program_shows_by_its_exit_status(server: Server) -> None:
    server.start("one", ["no-such-program"])
    eventually(lambda: server.pane("one").dead_status == 127)


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
        "import time; from pathlib import Path; from shared.system.tmux import Tmux\n"
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
            eventually(lambda: server.clients("x") == ["x"])
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


def test_a_missing_directory_is_refused(server: Server) -> None:
    with pytest.raises(MusterError, match="gone: it is not a directory; create it first"):
        server.start("one", cwd=server.home / "gone")
