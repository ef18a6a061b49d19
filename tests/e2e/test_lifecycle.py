"""A fleet's life by the CLI: up, an accident, down, and nothing left behind."""

import json
import signal
import subprocess
import sys
from itertools import groupby

import psutil
import pytest

from services.cli import supervision
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet


def processes_about(text: str) -> list[str]:
    found = []
    for process in psutil.process_iter(["cmdline"]):
        line = " ".join(process.info["cmdline"] or [])
        if text in line and "pytest" not in line and "mosquitto_sub" not in line:
            found.append(line)
    return found


def test_a_killed_session_is_told_once_and_healed(fleet: RunningFleet) -> None:
    watcher = fleet.watch("muster/box/agent/builder/#")
    old = fleet.kill_session("builder")
    fleet.wait_for_new_session("builder", after=old)
    wait_until(
        lambda: watcher.documents("state")[-1]["data"]["spawn"] not in (old, None), "the new session at the subscriber"
    )
    assert watcher.drifts("builder") == ["missing"]
    assert watcher.kinds("lifecycle") == ["restarted"]
    statuses = [document["data"]["status"] for document in watcher.documents("state")]
    assert [status for status, _same in groupby(statuses)] == ["running", "terminated", "running"]
    (drift, *_) = [document for document in watcher.documents("drift") if document["data"]["kind"] == "missing"]
    assert (drift["type"], drift["data"]["spawn"]) == ("muster.drift.missing", old)


def test_a_program_that_ends_is_told_with_its_status_and_healed(fleet: RunningFleet) -> None:
    watcher = fleet.watch("muster/box/agent/builder/#")
    pane = fleet.pane("builder")
    assert pane is not None
    psutil.Process(pane.pid).kill()
    assert pane.spawn is not None
    fleet.wait_for_new_session("builder", after=pane.spawn)
    wait_until(lambda: watcher.kinds("lifecycle") == ["exited", "restarted"], "the end and the restart")
    assert watcher.documents("lifecycle")[0]["data"]["exit_status"] == -signal.SIGKILL


@pytest.mark.long
def test_up_twice_is_up_once_and_down_leaves_nothing_but_agents(fleet: RunningFleet) -> None:
    before = supervision.pids(fleet.fleet)
    assert "already up" in fleet.cli("up").stderr
    assert supervision.pids(fleet.fleet) == before
    done = fleet.cli("down")
    assert "agents go on in tmux: builder, reviewer" in done.stderr
    assert supervision.pids(fleet.fleet) == {}
    assert [line for line in processes_about(str(fleet.path.parent)) if "tmux" not in line] == []
    sessions = {pane.agent: pane.spawn for pane in fleet.tmux.look()}
    assert set(sessions) == {"builder", "reviewer"}
    fleet.up()
    wait_until(lambda: len(fleet.records()) == 2, "the registry")
    assert {pane.agent: pane.spawn for pane in fleet.tmux.look()} == sessions
    fleet.cli("down", "--agents")
    assert fleet.tmux.look() == []
    assert {record.status for record in fleet.records().values()} == {"stopped"}
    fleet.up()
    for agent in ("builder", "reviewer"):
        fleet.wait_for_status(agent, "running")


def test_an_agent_stopped_by_a_person_stays_down_over_restarts(fleet: RunningFleet) -> None:
    fleet.cli("stop", "reviewer")
    fleet.cli("down")
    fleet.up()
    fleet.wait_for_status("builder", "running")
    fleet.cli("restart", "builder")  # the spawner has had its turn at everything by now
    assert fleet.pane("reviewer") is None
    assert fleet.cli("spawn", "reviewer").stdout == "reviewer was started\n"


