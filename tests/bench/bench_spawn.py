"""Command published → session there and `spawned` received, against a bare `tmux new-session`, the two in turn.

The whole way: broker, journal, spawner, tmux, journal, broker. Run: python -m tests.bench.bench_spawn [--times 50]
"""

import argparse
import json
import secrets
import subprocess
import tempfile
import time
from pathlib import Path
from statistics import median

from shared.system.tmux.server import end_server
from tests.fixtures.broker import Client
from tests.fixtures.fleet import RunningFleet

BUDGET = 5.0
PROGRAM = ["sleep", "100000"]


def spawn(operator: Client, agent: str) -> float:
    """Seconds from the command to the event. The client is connected: what is measured is the fleet."""
    topic = f"muster/box/agent/{agent}/lifecycle"
    began = time.perf_counter()
    operator.publish("muster/box/command/spawn", json.dumps({"agent": agent}).encode())
    while not any(message.topic == topic for message in operator.received):
        if time.perf_counter() - began > 30:
            raise TimeoutError(f"{agent} was not told to be spawned within 30 s")
        time.sleep(0.0002)
    took = time.perf_counter() - began
    operator.received.clear()
    return took


def bare(socket: str, name: str) -> float:
    began = time.perf_counter()
    subprocess.run(["tmux", "-L", socket, "new-session", "-d", "-s", name, "--", *PROGRAM], check=True)
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=50)
    times = parser.parse_args().times
    other = f"muster-bench-{secrets.token_hex(4)}"
    agents = {f"agent-{number}": {"backend": "sleeper", "enabled": False} for number in range(times)}
    with tempfile.TemporaryDirectory() as directory:
        fleet = RunningFleet(
            Path(directory),
            agents,
            backends={"sleeper": {"binary": PROGRAM[0], "argv": ["{binary}", *PROGRAM[1:]], "deliver": "arg"}},
            start={"at_once": times},  # what is measured is one start, not how many are spread out
        )
        try:
            fleet.up()
            operator = fleet.client("operator")
            operator.subscribe("muster/box/agent/+/lifecycle")
            bare(other, "warm")
            ours, theirs = [], []
            for agent in agents:
                ours.append(spawn(operator, agent))
                theirs.append(bare(other, agent))
        finally:
            fleet.end()
            end_server(other)
    ratio = median(ours) / median(theirs)
    verdict = "within" if ratio <= BUDGET else "OVER"
    print(
        f"command to `spawned`, median of {times}: {median(ours) * 1000:.1f} ms;"
        f" bare tmux {median(theirs) * 1000:.1f} ms; ratio {ratio:.1f}, {verdict} the budget of {BUDGET:g}"
    )


if __name__ == "__main__":
    main()
