"""The broker dies, hangs, or loses its disk: the fleet goes on, and on its return everything is told."""

import json
import shutil
import signal
import subprocess
import sys
import time

import pytest

from services.cli.broker import connection
from shared.messaging.journal import Journal
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet


def test_the_fleet_goes_on_without_a_broker(fleet: RunningFleet) -> None:
    watcher = fleet.watch("muster/box/agent/#")
    with fleet.broker_down():
        old = fleet.kill_session("builder")
        fleet.wait_for_new_session("builder", after=old)
        fleet.wait_for_status("builder", "running")
        said = fleet.cli("status", code=3)
        assert "the broker is down" in said.stdout
        stopped = fleet.cli("stop", "reviewer")
        assert stopped.stdout == "reviewer was stopped\n"
        assert "the broker is down" in stopped.stderr
        assert fleet.pane("reviewer") is None
        fleet.wait_for_status("reviewer", "stopped")
        refused = fleet.cli("restart", "nobody", "--json", code=1)
        assert json.loads(refused.stdout)["code"] == "unknown_agent"
    wait_until(lambda: "restarted" in watcher.kinds("builder/lifecycle"), "the restart at the subscriber")
    wait_until(lambda: "stopped" in watcher.kinds("reviewer/lifecycle"), "the stop at the subscriber")
    wait_until(lambda: watcher.drifts("builder") == ["missing"], "the drift at the subscriber")
    # What was told shortly before the broker died is told again, for it may have been swallowed.
    assert watcher.kinds("builder/lifecycle")[-1:] == ["restarted"]
    assert watcher.documents("agent/reviewer/state")[-1]["data"]["status"] == "stopped"
    assert fleet.cli("status").returncode == 0


@pytest.mark.long
def test_a_hanging_broker_is_worked_around(fleet: RunningFleet) -> None:
    watcher = fleet.watch("muster/box/agent/#")
    began = time.monotonic()
    fleet.signal("broker", signal.SIGSTOP)
    try:
        old = fleet.kill_session("builder")
        fleet.wait_for_new_session("builder", after=old)
        fleet.wait_for_status("builder", "running", within_s=25)
        assert fleet.cli("stop", "reviewer").stdout == "reviewer was stopped\n"
        # The hang is long enough for keepalives to run out and for every connection to be given up.
        wait_until(lambda: time.monotonic() - began > 30, "half a minute of silence", 40)
    finally:
        fleet.signal("broker", signal.SIGCONT)
    wait_until(lambda: "stopped" in watcher.kinds("reviewer/lifecycle"), "the stop at the subscriber", 30)
    wait_until(lambda: watcher.kinds("builder/lifecycle")[-1:] == ["restarted"], "the restart at the subscriber")
    wait_until(lambda: watcher.drifts("builder") == ["missing"], "the drift at the subscriber")
    wait_until(lambda: fleet.cli("status", code=None).returncode == 0, "everybody is back")


def test_a_command_outlives_its_sender_and_the_broker(fleet: RunningFleet) -> None:
    """Both end when the broker has it and its owner has not."""
    operator = fleet.client("operator")
    operator.subscribe("muster/box/command/+")
    fleet.signal("supervisor", signal.SIGSTOP)
    fleet.signal("spawner", signal.SIGKILL)
    sender = subprocess.Popen(
        [sys.executable, "-P", "-m", "services.cli", "--fleet", str(fleet.path), "stop", "builder"]
    )
    operator.wait_for("muster/box/command/stop")
    sender.kill()
    sender.wait()
    with fleet.broker_down():
        shutil.rmtree(fleet.fleet.home / "broker" / "data")
    fleet.wait_for_status("builder", "stopped")
    assert [told["kind"] for told in fleet.told("spawner") if told["agent"] == "builder"][-2:] == ["spawned", "stopped"]