@pytest.mark.long
def test_orphans_of_a_killed_supervisor_are_ended(fleet: RunningFleet) -> None:
    fleet.signal("supervisor", signal.SIGKILL)
    wait_until(lambda: "supervisor" not in supervision.pids(fleet.fleet), "no supervisor")
    assert set(supervision.pids(fleet.fleet)) == {"broker", *fleet.fleet.services}
    done = fleet.cli("up")
    assert "left behind" in done.stderr
    assert set(supervision.pids(fleet.fleet)) == {"supervisor", "broker", *fleet.fleet.services}


def test_what_dies_is_started_again(fleet: RunningFleet) -> None:
    for program in ("spawner", "reconciler", "registrar", "broker"):
        dead = fleet.signal(program, signal.SIGKILL)
        wait_until(lambda p=program, d=dead: supervision.pids(fleet.fleet).get(p, d) != d, f"a new {program}")  # type: ignore[misc]
    wait_until(lambda: fleet.cli("status", code=None).returncode == 0, "everybody is back")


def test_status_and_doctor_are_readable_by_machines(fleet: RunningFleet) -> None:
    status = json.loads(fleet.cli("status", "--json").stdout)
    assert status["broker"] == "up"
    assert status["agents"]["builder"]["status"] == "running"
    findings = json.loads(fleet.cli("doctor", "--json").stdout)
    assert {finding["check"] for finding in findings} >= {"tmux", "broker", "bus", "journal", "files", "spawner"}
    assert all(finding["ok"] for finding in findings)


def test_doctor_says_what_is_wrong_and_how_to_mend_it(fleet: RunningFleet) -> None:
    fleet.cli("down")
    (fleet.fleet.home / "credentials").chmod(0o644)
    done = fleet.cli("doctor", code=1)
    assert "chmod go-rwx" in done.stdout
    assert "-> muster up" in done.stdout


def test_events_follow_the_bus_and_the_journal(fleet: RunningFleet) -> None:
    with fleet.broker_down():
        options = ["--since", "1h", "--json", "--seconds", "8"]
        follower = subprocess.Popen(
            [sys.executable, "-P", "-m", "services.cli", "--fleet", str(fleet.path), "events", *options],
            stdout=subprocess.PIPE,
            text=True,
        )
        old = fleet.kill_session("builder")
        fleet.wait_for_new_session("builder", after=old)
    out, _ = follower.communicate(timeout=60)
    kinds = [json.loads(line)["data"].get("kind") for line in out.splitlines()]
    # Its own files tell who it is when they do, and what it does is another story.
    lives = [kind for kind in kinds if kind and kind not in ("identified", "status_changed", "heartbeat")]
    assert lives == ["spawned", "spawned", "missing", "restarted"]


def test_an_edit_is_taken_up_while_everything_runs(fleet: RunningFleet) -> None:
    declared = json.loads(fleet.path.read_text())
    declared["agents"]["tester"] = {"prompt": "test"}
    fleet.path.write_text(json.dumps(declared))
    assert fleet.wait_for_status("tester", "running").backend == "demo"


def test_a_broken_edit_of_the_fleet_file_is_told_and_the_last_good_one_stays(fleet: RunningFleet) -> None:
    good = fleet.path.read_text()
    fleet.path.write_text("agents: {builder: {backnd: demo}}\n")
    fleet.command("restart", '{"agent": "reviewer"}')  # a turn, for there is no broker-side notice of an edit
    reason = wait_until(
        lambda: json.loads(_status_of(fleet, "spawner")).get("reason"), "the spawner's complaint in its state"
    )
    assert "line 1: agents.builder.backnd: unknown key; did you mean 'backend'?" in reason
    fleet.path.write_text(good)
    assert fleet.cli("restart", "reviewer", "--fresh").stdout == "reviewer was restarted\n"


def _status_of(fleet: RunningFleet, service: str) -> str:
    client = fleet.client("viewer")
    client.subscribe(f"muster/box/service/{service}/state")
    data = json.loads(client.wait_for(f"muster/box/service/{service}/state").payload)["data"]
    return json.dumps(data)
