"""A day's load in compressed time: does anything grow?

    python -m tests.chaos.soak --seconds 1800

A day is taken as 4,000 texts, wishes, approvals and ends of agents: people act without a pause until that is done, or
the time is over. The journal keeps events for days and the registry ended sessions for a day, so of these the size for
each event and each session is judged. Ends with 1 if something grows.
"""

import argparse
import contextlib
import shutil
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from tests.chaos.growth import Series, growth, table
from tests.chaos.load import People
from tests.chaos.stage import LOGS_MB, Stage, chances, open_read_only
from tests.chaos.witness import sample_of
from tests.fixtures.broker import wait_until

COMMANDS_OF_A_DAY = 4_000
SAMPLES = 120


class Soak:
    def __init__(self, stage: Stage, people: int, seed: int) -> None:
        self._stage = stage
        crew = [*stage.cast.commanded, *stage.cast.edited, *stage.cast.asking, *stage.cast.limited]
        self._people = [
            People(stage, f"p{n}", tuple(crew[n::people]), chances(seed, f"person {n}"), pause_s=0.05)
            for n in range(people)
        ]
        self._taken: dict[tuple[str, str], list[tuple[float, float]]] = defaultdict(list)

    @property
    def commands(self) -> int:
        return sum(len(person.asked) for person in self._people)

    def run(self, seconds: float) -> list[Series]:
        for person in self._people:
            person.start()
        end = time.monotonic() + seconds
        over = threading.Event()
        while time.monotonic() < end and self.commands < COMMANDS_OF_A_DAY:
            over.wait(seconds / SAMPLES)
            self._sample()
        self._stage.over.set()
        for person in self._people:
            person.join(300)
        return [self._series(name, unit, samples) for (name, unit), samples in sorted(self._taken.items())]

    def _sample(self) -> None:
        now = time.monotonic()
        home = self._stage.fleet.fleet.home
        found = dict(self._stage.pids())
        if tmux := self._stage.tmux_pid():
            found["tmux"] = tmux
        for name, pid in found.items():
            if sample := sample_of(pid):
                self._taken[f"{name} memory", "MB"].append((now, sample.pss_mb))
                self._taken[f"{name} handles", ""].append((now, sample.handles))
                self._taken[f"{name} threads", ""].append((now, sample.threads))
        events = self.events()
        self._taken["journal for each event", "kB"].append((now, _size(home.glob("journal.db")) / 1e3 / events))
        self._taken["journal side files", "MB"].append((now, _size(home.glob("journal.db-*")) / 1e6))
        entries = sum(line.startswith(b"  ") and line[2:3] != b" " for line in _lines(home / "registry.yaml"))
        self._taken["registry for each entry", "kB"].append(
            (now, _size([home / "registry.yaml"]) / 1e3 / max(entries, 1))
        )
        self._taken["logs of services", "MB"].append((now, _size((home / "logs").glob("*.log*")) / 1e6))
        largest = max((_size([file]) for file in (home / "logs" / "agents").glob("*")), default=0)
        self._taken["largest log of an agent", "MB"].append((now, largest / 1e6))

    def events(self) -> int:
        journal = open_read_only(self._stage.fleet.fleet.journal)
        try:
            return max(1, int(journal.execute("SELECT sum(seq) FROM source").fetchone()[0] or 0))
        finally:
            journal.close()

    @staticmethod
    def _series(name: str, unit: str, samples: list[tuple[float, float]]) -> Series:
        if name == "largest log of an agent":
            return Series(name, unit, samples, bound=LOGS_MB * 1.5)
        slack = {"MB": 2.0, "": 3.0, "kB": 0.5}[unit]
        return Series(name, unit, samples, slack)


def _size(files: Iterable[Path]) -> int:
    found = 0
    for file in files:
        with contextlib.suppress(FileNotFoundError):
            found += file.stat().st_size
    return found


def _lines(file: Path) -> list[bytes]:
    with contextlib.suppress(FileNotFoundError):
        return file.read_bytes().splitlines()
    return []


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.soak", description="Whether anything grows.")
    parser.add_argument("--seconds", type=float, default=1800.0, help="at most so long (default 1800)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--agents", type=int, default=22, help="how many agents, at least 12 (default 22)")
    parser.add_argument("--people", type=int, default=4, help="how many people act at once (default 4)")
    options = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="muster-soak-"))
    stage = Stage(directory, options.agents)
    try:
        stage.up()
        wait_until(lambda: set(stage.fleet.records()) >= set(stage.cast.agents), "every agent is recorded", 60.0)
        soak = Soak(stage, options.people, options.seed)
        series = soak.run(options.seconds)
        events = soak.events()
    finally:
        stage.over.set()
        stage.fleet.end()
        shutil.rmtree(directory, ignore_errors=True)
    print(table(series))
    print(f"{soak.commands} commands, {events} events")
    grows = [each.name for each in series if growth(each).verdict == "grows"]
    print(f"grows: {', '.join(grows)}" if grows else "all is flat")
    return 1 if grows else 0


if __name__ == "__main__":
    sys.exit(main())