def test_a_later_stop_beats_a_spawn_that_a_frozen_broker_held(fleet: RunningFleet) -> None:
    """One in the broker's socket, one whose sender could not even connect."""
    agents = ("builder", "reviewer")
    connected = fleet.client("operator")
    connected.subscribe("muster/box/reply/+")
    fleet.signal("broker", signal.SIGSTOP)
    try:
        connected.send("muster/box/command/spawn", b'{"agent": "reviewer", "id": "held-reviewer"}')
        words = [*connection(fleet.fleet, "operator").split(), "-q", "1", "-t", "muster/box/command/spawn"]
        held = subprocess.Popen(["mosquitto_pub", *words, "-m", '{"agent": "builder", "id": "held-builder"}'])
        for agent in agents:
            assert fleet.cli("stop", agent).stdout == f"{agent} was stopped\n"
    finally:
        fleet.signal("broker", signal.SIGCONT)
    assert held.wait(30) == 0
    journal = Journal(fleet.fleet.journal, "spawner")
    for agent in agents:
        answer = wait_until(lambda a=agent: journal.requests.answer_to(f"held-{a}"), f"a reply about {agent}")  # type: ignore[misc]
        reply = json.loads(answer)
        assert (reply["code"], fleet.pane(agent)) == ("outdated", None), reply
    journal.close()
    for agent in agents:
        fleet.wait_for_status(agent, "stopped")
        assert fleet.cli("spawn", agent).stdout == f"{agent} was started\n"


def test_a_broker_that_lost_its_disk_learns_everything_again(fleet: RunningFleet) -> None:
    fleet.cli("stop", "reviewer")
    fleet.wait_for_status("reviewer", "stopped")
    with fleet.broker_down():
        shutil.rmtree(fleet.fleet.home / "broker")
    watcher = fleet.watch()
    wanted = {f"muster/box/agent/{name}/state" for name in ("builder", "reviewer")}
    wanted |= {f"muster/box/service/{name}/state" for name in ("spawner", "reviewer", "registrar")} - {
        "muster/box/service/reviewer/state"
    }
    wait_until(lambda: wanted <= {m["topic"] for m in watcher.read()}, "the retained states are back")
    assert watcher.documents("agent/reviewer/state")[-1]["data"]["status"] == "stopped"


def test_a_subscriber_that_stays_over_down_and_up_misses_no_event(fleet: RunningFleet) -> None:
    """It returns a moment after the services, which had something to say at once."""
    watcher = fleet.watch("muster/box/agent/#")
    fleet.cli("down", "--agents")
    fleet.up()
    wait_until(lambda: watcher.kinds("builder/lifecycle")[-1:] == ["restarted"], "what was told after `up`")
    told = {each.seq for each in fleet.entries("spawner")}
    wait_until(lambda: told <= {each["seq"] for each in watcher.documents("/lifecycle")}, "every event of the spawner")


def test_a_state_of_an_agent_that_is_no_more_is_cleared(fleet: RunningFleet) -> None:
    """The registrar can't clear what it does not remember: it does so when the broker shows it on connect."""
    stranger = fleet.client("registrar")
    stranger.publish("muster/box/agent/ghost/state", b'{"old": true}', retain=True)
    viewer = fleet.client("viewer")
    viewer.subscribe("muster/box/agent/ghost/state")
    viewer.wait_for("muster/box/agent/ghost/state", b'{"old": true}')
    fleet.signal("registrar", signal.SIGKILL)
    viewer.wait_for("muster/box/agent/ghost/state", b"")


def test_a_command_sent_while_its_owner_restarts_is_carried_out(fleet: RunningFleet) -> None:
    operator = fleet.client("operator")
    operator.subscribe("muster/box/reply/+")
    fleet.signal("spawner", signal.SIGKILL)
    fleet.command("restart", '{"agent": "builder", "id": "meanwhile"}')
    reply = json.loads(operator.wait_for("muster/box/reply/meanwhile").payload)
    assert reply["said"].startswith("builder was restarted")


def test_a_command_that_waited_too_long_is_answered_expired(fleet: RunningFleet) -> None:
    operator = fleet.client("operator")
    operator.subscribe("muster/box/reply/+")
    before = fleet.spawn_of("builder")
    fleet.signal("supervisor", signal.SIGSTOP)
    fleet.signal("spawner", signal.SIGKILL)
    journal = Journal(fleet.fleet.journal, "spawner")
    journal.note_listened(time.time() - 7200)  # as if the spawner had been away for two hours
    journal.close()
    fleet.command("restart", '{"agent": "builder", "id": "stale"}')
    fleet.signal("supervisor", signal.SIGCONT)
    reply = json.loads(operator.wait_for("muster/box/reply/stale").payload)
    assert (reply["ok"], reply["code"]) == (False, "expired")
    assert fleet.spawn_of("builder") == before
    fleet.command("restart", '{"agent": "builder", "id": "fresh"}')
    assert json.loads(operator.wait_for("muster/box/reply/fresh").payload)["ok"]
