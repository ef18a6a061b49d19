"""The broker SIGKILLed under load: how soon the services are back on it, and that nothing is lost or handled twice.

`python -m tests.bench.bench_broker_kill [--events 10000] [--kills 5]`. Budget: 0 lost, 0 twice, back in at most 3 s.
The baseline is the broker's own restart: from its SIGKILL until it takes connections again.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from shared.fleet import load_fleet
from shared.messaging.broker import BrokerKind
from tests.fixtures.broker import Client, PrivateBroker, wait_until
from tests.fixtures.talk_process import heard, process

BUDGET_S = 3.0
SERVICES = ("spawner", "registrar")


def back_online(client: Client) -> None:
    """Wait until both services have said on this broker that they are there."""
    for service in SERVICES:
        topic = f"muster/box/service/{service}/state"
        wait_until(lambda t=topic: any(b'"online"' in p for p in client.payloads(t)), f"{service} is back", 30)  # type: ignore[misc]


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=10_000)
    parser.add_argument("--kills", type=int, default=5)
    options = parser.parse_args()
    restarts, returns = [], []
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "fleet.yaml"
        path.write_text("host: box\nagents: {}\n")
        fleet = load_fleet(path)
        broker = PrivateBroker(fleet.home, fleet.space, BrokerKind.MOSQUITTO)
        broker.start()
        try:
            load = {"TELL": str(options.events), "PER_TURN": "10", "PAUSE_S": "0.02"}
            with process(fleet, "counter"), process(fleet, "talker", **load):
                for kill in range(options.kills):
                    goal = options.events * (kill + 1) // (options.kills + 2)
                    wait_until(lambda g=goal: heard(fleet)["count"] >= g, f"{goal} heard", 120)  # type: ignore[misc]
                    began = time.monotonic()
                    broker.kill()
                    broker.wipe()  # so that an `online` on it is a new one
                    broker.start()
                    restarts.append(time.monotonic() - began)
                    client = broker.client("viewer")
                    client.subscribe("muster/box/service/+/state")
                    back_online(client)
                    returns.append(time.monotonic() - began)
                    print(
                        f"killed at {goal}: broker back after {restarts[-1]:.2f} s, services after {returns[-1]:.2f} s"
                    )
                wait_until(lambda: heard(fleet)["count"] >= options.events, "everything heard", 120)
                counted = heard(fleet)
        finally:
            broker.close()
    lost, twice = options.events - counted["count"], len(counted["out_of_line"])
    ratio = statistics.median(returns) / statistics.median(restarts)
    print(f"{options.events} events, {options.kills} kills: {lost} lost, {twice} out of line or twice (budget 0, 0)")
    print(f"back in {max(returns):.2f} s at worst (budget {BUDGET_S:g} s), {ratio:.1f} x the broker's own restart")
    return 0 if (lost, twice) == (0, 0) and max(returns) <= BUDGET_S else 1


if __name__ == "__main__":
    sys.exit(main())
