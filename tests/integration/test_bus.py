"""The connection itself, against real brokers: failover, a broken network thread, silence, another host's gap."""

import contextlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from shared.contract.events.lifecycle import AgentStopped
from shared.contract.services import entry_of
from shared.contract.topics import Space
from shared.contract.writer import DocumentWriter
from shared.fleet import Fleet, load_fleet
from shared.messaging.broker import Endpoint, credentials, ensure_credentials
from shared.messaging.bus import Bus, ClientIdentity
from shared.messaging.inbox import Connected, Disconnected, Inbox, Item, MessageAcknowledged, MessageArrived
from shared.messaging.journal import Journal
from shared.runtime.bootstrap import connect
from shared.runtime.loop import ServiceLoop
from shared.runtime.poll_timer import PollIntervals
from shared.system.log import Log
from tests.fixtures.broker import Broker, running_broker, wait_until
from tests.fixtures.talk import Counter, Talker

SPACE = Space("box")


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with running_broker(tmp_path / "home", SPACE) as broker:
        yield broker


class Client:
    """A bus and its inbox, with what came kept in order."""

    def __init__(self, home: Path, endpoints: Callable[[], Sequence[Endpoint]], inbox: Inbox | None = None) -> None:
        self.inbox = inbox or Inbox()
        self.items: list[Item] = []
        numbers = iter(range(1, 1_000))
        self.bus = Bus(
            lambda: ClientIdentity("test-client", *credentials(home, "operator")),
            endpoints,
            self.inbox,
            next_connection=lambda: next(numbers),
            log=Log("test"),
        )

    def take(self, kind: type[Item]) -> list[Item]:
        for item in self.inbox.take(time.monotonic()):
            if isinstance(item, Connected):
                self.bus.note_connected(item)
            elif isinstance(item, MessageAcknowledged):
                self.bus.note_acknowledged(item)
            self.items.append(item)
        return [item for item in self.items if isinstance(item, kind)]


@contextlib.contextmanager
def started(client: Client) -> Iterator[Client]:
    client.bus.start()
    try:
        wait_until(lambda: client.take(Connected), "a first connection")
        yield client
    finally:
        client.bus.stop()


def test_when_one_endpoint_dies_the_next_is_used(tmp_path: Path) -> None:
    homes = [tmp_path / "first", tmp_path / "second"]
    for home in homes:
        home.mkdir(mode=0o700)
    ensure_credentials(homes[0])
    shutil.copy(homes[0] / "credentials", homes[1] / "credentials")
    with running_broker(homes[0], SPACE) as first, running_broker(homes[1], SPACE) as second:
        listener = second.client("viewer")
        listener.subscribe("muster/#")
        client = Client(homes[0], lambda: [first.endpoint, second.endpoint])
        with started(client):
            first.kill()
            wait_until(lambda: len(client.take(Connected)) == 2, "a second connection")
            assert client.take(Disconnected)
            client.bus.publish("muster/box/command/stop", b"{}")
            listener.wait_for("muster/box/command/stop", b"{}")
            first.start()


def test_tries_that_fail_take_no_number(broker: Broker) -> None:
    """Each number is written to the journal's disk, and a broker may be down for hours."""
    broker.kill()
    tried: list[Endpoint] = []

    def endpoints() -> list[Endpoint]:
        tried.append(broker.endpoint)
        return tried[-1:]

    client = Client(broker.home, endpoints)
    client.bus.start()
    wait_until(lambda: len(tried) > 3, "some tries")
    broker.start()
    connected = wait_until(lambda: client.take(Connected), "a connection")[0]
    client.bus.stop()
    assert isinstance(connected, Connected)
    assert connected.connection == 1


def test_a_network_thread_that_dies_is_replaced(broker: Broker) -> None:
    class Clumsy(Inbox):
        """Fails once, in paho's own thread, as a bug in a callback would."""

        failed = False

        def put(self, item: Item) -> None:
            if isinstance(item, MessageArrived) and not self.failed:
                self.failed = True
                raise ValueError("a bug in a callback")
            super().put(item)

    client = Client(broker.home, lambda: [broker.endpoint], Clumsy())
    client.bus.subscribe(["muster/box/command/stop"])
    with started(client):
        broker.client("operator").publish("muster/box/command/stop", b"{}")
        lost = wait_until(lambda: client.take(Disconnected), "the watchdog")
        assert isinstance(lost[0], Disconnected)
        assert "a bug in a callback" in lost[0].reason
        # What was not acknowledged comes again, to the next connection.
        assert wait_until(lambda: client.take(MessageArrived), "the message again")


