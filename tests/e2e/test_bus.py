"""What a stranger with `mosquitto_sub` and `mosquitto_pub` sees and can do."""

import json
import signal
import subprocess
import sys

import pytest

from shared.contract.commands import MAX_PAYLOAD
from shared.contract.services import SERVICES
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet


@pytest.fixture
def fleet(renewed_fleet: RunningFleet) -> RunningFleet:
    return renewed_fleet


def test_whoever_connects_late_sees_every_service_and_agent(shared_fleet: RunningFleet) -> None:
    watcher = shared_fleet.watch()
    wanted = {f"muster/box/service/{name}/state" for name in shared_fleet.fleet.services}
    wanted |= {f"muster/box/{kind}/{name}/state" for kind in ("agent", "board") for name in ("builder", "reviewer")}
    wait_until(lambda: {m["topic"] for m in watcher.read() if m["retain"]} == wanted, "all retained states")
    agent = watcher.documents("agent/builder/state")[-1]
    assert agent["data"]["status"] == "running"
    assert agent["specversion"] == "1.0"
    assert agent["source"] == "/box/registrar"
    assert {doc["data"]["status"] for doc in watcher.documents("service/spawner/state")} == {"online"}


def test_a_viewer_can_not_command(shared_fleet: RunningFleet) -> None:
    viewer, operator = shared_fleet.client("viewer"), shared_fleet.client("operator")
    operator.subscribe("muster/box/reply/+")
    viewer.publish("muster/box/command/stop", b'{"agent": "builder", "id": "from-viewer"}')
    operator.publish("muster/box/command/stop", b'{"agent": "nobody", "id": "from-operator"}')
    operator.wait_for("muster/box/reply/from-operator")
    assert operator.payloads("muster/box/reply/from-viewer") == []
    assert shared_fleet.pane("builder") is not None


def test_an_operator_is_answered_and_obeyed(fleet: RunningFleet) -> None:
    operator = fleet.client("operator")
    operator.subscribe("muster/box/reply/+")
    fleet.command("stop", '{"agent": "builder", "id": "stop-1"}')
    reply = json.loads(operator.wait_for("muster/box/reply/stop-1").payload)
    assert (reply["ok"], reply["said"]) == (True, "builder was stopped")
    assert fleet.pane("builder") is None
    fleet.wait_for_status("builder", "stopped")


def test_the_same_command_id_acts_once_and_is_answered_again(fleet: RunningFleet) -> None:
    operator = fleet.client("operator")
    operator.subscribe("muster/box/reply/+")
    for _ in range(2):  # at once: they may be answered together
        fleet.command("restart", '{"agent": "builder", "id": "again"}')
    wait_until(lambda: operator.payloads("muster/box/reply/again"), "a reply")
    fleet.command("stop", '{"agent": "nobody", "id": "all-before-it-are-answered"}')
    operator.wait_for("muster/box/reply/all-before-it-are-answered")
    answered = len(operator.payloads("muster/box/reply/again"))
    fleet.command("restart", '{"agent": "builder", "id": "again"}')
    wait_until(lambda: len(operator.payloads("muster/box/reply/again")) > answered, "the same reply again")
    (said,) = set(operator.payloads("muster/box/reply/again"))
    assert fleet.spawn_of("builder") == json.loads(said)["result"]["spawn"]


BAD = [
    ("spawn", b'{"agent":', "malformed", "not JSON"),
    ("spawn", b'["builder"]', "malformed", "not an object"),
    ("dance", b'{"agent": "builder"}', "unknown_verb", "there is no verb 'dance'"),
    ("stop", b'{"agent": "nobody"}', "unknown_agent", "there is no agent 'nobody'"),
    ("stop", b'{"agent": 5}', "malformed", "valid string"),
    ("stop", b'{"agent": "builder", "forse": true}', "malformed", "'forse'"),
    ("stop", b'{"agent": "../../etc"}', "malformed", "agent"),
    ("stop", b'{"agent": "builder", "pad": "' + b"x" * 1_000_000 + b'"}', "malformed", f"at most {MAX_PAYLOAD}"),
    ("stop", b'\xff\xfe{"agent": "builder"}', "malformed", "not UTF-8"),
    ("replay", b'{"service": "nobody", "after": 0}', "unknown_service", "there is no service 'nobody'"),
]


def test_every_bad_command_gets_a_sentence_and_harms_nothing(shared_fleet: RunningFleet) -> None:
    operator = shared_fleet.client("operator")
    operator.subscribe("muster/box/reply/+")
    before = {agent: shared_fleet.spawn_of(agent) for agent in ("builder", "reviewer")}
    for verb, payload, code, words in BAD:
        seen = len(operator.received)
        shared_fleet.command(verb, payload)
        wait_until(lambda n=seen: len(operator.received) > n, f"a reply to {payload[:60]!r}")  # type: ignore[misc]
        reply = json.loads(operator.received[-1].payload)
        assert (reply["ok"], reply["code"]) == (False, code)
        assert words in reply["said"]
    assert {agent: shared_fleet.spawn_of(agent) for agent in before} == before
    assert shared_fleet.cli("status").returncode == 0


def test_a_retained_command_does_not_stay_to_fire_again(fleet: RunningFleet) -> None:
    operator = fleet.client("operator")
    operator.subscribe("muster/box/reply/+")
    operator.publish("muster/box/command/restart", b'{"agent": "builder", "id": "kept"}', retain=True)
    replies = wait_until(
        lambda: [p for p in operator.payloads("muster/box/reply/kept") if b'"retained"' in p], "a refusal of the copy"
    )
    assert "without -r" in json.loads(replies[0])["said"]
    fresh = fleet.client("operator")
    fresh.subscribe("muster/box/command/+")
    fresh.publish("muster/box/command/stop", b'{"agent": "nobody"}')
    fresh.wait_for("muster/box/command/stop")
    assert fresh.payloads("muster/box/command/restart") == []


def test_a_dead_service_is_seen_by_its_will_and_returns(fleet: RunningFleet) -> None:
    watcher = fleet.watch("muster/box/service/registrar/state")
    dead = fleet.signal("registrar", signal.SIGKILL)
    wait_until(lambda: [d for d in watcher.documents("state") if d["data"]["status"] == "offline"], "the will", 5)
    back = wait_until(
        lambda: [d for d in watcher.documents("state") if d["data"]["pid"] not in (dead, None)], "a new registrar"
    )
    assert back[-1]["data"]["status"] == "online"
    assert back[-1]["data"]["connection"] > watcher.documents("state")[0]["data"]["connection"]


def test_replay_publishes_the_past_again(shared_fleet: RunningFleet) -> None:
    operator = shared_fleet.client("operator")
    operator.subscribe("muster/box/agent/+/lifecycle")
    shared_fleet.command("replay", '{"service": "spawner", "after": 0}')
    wait_until(lambda: len(operator.received) >= 2, "both agents' beginnings")
    assert [json.loads(p)["seq"] for p in operator.payloads()][:2] == [1, 2]


@pytest.mark.parametrize("program", [*SERVICES, "broker"])
def test_a_second_copy_refuses(shared_fleet: RunningFleet, program: str) -> None:
    fleet_or_home = ["--fleet", str(shared_fleet.path)]
    if program == "broker":
        fleet_or_home = ["--home", str(shared_fleet.fleet.home), "--host", "box"]
    done = subprocess.run(
        [sys.executable, "-P", "-m", f"services.{program}", *fleet_or_home],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 75
    assert f"another {program} (pid {shared_fleet.pid(program)}) already runs for this fleet" in done.stderr
