"""Events through journal, loop and a real broker that dies again and again: none lost, none handled twice."""

import json
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from shared.fleet import Fleet, load_fleet
from shared.messaging.broker import BrokerKind
from shared.messaging.journal import Journal
from tests.fixtures.broker import PrivateBroker, wait_until
from tests.fixtures.talk_process import heard, memory, process

EVENTS = 10_000


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


@pytest.mark.long
def test_ten_thousand_events_survive_broker_kills(fleet: Fleet, broker: PrivateBroker) -> None:
    chance = random.Random(7)
    kills = 0
    with process(fleet, "counter"), process(fleet, "talker", TELL=str(EVENTS), PER_TURN="10", PAUSE_S="0.01"):
        while heard(fleet)["count"] < EVENTS:
            goal = heard(fleet)["count"] + chance.randrange(200, 1_500)
            wait_until(lambda g=goal: heard(fleet)["count"] >= min(g, EVENTS), f"{goal} heard", 60)  # type: ignore[misc]
            if heard(fleet)["count"] < EVENTS:
                broker.kill()
                broker.start()
                kills += 1
        wait_until(lambda: memory(fleet, "spawner")["told"] == EVENTS, "all told")
        assert heard(fleet) == {"count": EVENTS, "out_of_line": []}
        assert kills >= 3
        journal = Journal(fleet.journal, "spawner")
        wait_until(lambda: journal.published() == EVENTS, "the broker has acknowledged everything")
        journal.close()


def test_a_service_killed_between_journal_and_publish_tells_it_later(fleet: Fleet, broker: PrivateBroker) -> None:
    viewer = broker.client("viewer")
    viewer.subscribe("muster/box/agent/+/lifecycle")
    with process(fleet, "talker", TELL="5", PER_TURN="5", DIE_BEFORE_PUBLISH="yes") as dying:
        assert dying.wait(30) == -signal.SIGKILL
    journal = Journal(fleet.journal, "spawner")
    assert (journal.last_seq(), journal.published()) == (5, 0)
    journal.close()
    assert viewer.received == []
    with process(fleet, "talker", TELL="5", PER_TURN="5"):
        wait_until(lambda: len(viewer.received) >= 5, "the five events")
    assert [json.loads(payload)["seq"] for payload in viewer.payloads()] == [1, 2, 3, 4, 5]


def test_a_reader_killed_in_the_middle_handles_each_once(fleet: Fleet, broker: PrivateBroker) -> None:
    with process(fleet, "talker", TELL="3000", PER_TURN="10"):
        for goal in (200, 900, 1_800):
            with process(fleet, "counter"):
                wait_until(lambda g=goal: heard(fleet)["count"] >= g, f"{goal} heard")  # type: ignore[misc]
        with process(fleet, "counter"):
            wait_until(lambda: heard(fleet)["count"] >= 3000, "all heard")
    assert heard(fleet) == {"count": 3000, "out_of_line": []}


def test_with_no_broker_at_all_events_go_through_the_journal(fleet: Fleet) -> None:
    with process(fleet, "counter"), process(fleet, "talker", TELL="500", PER_TURN="50"):
        wait_until(lambda: heard(fleet)["count"] == 500, "all heard")
    assert heard(fleet)["out_of_line"] == []
