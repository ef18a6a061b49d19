"""A state directory that can't be written: what can be read is read, each service says why, and it goes on after.

Rights on files stop nobody who may override them, as root may: all of this fleet runs without that capability.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fixtures.broker import wait_until
from tests.fixtures.by_hand import run_tmux
from tests.fixtures.fleet import RunningFleet

WITHOUT_OVERRIDE = ("setpriv", "--bounding-set=-dac_override,-dac_read_search", "--")
AGENTS = {"builder": {"prompt": "build"}, "reviewer": {}}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[RunningFleet]:
    fleet = RunningFleet(tmp_path, AGENTS)
    fleet.runs_under = WITHOUT_OVERRIDE if os.geteuid() == 0 else ()
    try:
        fleet.up()
        for agent in AGENTS:
            fleet.wait_until_ready(agent)
        yield fleet
    finally:
        fleet.end()


@contextmanager
def read_only(home: Path) -> Iterator[None]:
    found = [home, *home.rglob("*")]
    modes = {path: path.stat().st_mode for path in found}
    try:
        for path, mode in modes.items():
            path.chmod(mode & 0o555)
        yield
    finally:
        for path, mode in modes.items():
            path.chmod(mode)


def unwritable(fleet: RunningFleet) -> str:
    return f"{fleet.fleet.home} can't be written: Permission denied"


def test_what_can_be_read_is_read_and_all_goes_on_when_it_is_writable_again(fleet: RunningFleet) -> None:
    said = unwritable(fleet)
    watcher = fleet.watch()
    with read_only(fleet.fleet.home):
        shown = fleet.cli("status", code=3).stdout
        assert shown.startswith(said)
        assert shown.count("running ") >= len(AGENTS)
        assert "not_started" not in shown
        assert "spawned" in fleet.cli("events", "--since", "1h", "--seconds", "0.1").stdout
        assert "demo agent" in fleet.cli("logs", "builder").stdout
        assert "build" in fleet.cli("transcript", "builder").stdout
        fleet.cli("reconcile", "--dry-run")
        fleet.cli("broker")
        assert f"FAIL files     {said}\n     -> as its owner or root: chmod" in fleet.cli("doctor", code=1).stdout
        for verb in ("up", "board"):
            assert fleet.cli(verb, code=1).stderr.startswith(f"muster: {said}; make it writable for ")
        # Once of its own, and once by each service.
        wait_until(
            lambda: fleet.cli("status", code=3).stdout.count(said) == 1 + len(fleet.fleet.services),
            "every service says why it is degraded",
            30.0,
        )
        killed = fleet.kill_session("builder")
    fleet.wait_for_new_session("builder", after=killed)
    fleet.wait_for_status("builder", "running")
    wait_until(lambda: fleet.cli("status", code=None).returncode == 0, "all is well again", 30.0)
    assert watcher.drifts("builder") == ["missing"]


def test_down_ends_all_of_it(fleet: RunningFleet) -> None:
    run_tmux(fleet.socket, "new-session", "-d", "-s", "mine", "sleep", "100000")
    with read_only(fleet.fleet.home):
        fleet.tmux.stamp("mine", agent="mine", spawn="s1", fleet=fleet.fleet.stamp)  # as one that was found
        ended = fleet.cli("down", "--agents").stderr
        assert unwritable(fleet) in ended
        assert "left alone, for Muster did not start them: mine" in ended
        assert [pane.agent for pane in fleet.tmux.look()] == ["mine"]
        assert "down    -" in fleet.cli("status", code=3).stdout
    fleet.up()
    fleet.wait_for_status("builder", "running")
