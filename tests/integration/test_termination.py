"""What runs in a session is ended for good, also what takes no notice of a hangup; what has left it is not."""

import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from services.spawner.sessions.termination import end_left_over, end_sessions
from shared.contract.ids import new_id
from shared.system.tmux import Pane, Tmux
from shared.system.tmux.server import end_server
from tests.fixtures.broker import wait_until

DEAF = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGHUP, signal.SIG_IGN)
if "--deafer" in sys.argv:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
below = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], preexec_fn=None)
apart = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"], start_new_session=True)
open(sys.argv[1], "w").write(f"{os.getpid()} {below.pid} {apart.pid}")
time.sleep(1000)
"""


@pytest.fixture
def tmux() -> Iterator[Tmux]:
    socket = f"muster-test-{new_id()[-10:]}"
    tmux = Tmux(socket)
    yield tmux
    tmux.close()
    end_server(socket)


def start(tmux: Tmux, directory: Path, *more: str) -> tuple[Pane, list[int]]:
    told = directory / "pids"
    pane = tmux.start(
        session="agent",
        argv=[sys.executable, "-c", DEAF, str(told), *more],
        cwd=directory,
        env={"MUSTER_SPAWN": "s1"},
        agent="agent",
        spawn="s1",
        fleet="f",
    )
    text = wait_until(lambda: told.read_text() if told.exists() else "", "its processes")
    return pane, [int(pid) for pid in text.split()]


def lives(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


@pytest.mark.parametrize("more", [(), ("--deafer",)], ids=["deaf to a hangup", "and to more"])
def test_a_program_that_ignores_the_hangup_is_ended(tmux: Tmux, tmp_path: Path, more: tuple[str, ...]) -> None:
    pane, (top, below, apart) = start(tmux, tmp_path, *more)
    try:
        end_sessions(tmux, [pane])
        assert not lives(top)
        assert not lives(below)
        assert lives(apart), "it had left the session, as what is to outlive an agent does"
        assert tmux.look() == []
    finally:
        psutil.Process(apart).kill()


def test_what_outlives_its_session_is_ended_by_its_spawn(tmux: Tmux, tmp_path: Path) -> None:
    pane, (top, _, apart) = start(tmux, tmp_path)
    try:
        tmux.kill(pane.session_id)
        assert lives(top)
        assert not end_left_over([(top, "another")])
        assert lives(top)
        assert end_left_over([(top, "s1")])
        assert not lives(top)
        assert not end_left_over([(top, "s1")])
    finally:
        psutil.Process(apart).kill()


def test_who_is_gone_already_is_no_trouble(tmux: Tmux, tmp_path: Path) -> None:
    pane, (_, _, apart) = start(tmux, tmp_path)
    psutil.Process(apart).kill()
    end_sessions(tmux, [pane])
    end_sessions(tmux, [pane])
    assert pane.session_id not in {each.session_id for each in tmux.look()}
