"""The private broker as a process: where it listens, what survives its end, and that there is only one."""

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import paho.mqtt.client as paho
import psutil
import pytest
from paho.mqtt.enums import CallbackAPIVersion

from services.broker.__main__ import ALREADY_RUNS, lock_file
from shared.contract.topics import Space
from shared.messaging.broker import BrokerKind, credentials
from shared.messaging.broker.endpoints import saved_endpoint
from shared.system import lock
from tests.fixtures.broker import PrivateBroker, wait_until

SPACE = Space("box")
COMMANDS = "muster/box/command/+"
STATE = "muster/box/agent/builder/state"

pytestmark = pytest.mark.real_broker_down
mosquitto_only = pytest.mark.parametrize("broker", [BrokerKind.MOSQUITTO], indirect=True)


@pytest.fixture(params=BrokerKind)
def broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[PrivateBroker]:
    made = PrivateBroker(tmp_path / "a fleet" / ".muster", SPACE, request.param)
    try:
        made.start()
        yield made
    finally:
        made.close()


def process_of(broker: PrivateBroker) -> psutil.Process:
    assert broker.process is not None
    return psutil.Process(broker.process.pid)


def test_it_listens_on_loopback_only(broker: PrivateBroker) -> None:
    found = saved_endpoint(broker.home)
    assert found is not None
    listening = [c.laddr for c in process_of(broker).net_connections("inet") if c.status == psutil.CONN_LISTEN]
    assert {address.ip for address in listening} == {"127.0.0.1"}
    assert {found.port, found.websocket_port} <= {address.port for address in listening}


def test_only_the_broker_itself_is_left_of_the_start(broker: PrivateBroker) -> None:
    process = process_of(broker)
    assert broker.kind in Path(process.exe()).name
    assert process.children() == []


def test_its_own_files_are_private_too(broker: PrivateBroker) -> None:
    broker.client("registrar").publish(STATE, b"here", retain=True)
    broker.stop()
    loose = [path for path in broker.home.rglob("*") if path.stat().st_mode & 0o077]
    assert loose == []
    assert [path for path in (broker.home / "broker").rglob("*") if path.is_file() and path.stat().st_size]


def test_a_page_may_connect_by_websockets(broker: PrivateBroker) -> None:
    found = saved_endpoint(broker.home)
    assert found is not None
    client = paho.Client(CallbackAPIVersion.VERSION2, transport="websockets")
    client.ws_set_options(path="/mqtt")
    client.username_pw_set(*credentials(broker.home, "viewer"))
    client.connect("127.0.0.1", found.websocket_port)
    client.loop_start()
    try:
        wait_until(client.is_connected, "CONNACK by websockets")
    finally:
        client.disconnect()
        client.loop_stop()


def test_a_second_copy_refuses(broker: PrivateBroker) -> None:
    assert broker.process is not None
    second = subprocess.run(
        broker.command(), env=broker.environment(), capture_output=True, text=True, timeout=30, check=False
    )
    assert second.returncode == ALREADY_RUNS
    assert second.stderr == f"another broker (pid {broker.process.pid}) already runs for this fleet\n"
    assert lock.holder(lock_file(broker.home)) == broker.process.pid
    assert broker.client("viewer").connected, "the first one is left alone"


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL])
def test_the_lock_ends_with_the_broker_and_it_comes_back_where_it_was(
    broker: PrivateBroker, end: signal.Signals
) -> None:
    before, secret = broker.endpoint, credentials(broker.home, "spawner")
    if end is signal.SIGKILL:
        broker.kill()
    else:
        broker.stop()
    assert lock.holder(lock_file(broker.home)) is None
    broker.start()
    assert (broker.endpoint, credentials(broker.home, "spawner")) == (before, secret)


def test_a_stranger_on_its_port_makes_it_move(broker: PrivateBroker, tmp_path: Path) -> None:
    before = broker.endpoint
    broker.stop()
    stranger = PrivateBroker(tmp_path / "stranger" / ".muster", SPACE, broker.kind)
    try:
        stranger.start("--port", str(before.port))
        broker.start()
        assert broker.endpoint != before
        assert broker.client("operator").connected
    finally:
        stranger.close()


def test_states_and_sessions_survive_an_orderly_stop(broker: PrivateBroker) -> None:
    broker.client("spawner", "spawner-box").subscribe(COMMANDS)
    broker.client("registrar").publish(STATE, b"here", retain=True)
    broker.stop()
    broker.start()
    viewer = broker.client("viewer")
    viewer.subscribe("muster/#")
    assert viewer.wait_for(STATE, b"here").retain
    broker.client("operator").publish("muster/box/command/stop", b"{}")
    broker.client("spawner", "spawner-box").wait_for("muster/box/command/stop")


