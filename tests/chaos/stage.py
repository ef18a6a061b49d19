"""The fleet of a run: agents of each sort on real services, and a log of all that is done to it."""

import contextlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.cli import supervision
from tests.chaos.evidence import Act, LostEpoch
from tests.fixtures.by_hand import run_tmux
from tests.fixtures.fleet import RunningFleet

PATIENT = {"burst": 1000, "sustained": 100_000, "first_wait_s": 0.2, "longest_wait_s": 1}
"""Agents that are killed on purpose are not given up for that."""
MORTAL = {"first_wait_s": 0.2, "longest_wait_s": 1, "burst": 3, "burst_s": 60}
LOUD = "while :; do seq 1 3000; sleep 0.1; done"
FORKING = "while :; do sleep 5 & sleep 0.3; done"
DEAF = "trap '' HUP TERM INT; while :; do sleep 1; done"
LOGS_MB = 10


@dataclass(frozen=True)
class Cast:
    """The agents by what happens to them."""

    commanded: tuple[str, ...]
    edited: tuple[str, ...]
    asking: tuple[str, ...]
    limited: tuple[str, ...]
    untouched: tuple[str, ...]
    others: tuple[str, ...] = ("mortal", "loud", "forking", "deaf")

    @property
    def agents(self) -> tuple[str, ...]:
        return (*self.commanded, *self.edited, *self.asking, *self.limited, *self.untouched, *self.others)

    @property
    def killed(self) -> tuple[str, ...]:
        """Those that are killed alone."""
        return (*self.commanded, *self.asking, *self.limited, "loud", "forking", "deaf")


def cast(agents: int) -> Cast:
    """So many agents, at least ten."""
    commanded = tuple(f"a{number:02}" for number in range(1, max(agents - 10, 2) + 1))
    more = agents >= 20
    return Cast(
        commanded,
        edited=("e1", "e2") if more else ("e1",),
        asking=("q1", "q2") if more else ("q1",),
        limited=("l1",) if more else (),
        untouched=("u1", "u2") if more else ("u1",),
    )


def declared(cast: Cast) -> dict[str, Any]:
    agents: dict[str, Any] = {}
    for place, agent in enumerate(cast.commanded):
        prompt = "demo: on start: work 100000" if place % 3 == 0 else f"hello {agent}" if place % 3 == 1 else None
        agents[agent] = {"prompt": prompt} if prompt else {}
    agents |= {agent: {"prompt": f"hello {agent}"} for agent in (*cast.edited, *cast.asking, *cast.untouched)}
    agents |= {agent: {"prompt": "hello", "account": "small"} for agent in cast.limited}
    agents["mortal"] = {"prompt": "demo: on start: fail it always does", "resume": False, "restart": MORTAL}
    shell = {"loud": LOUD, "forking": FORKING, "deaf": DEAF}
    return {
        "agents": agents,
        "services": {name: {"argv": ["bash", "-c", words], "restart": PATIENT} for name, words in shell.items()},
        "defaults": {"restart": PATIENT},
        "restarts": {"burst": 1000, "burst_s": 10, "sustained": 1_000_000},
        "start": {"at_once": 8, "gap_s": 0.1},
        "logs": {"max_mb": LOGS_MB},
    }


class Stage:
    """What faults and people act on. Everything done is logged with its time."""

    def __init__(self, directory: Path, agents: int, tell: Callable[[str], None] = lambda _: None) -> None:
        self.cast = cast(agents)
        settings = declared(self.cast)
        self.fleet = RunningFleet(directory, settings.pop("agents"), **settings)
        self.directory = directory
        self.acts: list[Act] = []
        self.lost_epochs: list[LostEpoch] = []
        self.written: set[bytes] = set()
        """What was written into registry.yaml on purpose, and is no whole registry."""
        self.registry_away: list[tuple[float, float]] = []
        self.touched: set[str] = set()
        """The parts that faults under way have."""
        self.over = threading.Event()
        """Set when faults are to be undone."""
        self._tell = tell
        self.registry_lock = threading.Lock()
        """Held by who has registry.yaml open."""
        self._lock = threading.Lock()
        self._began = time.time()

    def log(self, fault: str, target: str = "*", *, since: float | None = None) -> None:
        now = time.time()
        act = Act(since or now, fault, target, now)
        with self._lock:
            self.acts.append(act)
        self._tell(f"{act.at - self._began:8.2f}  {fault:28} {target}")

    @contextlib.contextmanager
    def lasting(self, fault: str, target: str = "*") -> Iterator[None]:
        """A fault that is there until the end of the block."""
        began = time.time()
        try:
            yield
        finally:
            self.log(fault, target, since=began)

    def last(self, seconds: float) -> None:
        """Let a fault last, unless the run ends."""
        self.over.wait(seconds)

    def registry_is_free(self) -> bool:
        """Whether the file stands for the record: no fault about it or the journal is under way."""
        return not {"registry", "journal"} & self.touched

    # --- parts of the fleet ---

    def pids(self) -> Mapping[str, int]:
        return supervision.pids(self.fleet.fleet)

    def signal(self, program: str, number: signal.Signals) -> int | None:
        """To a process of the fleet, if it is there."""
        pid = self.pids().get(program)
        if pid is None:
            return None
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            return pid
        return None

    def tmux(self, *words: str) -> str | None:
        """As a person in a terminal; nothing if there is no server."""
        try:
            return run_tmux(self.fleet.socket, *words)
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            return None

    def sessions(self) -> dict[str, int]:
        """The pid in each session by its name."""
        listed = self.tmux("list-panes", "-a", "-F", "#{session_name} #{pane_pid}") or ""
        return {name: int(pid) for name, pid in (line.split() for line in listed.splitlines())}

    def tmux_pid(self) -> int | None:
        said = self.tmux("display-message", "-p", "#{pid}")
        return int(said) if said else None

    def note_lost_journal(self) -> None:
        """What the journal had published, before it is taken away."""
        with (
            contextlib.suppress(sqlite3.Error),
            contextlib.closing(open_read_only(self.fleet.fleet.journal)) as journal,
        ):
            (epoch,) = journal.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()
            published = dict(journal.execute("SELECT name, published FROM source").fetchall())
            self.lost_epochs.append(LostEpoch(str(epoch), time.time(), published))

    def up(self) -> None:
        """As a person does who wants it up: again, until it says that it is."""
        for _ in range(5):
            done = self.fleet.cli("up", code=None)
            if done.returncode == 0:
                return
        raise AssertionError(f"`muster up` failed five times: {done.stdout}\n{done.stderr}")


def open_read_only(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=10.0)


def documents(lines: str) -> Iterator[dict[str, Any]]:
    """The JSON documents of a file of lines; half a line at the end is none."""
    for line in lines.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            yield json.loads(line)


def chances(seed: int, name: str) -> random.Random:
    return random.Random(f"{seed} {name}")
