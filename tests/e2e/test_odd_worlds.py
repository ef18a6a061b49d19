"""What users have and tests usually have not: odd paths, broken files, forgotten agents, closed terminals."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from services.cli import supervision
from tests.e2e.test_lifecycle import processes_about
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet


def test_a_fleet_in_an_odd_directory_comes_up_and_goes_down(tmp_path: Path) -> None:
    directory = tmp_path / "100% #1;x %d y"
    directory.mkdir()
    fleet = RunningFleet(directory, {"builder": {}})
    try:
        fleet.up()
        fleet.wait_for_status("builder", "running")
        fleet.cli("down", "--agents")
        assert supervision.pids(fleet.fleet) == {}
    finally:
        fleet.end()


def test_an_agent_knows_its_fleet_and_nothing_of_the_supervisor(fleet: RunningFleet) -> None:
    pane = fleet.pane("builder")
    assert pane is not None
    environment = psutil.Process(pane.pid).environ()
    assert environment["MUSTER_FLEET"] == str(fleet.path)
    assert environment["MUSTER_AGENT"] == "builder"
    assert [name for name in environment if name.startswith("SUPERVISOR_")] == []


def test_an_agent_that_the_file_forgot_can_be_ended(fleet: RunningFleet) -> None:
    declared = json.loads(fleet.path.read_text())
    del declared["agents"]["reviewer"]
    declared["agents"]["newcomer"] = {}
    fleet.path.write_text(json.dumps(declared))
    assert "there is no agent 'nobody'" in fleet.cli("stop", "nobody", code=1).stdout
    fleet.wait_for_status("newcomer", "running")
    assert fleet.cli("stop", "reviewer").stdout == "reviewer was stopped\n"
    fleet.cli("down", "--agents")
    assert fleet.tmux.look() == []


def test_down_with_agents_ends_also_what_is_just_being_restarted(fleet: RunningFleet) -> None:
    fleet.kill_session("builder")
    fleet.cli("down", "--agents")
    assert fleet.tmux.look() == []
    assert "nothing was running" in fleet.cli("down", "--agents").stderr


@pytest.mark.long
def test_a_stop_is_no_drift_however_slow_the_registrar_is(fleet: RunningFleet) -> None:
    watcher = fleet.watch("muster/box/agent/builder/#")
    fleet.signal("registrar", signal.SIGSTOP)
    try:
        fleet.cli("stop", "builder")
        began = time.monotonic()
        wait_until(lambda: time.monotonic() - began > 5, "longer than any grace")
    finally:
        fleet.signal("registrar", signal.SIGCONT)
    fleet.wait_for_status("builder", "stopped")
    wait_until(lambda: watcher.kinds("lifecycle") == ["stopped"], "the stop at the subscriber")
    assert watcher.drifts("builder") == []


@pytest.mark.long
@pytest.mark.parametrize("name", ["fleet.yaml", ".muster/registry.yaml"])
def test_a_broken_file_keeps_nobody_from_seeing_and_ending_the_fleet(fleet: RunningFleet, name: str) -> None:
    (fleet.path.parent / name).write_text("agents: {builder: [\n")
    status = fleet.cli("status", code=3)
    assert f"{name}, line 2" in status.stdout
    assert "online" in status.stdout
    fleet.cli("down", "--agents")
    assert supervision.pids(fleet.fleet) == {}
    assert fleet.tmux.look() == []


def test_a_dead_supervisor_is_seen(fleet: RunningFleet) -> None:
    fleet.signal("supervisor", signal.SIGKILL)
    wait_until(lambda: "supervisor" not in supervision.pids(fleet.fleet), "no supervisor")
    assert "nobody restarts what dies" in fleet.cli("status", code=3).stdout
    assert "nobody restarts what dies" in fleet.cli("doctor", code=1).stdout


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGHUP, signal.SIGTERM])
def test_a_demo_whose_terminal_is_closed_leaves_nothing(tmp_path: Path, how: signal.Signals) -> None:
    demo = subprocess.Popen(
        [sys.executable, "-P", "-m", "services.cli", "demo"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert demo.stdout is not None
    for line in demo.stdout:
        if "builder" in line and "running" in line:
            break
    demo.stdout.close()  # the terminal is gone, and with it everybody who listened
    demo.send_signal(how)
    assert demo.wait(60) == 1
    assert list(tmp_path.glob("muster-demo-*")) == []
    assert processes_about(str(tmp_path)) == []


@pytest.mark.parametrize("arguments", [("stop", "Builder"), ("stop", "a b"), ("events", "--since", "yesterday")])
def test_a_mistyped_argument_is_a_sentence(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    fleet = RunningFleet(tmp_path, {"builder": {}})  # which is not up: nobody is asked
    done = fleet.cli(*arguments, code=1)
    assert done.stderr.startswith("muster: ")
    assert "Traceback" not in done.stderr