@mosquitto_only
def test_mosquitto_keeps_a_state_that_it_saved_before_a_kill(broker: PrivateBroker) -> None:
    broker.client("registrar").publish(STATE, b"here", retain=True)
    saved = broker.home / "broker" / "data" / "mosquitto.db"
    wait_until(lambda: saved.exists() and b"here" in saved.read_bytes(), "the autosave")
    broker.kill()
    broker.start()
    viewer = broker.client("viewer")
    viewer.subscribe("muster/#")
    assert viewer.wait_for(STATE, b"here").retain


@pytest.mark.parametrize("broker", [BrokerKind.NATS], indirect=True)
def test_nats_keeps_what_it_acknowledged_before_a_kill(broker: PrivateBroker) -> None:
    broker.client("spawner", "spawner-box").subscribe(COMMANDS)
    broker.client("spawner", "spawner-box").close()
    broker.client("registrar").publish(STATE, b"here", retain=True)
    broker.client("operator").publish("muster/box/command/stop", b"{}")
    broker.kill()
    broker.start()
    broker.client("spawner", "spawner-box").wait_for("muster/box/command/stop")
    viewer = broker.client("viewer")
    viewer.subscribe("muster/#")
    assert viewer.wait_for(STATE, b"here").retain


@pytest.mark.parametrize(
    ("broker", "kept_too"), [(BrokerKind.MOSQUITTO, True), (BrokerKind.NATS, False)], indirect=["broker"]
)
def test_a_command_typed_by_hand_waits_for_its_owner_on_mosquitto(broker: PrivateBroker, kept_too: bool) -> None:
    spawner = broker.client("spawner", "spawner-box")
    spawner.subscribe(COMMANDS)
    spawner.close()
    operator = broker.client("operator")
    operator.publish("muster/box/command/typed", b"{}", qos=0)
    operator.publish("muster/box/command/asked", b"{}", qos=1)
    back = broker.client("spawner", "spawner-box")
    back.wait_for("muster/box/command/asked")
    found = [(message.topic.rpartition("/")[2], message.qos) for message in back.received]
    assert found == ([("typed", 1)] if kept_too else []) + [("asked", 1)]


def test_what_its_owner_did_not_acknowledge_comes_again(broker: PrivateBroker) -> None:
    dying = broker.client("spawner", "spawner-box", manual_ack=True)
    dying.subscribe(COMMANDS)
    broker.client("operator").publish("muster/box/command/stop", b"{}")
    dying.wait_for("muster/box/command/stop")
    dying.vanish()
    # At once from mosquitto; from NATS only when the acknowledgement is overdue.
    assert broker.client("spawner", "spawner-box").wait_for("muster/box/command/stop").dup


def test_more_waits_for_an_absent_service_than_mosquitto_keeps_by_default(broker: PrivateBroker) -> None:
    spawner = broker.client("spawner", "spawner-box")
    spawner.subscribe("muster/+/agent/+/drift")
    spawner.close()
    reconciler = broker.client("reconciler")
    sent = [str(number).encode() for number in range(2500)]
    reconciler.publish_all("muster/box/agent/builder/drift", sent)
    back = broker.client("spawner", "spawner-box")
    wait_until(lambda: len(back.received) >= len(sent), "all that waited")
    assert back.payloads() == sent


def test_a_wiped_broker_knows_nothing_but_its_users(broker: PrivateBroker) -> None:
    broker.client("registrar").publish(STATE, b"here", retain=True)
    broker.stop()
    broker.wipe()
    broker.start()
    viewer = broker.client("viewer")
    viewer.subscribe("muster/#")
    broker.client("registrar").publish("muster/box/agent/other/state", b"new", retain=True)
    viewer.wait_for("muster/box/agent/other/state")
    assert viewer.payloads(STATE) == []


def test_a_paused_broker_is_silent_and_goes_on_when_resumed(broker: PrivateBroker) -> None:
    viewer, operator = broker.client("viewer"), broker.client("operator")
    viewer.subscribe("muster/#")
    broker.pause()
    wait_until(lambda: process_of(broker).status() == psutil.STATUS_STOPPED, "the pause")
    paused_at = time.monotonic()
    with pytest.raises(AssertionError, match="PUBACK"):
        operator.publish("muster/box/command/stop", b"{}", within_s=0.3)
    assert time.monotonic() - paused_at >= 0.3
    broker.resume()
    viewer.wait_for("muster/box/command/stop")


def test_bad_settings_end_with_a_sentence(tmp_path: Path) -> None:
    broker = PrivateBroker(tmp_path, Space("two words"))
    done = subprocess.run(broker.command(), env=broker.environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "can't be the start of a topic" in done.stderr
    assert "Traceback" not in done.stderr
