"""Who may do what on a real broker: the same matrix on mosquitto and on the NATS server."""

from collections.abc import Iterator

import pytest

from shared.contract.services import PEOPLE, SERVICES
from shared.contract.topics import DEFAULT_OWNER, Space
from shared.messaging.broker import BrokerKind, credentials
from tests.fixtures.broker import Broker, Client, running_broker

SPACE = Space("box")
WRITES = [
    # topic, who may
    ("muster/box/command/stop", {DEFAULT_OWNER, "operator", "registrar", "monitor", "handoff", "board"}),
    ("muster/box/command/comment", {DEFAULT_OWNER, "operator"}),
    ("muster/box/command/phase_set", {DEFAULT_OWNER, "operator"}),
    ("muster/box/command/park", {DEFAULT_OWNER, "operator", "monitor"}),
    ("muster/box/command/replay", {*SERVICES, "operator"}),
    ("muster/other/command/stop", set()),
    ("muster/other/command/replay", set(SERVICES)),
    ("muster/box/agent/a_b-1/lifecycle", {"spawner"}),
    ("muster/box/agent/a_b-1/drift", {"reconciler"}),
    ("muster/box/agent/a_b-1/state", {"registrar"}),
    ("muster/box/loop/a_b-1/event", {"handoff"}),
    ("muster/box/board/a_b-1/comment", {"board"}),
    ("muster/box/board/a_b-1/state", {"board"}),
    ("muster/box/board/heartbeat", {"board"}),
    ("muster/box/service/spawner/state", {"spawner"}),
    ("muster/box/service/registrar/state", {"registrar"}),
    ("muster/box/reply/c1", set(SERVICES)),
    ("muster/other/agent/a/lifecycle", set()),
    ("muster/other/service/spawner/state", set()),
    ("muster/other/reply/c1", set()),
    ("muster/box/command/stop/more", set()),
    ("muster/box/command/adopt", {"operator", "spawner", "reconciler"}),
    ("muster/box/unknown", set()),
    ("other/box/command/stop", set()),
]


@pytest.fixture(scope="module", params=BrokerKind)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with running_broker(tmp_path_factory.mktemp("rights") / ".muster", SPACE, request.param) as running:
        yield running


@pytest.mark.parametrize("topic", ["$MQTT/sub/#", "$MQTT/#", "$JS/#", "$SYS/#", "#", "other/#"])
def test_nobody_reads_outside_the_prefix(broker: Broker, witness: Client, topic: str) -> None:
    peeping = broker.client("viewer")
    peeping.subscribe(topic)
    broker.client("registrar").publish("muster/box/agent/seen/state", b"seen")
    witness.wait_for("muster/box/agent/seen/state", b"seen")
    peeping.subscribe("muster/box/agent/last/state")
    broker.client("registrar").publish("muster/box/agent/last/state", b"last")
    peeping.wait_for("muster/box/agent/last/state")
    assert {m.topic for m in peeping.received if not m.topic.startswith("muster/")} == set()


@pytest.fixture
def witness(broker: Broker) -> Iterator[Client]:
    """Reads all, and hears what others got through."""
    client = broker.client("viewer")
    client.subscribe("muster/#")
    yield client
    client.close()


@pytest.mark.parametrize("role", [*SERVICES, *PEOPLE])
def test_each_role_writes_what_it_may_and_nothing_else(broker: Broker, witness: Client, role: str) -> None:
    writer = broker.client(role)
    mark = f"by-{role}".encode()
    for topic, _ in WRITES:
        writer.publish(topic, mark)
    # Every message above was acknowledged, so judged; what passed is delivered before this one.
    last = "muster/box/command/last"
    broker.client("operator").publish(last, mark)
    witness.wait_for(last, mark)
    allowed = [topic for topic, who in WRITES if role in who]
    heard = wait_for_all(witness, allowed, mark)
    assert heard == set(allowed)


def wait_for_all(witness: Client, topics: list[str], mark: bytes) -> set[str]:
    for topic in topics:
        witness.wait_for(topic, mark)
    return {message.topic for message in witness.received if message.payload == mark} - {"muster/box/command/last"}


def test_nobody_comes_in_without_a_name(broker: Broker) -> None:
    assert broker.client(None).refused


def test_nobody_comes_in_with_another_roles_password(broker: Broker) -> None:
    assert broker.client("operator", password=credentials(broker.home, "viewer")[1]).refused


def test_a_viewer_reads_retained_state_of_every_agent(broker: Broker) -> None:
    registrar = broker.client("registrar")
    for agent in ("one", "two"):
        registrar.publish(f"muster/box/agent/{agent}/state", agent.encode(), retain=True)
    viewer = broker.client("viewer")
    viewer.subscribe("muster/+/agent/+/state")
    for agent in ("one", "two"):
        assert viewer.wait_for(f"muster/box/agent/{agent}/state", agent.encode()).retain


def test_a_cleared_state_is_told_and_forgotten(broker: Broker, witness: Client) -> None:
    registrar = broker.client("registrar")
    topic = "muster/box/agent/gone/state"
    registrar.publish(topic, b"here", retain=True)
    registrar.publish(topic, b"", retain=True)
    witness.wait_for(topic, b"")
    later = broker.client("viewer")
    later.subscribe("muster/#")
    registrar.publish("muster/box/agent/kept/state", b"kept", retain=True)
    later.wait_for("muster/box/agent/kept/state")
    assert later.payloads(topic) == []


def test_a_will_is_told_when_its_owner_vanishes(broker: Broker, witness: Client) -> None:
    topic = "muster/box/service/spawner/state"
    will = {"topic": topic, "payload": b"offline", "qos": 1, "retain": True}
    broker.client("spawner", will=will).vanish()
    witness.wait_for(topic, b"offline")


def test_a_will_needs_the_right_to_write(broker: Broker, witness: Client) -> None:
    topic = "muster/box/service/registrar/state"
    forged = {"topic": topic, "payload": b"forged", "qos": 1, "retain": True}
    broker.client("spawner", will=forged).vanish()
    honest = {"topic": "muster/box/service/spawner/state", "payload": b"after", "qos": 1, "retain": True}
    broker.client("spawner", will=honest).vanish()
    witness.wait_for("muster/box/service/spawner/state", b"after")
    assert b"forged" not in witness.payloads(topic)


def test_a_payload_too_large_for_services_still_reaches_them(broker: Broker, witness: Client) -> None:
    payload = b"x" * 1024 * 1024
    broker.client("operator").publish("muster/box/command/large", payload)
    assert witness.wait_for("muster/box/command/large").payload == payload
