"""A broker that is killed, comes back and freezes for seconds: a subscriber that returns still gets every event."""

import contextlib
import json
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.fleet import Fleet, load_fleet
from shared.messaging.broker import BrokerKind, credentials
from shared.messaging.journal import Journal
from tests.fixtures.broker import PrivateBroker, wait_until
from tests.fixtures.talk_process import memory, process

EVENTS = 120
PAUSE_S = 0.1


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    path = tmp_path / "fleet.yaml"
    path.write_text("host: box\nagents: {}\n")
    return load_fleet(path)


@pytest.fixture
def broker(fleet: Fleet) -> Iterator[PrivateBroker]:
    broker = PrivateBroker(fleet.home, fleet.space, BrokerKind.MOSQUITTO)
    broker.start()
    try:
        yield broker
    finally:
        broker.close()


class Subscriber:
    """`mosquitto_sub` with a session, as a person or a script would run it."""

    def __init__(self, output: Path) -> None:
        self._output = output

    def numbers(self) -> set[int]:
        lines = self._output.read_text().splitlines()
        return {json.loads(line)["seq"] for line in lines if line.endswith("}")}


@contextlib.contextmanager
def subscribed(broker: PrivateBroker, output: Path) -> Iterator[Subscriber]:
    user, password = credentials(broker.home, "viewer")
    at = broker.endpoint
    argv = ["mosquitto_sub", "-h", at.host, "-p", str(at.port), "-u", user, "-P", password, "-i", "x", "-c", "-q", "1"]
    with output.open("wb") as out:
        running = subprocess.Popen([*argv, "-t", "muster/box/agent/+/lifecycle"], stdout=out)
    try:
        yield Subscriber(output)
    finally:
        running.kill()
        running.wait()


def listens(broker: PrivateBroker) -> bool:
    with contextlib.suppress(OSError), socket.create_connection((broker.endpoint.host, broker.endpoint.port), 0.2):
        return True
    return False


def pass_time(seconds: float) -> None:
    """Wait: the point at which it freezes is what is tested."""
    end = time.monotonic() + seconds
    wait_until(lambda: time.monotonic() >= end, "time passes")


@pytest.mark.parametrize("frozen_s", [3.0, 7.0])
@pytest.mark.parametrize("after_s", [0.0, 0.3, 0.8, 1.3, 2.0])
def test_no_event_is_lost_to_a_broker_that_freezes_as_it_comes_back(
    fleet: Fleet, broker: PrivateBroker, tmp_path: Path, after_s: float, frozen_s: float
) -> None:
    with (
        subscribed(broker, tmp_path / "received") as subscriber,
        process(fleet, "talker", TELL=str(EVENTS), PER_TURN="1", PAUSE_S=str(PAUSE_S)),
    ):
        wait_until(lambda: len(subscriber.numbers()) > 10, "events arrive")
        broker.kill()
        broker.wipe()  # its sessions were not saved yet
        broker.launch()
        wait_until(lambda: listens(broker), "the broker listens again")
        pass_time(after_s)
        broker.pause()
        pass_time(frozen_s)
        broker.resume()
        wait_until(lambda: memory(fleet, "spawner").get("told") == EVENTS, "all are told", 60)
        journal = Journal(fleet.journal, "spawner")
        wait_until(lambda: journal.published() == EVENTS, "the broker has acknowledged everything", 60)
        journal.close()
        first = min(subscriber.numbers())
        wait_until(lambda: subscriber.numbers() >= set(range(first, EVENTS + 1)), "every event arrived", 5)
