"""A broker that freezes for seconds and is killed, in any order: a live subscriber still gets every event."""

import contextlib
import json
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from shared.fleet import Fleet, load_fleet
from shared.messaging.broker import BrokerKind, credentials
from shared.messaging.journal import Journal
from tests.fixtures.broker import PrivateBroker, wait_until
from tests.fixtures.talk_process import memory, process

EVENTS = 100
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


def freeze(broker: PrivateBroker, seconds: float) -> None:
    broker.pause()
    pass_time(seconds)
    broker.resume()


def replace(broker: PrivateBroker) -> None:
    """It is killed, and comes back without the sessions that were not saved yet."""
    broker.kill()
    broker.wipe()
    broker.launch()
    wait_until(lambda: listens(broker), "the broker listens again")


def freezes_as_it_comes_back(broker: PrivateBroker, after_s: float, frozen_s: float) -> None:
    replace(broker)
    pass_time(after_s)
    freeze(broker, frozen_s)


def is_killed_while_frozen(broker: PrivateBroker) -> None:
    broker.pause()
    pass_time(3.0)
    replace(broker)


def is_killed_as_it_comes_back(broker: PrivateBroker) -> None:
    replace(broker)
    pass_time(1.3)
    replace(broker)


def freezes_again_and_again(broker: PrivateBroker) -> None:
    freezes_as_it_comes_back(broker, 0.3, 2.5)
    freeze(broker, 3.0)


def is_slow(broker: PrivateBroker) -> None:
    """Each answer takes a second or longer."""
    for _ in range(10):
        freeze(broker, 1.0)
        pass_time(0.1)


ACCIDENTS: dict[str, Callable[[PrivateBroker], None]] = {
    "freezes": lambda broker: freeze(broker, 3.0),
    "freezes at once on its return": lambda broker: freezes_as_it_comes_back(broker, 0.0, 3.0),
    "freezes soon after its return": lambda broker: freezes_as_it_comes_back(broker, 0.8, 3.0),
    "freezes when its subscribers are back": lambda broker: freezes_as_it_comes_back(broker, 2.0, 3.0),
    "freezes for long after its return": lambda broker: freezes_as_it_comes_back(broker, 1.3, 7.0),
    "is killed while frozen": is_killed_while_frozen,
    "is killed as it comes back": is_killed_as_it_comes_back,
    "freezes again and again": freezes_again_and_again,
    "is slow": is_slow,
}


@pytest.mark.parametrize("accident", ACCIDENTS.values(), ids=ACCIDENTS)
def test_no_event_is_lost_to_a_broker_that(
    fleet: Fleet, broker: PrivateBroker, tmp_path: Path, accident: Callable[[PrivateBroker], None]
) -> None:
    with (
        subscribed(broker, tmp_path / "received") as subscriber,
        process(fleet, "talker", TELL=str(EVENTS), PER_TURN="1", PAUSE_S=str(PAUSE_S)),
    ):
        wait_until(lambda: len(subscriber.numbers()) > 10, "events arrive")
        accident(broker)
        wait_until(lambda: memory(fleet, "spawner").get("told") == EVENTS, "all are told", 60)
        journal = Journal(fleet.journal, "spawner")
        wait_until(lambda: journal.published() == EVENTS, "the broker has acknowledged everything", 60)
        journal.close()
        first = min(subscriber.numbers())
        wait_until(lambda: subscriber.numbers() >= set(range(first, EVENTS + 1)), "every event arrived", 5)
