"""A tmux session is killed → its drift at `mosquitto_sub`, with many others present; without a broker, in the journal.

The others are at work, and print now and then. With `--hog`, it is done again beside a busy loop, which takes one core.
Push, journal, broker and all services are the real ones. The baseline is the slow poll that would find it otherwise.
Run: python -m tests.bench.bench_drift [--sessions 10 100 500] [--kills 200] [--hog] [--idle]
"""

import argparse
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path

from services.cli.broker import connection
from shared.messaging.journal import Journal
from tests.bench.agent_load import Kind, fleet_of, printing
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet

BUDGETS_MS = {10: 25.0, 100: 25.0, 500: 60.0}
POLL_S = 30.0
BETWEEN_S = 0.25
SETTLES_S = 20.0
"""What a start of all agents leaves to do."""
UNLIMITED = {"burst": 1000, "sustained": 1000, "first_wait_s": 1, "longest_wait_s": 1}


class Subscriber:
    """`mosquitto_sub`, read as soon as it writes."""

    def __init__(self, fleet: RunningFleet) -> None:
        self._process = subprocess.Popen(
            ["mosquitto_sub", *connection(fleet.fleet, "viewer").split(), "-q", "1", "-t", "muster/+/agent/+/drift"],
            stdout=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        self._out = self._process.stdout.fileno()
        self._rest = b""

    def wait_for(self, spawn: str, within_s: float) -> float:
        """When the drift of this session came."""
        deadline = time.perf_counter() + within_s
        while time.perf_counter() < deadline:
            if select.select([self._out], [], [], 0.5)[0]:
                at = time.perf_counter()
                *lines, self._rest = (self._rest + os.read(self._out, 65536)).split(b"\n")
                if any(json.loads(line)["data"].get("spawn") == spawn for line in lines):
                    return at
        raise TimeoutError(f"the drift of {spawn} did not come within {within_s:g} s")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def by_push(fleet: RunningFleet, kills: int) -> list[float]:
    subscriber = Subscriber(fleet)
    try:
        time.sleep(1)
        took = []
        for number in range(kills):
            pane = wait_until(partial(fleet.pane, agent_of(fleet, number)), "a session to kill")
            began = time.perf_counter()
            fleet.tmux.kill(pane.session_id)
            took.append((subscriber.wait_for(pane.spawn or "", 60) - began) * 1000)
            time.sleep(BETWEEN_S)
        return took
    finally:
        subscriber.close()


def by_poll(fleet: RunningFleet, kills: int) -> list[float]:
    journal = Journal(fleet.fleet.journal, "bench")
    took = []
    with fleet.broker_down():
        time.sleep(3)
        for number in range(kills):
            pane = wait_until(partial(fleet.pane, agent_of(fleet, number)), "a session to kill")
            last, began = journal.newest("reconciler"), time.perf_counter()
            fleet.tmux.kill(pane.session_id)
            while not any(f'"{pane.spawn}"'.encode() in entry.payload for entry in journal.entries("reconciler", last)):
                time.sleep(0.001)
            took.append((time.perf_counter() - began) * 1000)
            time.sleep(BETWEEN_S)
    journal.close()
    return took


def agent_of(fleet: RunningFleet, number: int) -> str:
    names = sorted(fleet.fleet.agents)
    return names[number % len(names)]


@contextmanager
def hog() -> Iterator[None]:
    """Something else that takes all it gets of one core."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield
    finally:
        busy.kill()
        busy.wait()


def measure(sessions: int, kills: int, kind: Kind, *, beside_hog: bool) -> Iterator[tuple[str, list[float]]]:
    """How the drifts came, and how long each took."""
    with tempfile.TemporaryDirectory() as directory:
        unlimited = {"burst": 10_000, "sustained": 100_000}
        fleet = fleet_of(Path(directory), sessions, kind, {"restart": UNLIMITED}, restarts=unlimited)
        try:
            fleet.up()
            wait_until(lambda: len(fleet.records()) == sessions, "all sessions", 180)
            with printing(fleet) if kind is Kind.AT_WORK else nullcontext():
                time.sleep(SETTLES_S)
                yield "mosquitto_sub", by_push(fleet, kills)
                if beside_hog:
                    with hog():
                        took = by_push(fleet, kills)
                    yield "mosquitto_sub, beside a busy loop", took
                yield "no broker, journal", by_poll(fleet, max(10, kills // 5))
        finally:
            fleet.end()


def show(sessions: int, kind: Kind, how: str, took: list[float]) -> None:
    p99 = percentile(took, 0.99)
    budget = BUDGETS_MS.get(sessions, max(BUDGETS_MS.values())) + (1000 if how.startswith("no broker") else 0)
    print(
        f"killed → drift ({how}), {sessions} sessions {kind.value}, {len(took)} kills:"
        f" median {percentile(took, 0.5):.1f} ms, p99 {p99:.1f} ms, worst {max(took):.1f} ms;"
        f" {'within' if p99 <= budget else 'OVER'} the budget of {budget:g} ms;"
        f" 1/{POLL_S * 1000 / percentile(took, 0.5):.0f} of a {POLL_S:g} s poll",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sessions", type=int, nargs="+", default=[100])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--hog", action="store_true")
    parser.add_argument("--idle", action="store_true")
    options = parser.parse_args()
    kind = Kind.IDLE if options.idle else Kind.AT_WORK
    for sessions in options.sessions:
        for how, took in measure(sessions, options.kills, kind, beside_hog=options.hog):
            show(sessions, kind, how, took)


if __name__ == "__main__":
    main()