def test_a_broker_that_hangs_counts_as_down(broker: Broker) -> None:
    client = Client(broker.home, lambda: [broker.endpoint])
    with started(client):
        assert client.bus.answers
        broker.pause()
        try:
            client.bus.publish("muster/box/command/stop", b"{}")
            wait_until(lambda: not client.bus.answers, "silence is noticed")
            assert client.bus.connected
        finally:
            broker.resume()


def test_a_broker_that_hung_before_it_was_killed_was_lost_when_it_hung(broker: Broker) -> None:
    """What it had acknowledged until then may not have been saved."""
    client = Client(broker.home, lambda: [broker.endpoint])
    with started(client):
        client.bus.publish("muster/box/command/stop", b"{}")
        wait_until(lambda: client.take(MessageAcknowledged), "an acknowledgement")
        hangs_since = time.monotonic()
        broker.pause()
        client.bus.publish("muster/box/command/stop", b"{}")
        wait_until(lambda: not client.bus.answers, "silence is noticed")
        broker.kill()
        lost = wait_until(lambda: client.take(Disconnected), "the end of the connection")[0]
        assert isinstance(lost, Disconnected)
        assert client.bus.note_disconnected(lost) < hangs_since < lost.at
        broker.start()


def test_a_gap_in_another_hosts_events_is_closed_by_asking_it(tmp_path: Path) -> None:
    """The reader's host uses the teller's broker, and missed some events; the teller sends them again."""
    with running_broker(tmp_path / "home", Space("far")) as broker:
        _close_a_gap(tmp_path, broker)


def _close_a_gap(tmp_path: Path, broker: Broker) -> None:
    far, near = _host(tmp_path, "far", broker), _host(tmp_path, "near", broker)
    with _loop(far, Talker(5, 5)) as there:
        _run_until(there, lambda: there[1].published() == 5)
        counter = Counter()
        with _loop(near, counter, everywhere=True) as here:
            _run_until(here, lambda: here[2].answers)
            teller = DocumentWriter(far.space, "spawner", there[1].epoch)
            # It joins at number 3, so number 5 leaves a gap.
            for seq in (3, 5):
                event = AgentStopped(agent="talker", reason=f"number {seq}")
                topic, payload = teller.event(event, seq=seq, time=datetime.now(UTC), cause=None)
                there[2].publish(topic, payload)
            _run_until(here, lambda: (here[1].memory().get("heard") or {}).get("count") == 3, there)
            assert here[1].memory()["heard"]["count"] == 3
            assert here[1].cursors()["/far/spawner", there[1].epoch] == 5
    assert json.loads(there[1].requests.answers_since(0)[0][1])["said"] == "publishing 2 events again"


Running = tuple[ServiceLoop, Journal, Bus]


def _host(tmp_path: Path, name: str, broker: Broker) -> Fleet:
    """A host of its own that uses the one broker."""
    directory = tmp_path / name
    (directory / ".muster").mkdir(parents=True, mode=0o700)
    shutil.copy(broker.home / "credentials", directory / ".muster" / "credentials")
    path = directory / "fleet.yaml"
    path.write_text(f"host: {name}\nbroker: {{endpoints: ['{broker.endpoint}']}}\n")
    return load_fleet(path)


@contextlib.contextmanager
def _loop(fleet: Fleet, service: Talker | Counter, *, everywhere: bool = False) -> Iterator[Running]:
    inbox, log = Inbox(), Log("test")
    journal = Journal(fleet.journal, service.name)
    bus = connect(fleet, service.name, inbox, log, will=DocumentWriter(fleet.space, service.name, journal.epoch))
    loop = ServiceLoop(
        service, entry_of(service.name), journal, bus, inbox, fleet.space, PollIntervals(connected_s=0.2), log
    )
    if everywhere:
        bus.subscribe(["muster/+/agent/+/lifecycle"])
    bus.start()
    try:
        yield loop, journal, bus
    finally:
        bus.stop()


def _run_until(running: Running, done: Callable[[], bool], *others: Running) -> None:
    def turn() -> bool:
        for loop, _, _ in (running, *others):
            loop.once()
        return done()

    wait_until(turn, "the loops get there")
