"""`muster reconcile` and `muster rebuild`: with everything up, without a broker, and with everything down."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import ROOT, RunningFleet

AGREED = "the record and the world agree\n"


@pytest.fixture
def fleet(fleet: RunningFleet) -> RunningFleet:
    """One in which nothing differs any more: the builder was identified."""
    wait_until(lambda: fleet.records()["builder"].transcript, "the builder's file is known")
    return fleet


@contextmanager
def nobody_mends(fleet: RunningFleet) -> Iterator[None]:
    """Nobody restarts agents nor records what the reconciler tells: what it finds stays as it is."""
    stopped = ("spawner", "registrar")
    for name in stopped:
        fleet.signal(name, signal.SIGSTOP)
    try:
        yield
    finally:
        for name in stopped:
            fleet.signal(name, signal.SIGCONT)


def drifts(fleet: RunningFleet, *arguments: str) -> list[dict[str, Any]]:
    found = json.loads(fleet.cli("reconcile", "--json", *arguments).stdout)["drifts"]
    assert isinstance(found, list)
    return found


def files(directory: Path) -> dict[str, tuple[int, int]]:
    """Everything below, with when it changed and how large it is; but agents that go on write their logs."""
    logs = directory / ".muster" / "logs" / "agents"
    return {
        str(path.relative_to(directory)): (path.lstat().st_mtime_ns, path.lstat().st_size)
        for path in sorted(directory.rglob("*"))
        if logs not in path.parents
    }


def test_what_differs_is_told_by_the_reconciler_that_runs(fleet: RunningFleet) -> None:
    assert fleet.cli("reconcile", "--once").stdout == AGREED
    assert fleet.cli("reconcile", "--dry-run", "--exit-code").stdout == AGREED
    pid = fleet.pid("reconciler")
    assert f"runs already (pid {pid})" in fleet.cli("reconcile").stdout
    with nobody_mends(fleet):
        fleet.kill_session("builder")
        wait_until(lambda: [each["state"] for each in drifts(fleet, "--once")] == ["told"], "the drift is told")
        (found,) = drifts(fleet, "--dry-run")
        assert (found["kind"], found["agent"], found["session"]) == ("missing", "builder", "builder")
        said = fleet.cli("reconcile", "--dry-run", "--exit-code", code=1).stdout
        assert said == "builder  missing  recorded as running, but tmux has no session builder  (told)\n"
    fleet.wait_for_status("builder", "running")


def test_without_a_broker_it_goes_through_the_journal(fleet: RunningFleet) -> None:
    with fleet.broker_down():
        looked = fleet.cli("reconcile", "--dry-run")
        assert looked.stdout == AGREED
        assert "the broker is down: the command waits in the journal" in looked.stderr


def test_with_everything_down_a_look_needs_no_services(fleet: RunningFleet) -> None:
    fleet.cli("down")
    fleet.kill_session("builder")
    home = fleet.path.parent
    before = files(home)
    (found,) = drifts(fleet, "--dry-run")
    assert (found["kind"], found["agent"], found["state"]) == ("missing", "builder", "new")
    assert files(home) == before
    assert [each["state"] for each in drifts(fleet, "--once")] == ["new"]
    assert [each["state"] for each in drifts(fleet, "--once")] == ["told"]
    events = fleet.cli("events", "--since", "1m", "--seconds", "0.1").stdout
    assert events.count("recorded as running, but tmux has no session builder") == 1


def test_a_dry_run_where_nothing_ever_ran_leaves_nothing(tmp_path: Path) -> None:
    never = RunningFleet(tmp_path, {"builder": {}})
    try:
        assert never.cli("reconcile", "--dry-run").stdout == AGREED
        assert [path.name for path in tmp_path.iterdir()] == ["fleet.yaml"]
    finally:
        never.tmux.close()


def test_a_bad_fleet_file_has_its_exit_code(tmp_path: Path) -> None:
    never = RunningFleet(tmp_path, {"builder": {}})
    never.tmux.close()
    never.path.write_text("agnets: {}\n")
    for option in ("--once", "--dry-run"):
        assert "did you mean 'agents'" in never.cli("reconcile", option, code=78).stderr


@pytest.mark.long
def test_without_services_it_goes_on_in_the_foreground(fleet: RunningFleet) -> None:
    fleet.cli("down")
    argv = [sys.executable, "-P", "-m", "services.cli", "--fleet", str(fleet.path), "reconcile"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(argv, stderr=subprocess.PIPE, text=True, cwd="/", env=environment) as process:
        try:
            assert fleet.pid("reconciler") == process.pid
            fleet.kill_session("builder")
            wait_until(
                lambda: [each["state"] for each in drifts(fleet, "--once")] == ["told"],
                "the drift is told by the one in the foreground",
            )
        finally:
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=20)
    assert process.returncode == 0
    assert said.startswith("muster: comparing until Ctrl-C; `muster up` does this in the background")


def test_the_registry_is_rebuilt_on_request(fleet: RunningFleet) -> None:
    before = fleet.records()
    fleet.fleet.registry.write_text("agents: [  # to be set aside\n")
    said = fleet.cli("rebuild").stdout
    assert said.startswith("the registry was written anew from the journal: 2 agents")
    wait_until(lambda: fleet.records().keys() == before.keys(), "the records are back")
    assert {name: record.spawn for name, record in fleet.records().items()} == {
        name: record.spawn for name, record in before.items()
    }
    assert "to be set aside" not in fleet.fleet.registry.read_text()
    assert any("to be set aside" in old.read_text() for old in fleet.fleet.home.glob("registry.yaml.before-*"))
