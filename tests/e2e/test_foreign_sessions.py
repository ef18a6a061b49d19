"""A tmux server with thousands of sessions that are nobody's agents: they are left alone, and the fleet goes on."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.broker import wait_until
from tests.fixtures.by_hand import run_tmux
from tests.fixtures.fleet import RunningFleet

SESSIONS, AT_ONCE = 2_000, 100
SLEEPER = {"sleeper": {"binary": "sleep", "argv": ["{binary}", "100000"], "deliver": "arg"}}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[RunningFleet]:
    fleet = RunningFleet(tmp_path, {"a": {"backend": "sleeper"}, "b": {"backend": "sleeper"}}, backends=SLEEPER)
    try:
        fleet.up()
        yield fleet
    finally:
        server = int(run_tmux(fleet.socket, "display-message", "-p", "#{pid}"))
        fleet.tmux.close()
        os.kill(server, signal.SIGKILL)  # to end so many sessions in the good way takes long
        fleet.end()


def make_sessions(fleet: RunningFleet, script: Path) -> None:
    for first in range(0, SESSIONS, AT_ONCE):
        lines = [f"new-session -d -s foreign-{first + each} 'exec tail -f /dev/null'" for each in range(AT_ONCE)]
        script.write_text("\n".join(lines))
        run_tmux(fleet.socket, "source-file", str(script))


@pytest.mark.long
@pytest.mark.timeout(300)
def test_two_thousand_foreign_sessions_change_nothing(fleet: RunningFleet, tmp_path: Path) -> None:
    make_sessions(fleet, tmp_path / "sessions.tmux")
    watcher = fleet.watch()
    spawn = fleet.kill_session("a")
    wait_until(lambda: "missing" in watcher.drifts("a"), "the drift of a killed session", 30.0)
    fleet.wait_for_new_session("a", spawn)
    assert fleet.cli("restart", "b").stdout == "b was restarted\n"
    assert {told["agent"] for told in fleet.told("reconciler")} == {"a"}
    assert sorted(fleet.records()) == ["a", "b"]
    assert len(fleet.tmux.look()) == SESSIONS + 2
    for service in fleet.fleet.services:
        assert "broker not reached or lost" not in (fleet.fleet.home / "logs" / f"{service}.log").read_text()
