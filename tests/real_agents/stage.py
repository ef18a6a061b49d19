"""A whole fleet in which a real agent is brought into one situation after another, and what the fleet tells of it.

Each situation has an agent of its own, with its own HOME, directory and model, so that nothing of one is left to the
next. The services, the broker and tmux are those of one fleet, as people have them.
"""

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet, Watcher
from tests.real_agents.clis import Cli, Place
from tests.real_agents.furnishing import billed, furnish
from tests.real_agents.installs import installed
from tests.real_agents.manned import WITHIN_S, end_all_in
from tests.real_agents.model import Model
from tests.real_agents.rehearsal import ROWS, Rehearsal
from tests.real_agents.situations import Situation
from tests.real_agents.workbench import Workbench

RIGHT_WITHIN_S = 2.0
"""What is promised."""
GIVES_UP_S = 10.0


@dataclass(frozen=True)
class Outcome:
    """What was told of one situation."""

    situation: str
    expected: str
    told: str
    """The last status that was told."""
    by: str
    """The source that decided."""
    after_s: float | None
    """How long after it could be seen, or after the last key, it was told; 0 where it was told before. None: never."""
    because: str = ""

    @property
    def right(self) -> bool:
        return self.told == self.expected


@dataclass
class Stage:
    cli: Cli
    fleet: RunningFleet
    watcher: Watcher
    models: dict[str, Model]
    places: dict[str, Place]

    def play(self, situation: Situation) -> Outcome:
        """Bring a new agent into the situation, and see what is told of it. It is gone afterwards."""
        with self.on(situation) as rehearsal:
            rehearsal.play(situation)
            return self.outcome(situation, max(rehearsal.began_at, rehearsal.came_at))

    @contextmanager
    def on(self, situation: Situation) -> Iterator[Rehearsal]:
        """A new agent that is ready to be typed to, or asks whether to trust its directory."""
        agent = situation.name
        self.fleet.cli("spawn", agent)
        pane = wait_until(lambda: self.fleet.pane(agent), f"the session of {agent}", WITHIN_S)
        bench = Workbench(self.cli, self.places[agent], tmux_socket(self.fleet.socket), pane.pane_id)
        if situation.trusted:
            bench.wait_until_ready()
            bench.wait_until_still()
        try:
            yield Rehearsal(bench, self.models[agent], self.places[agent].home / "no-hooks")
        finally:
            self.fleet.cli("stop", agent, code=None)
            end_all_in(self.places[agent].home)

    def outcome(self, situation: Situation, came_at: float) -> Outcome:
        """What is told by now, or soon."""
        until = time.monotonic() + GIVES_UP_S
        while (last := self._last(situation.name)).get("status") != situation.expected and time.monotonic() < until:
            time.sleep(0.05)
        told = str(last.get("status") or "nothing")
        after = max(0.0, last["told_at"] - came_at) if told == situation.expected else None
        by, because = str(last.get("decided_by") or ""), str(last.get("reason") or "")
        return Outcome(situation.name, situation.expected, told, by, after, because)

    def changes(self, agent: str) -> list[dict[str, Any]]:
        """Every status that was told of an agent, in order, with the time at which it was."""
        documents = self.watcher.documents(f"agent/{agent}/activity")
        found = {
            (doc["epoch"], doc["seq"]): {**doc["data"], "told_at": _seconds(doc["time"])}
            for doc in documents
            if doc["data"]["kind"] == "status_changed"
        }
        return [found[key] for key in sorted(found)]

    def _last(self, agent: str) -> dict[str, Any]:
        changes = self.changes(agent)
        return changes[-1] if changes else {}


def _seconds(stamp: str) -> float:
    return datetime.fromisoformat(stamp).timestamp()


def tmux_socket(name: str) -> Path:
    directory = os.environ.get("TMUX_TMPDIR") or "/tmp"  # noqa: S108 - tmux's own default
    return Path(directory) / f"tmux-{os.getuid()}" / name


@contextmanager
def stage(cli: Cli, situations: Sequence[Situation], room: Path, *, columns: int = 120) -> Iterator[Stage]:
    """The fleet is up, and nobody is on the stage yet; afterwards nothing is left of either."""
    with ExitStack() as stack:
        models, places, agents, backends = {}, {}, {}, {}
        binary = str(installed(cli))
        for situation in situations:
            one = billed(cli, situation)
            model = models[situation.name] = stack.enter_context(Model().serving())
            home, work = room / situation.name / "home", room / situation.name / "work"
            home.mkdir(parents=True)
            work.mkdir()
            place = places[situation.name] = Place(home, work, model.url, situation.trusted, situation.allowed)
            arguments = (*cli.arguments(), *furnish(one, situation, place))
            backends[situation.name] = {"like": cli.name, "binary": binary, "extra_args": arguments}
            agents[situation.name] = {
                "backend": situation.name,
                "kind": "task",
                "enabled": False,
                "dir": str(work),
                "env": one.environment(place),
            }
        fleet = RunningFleet(room, agents, backends=backends, tmux={"width": columns, "height": ROWS})
        try:
            fleet.up()
            yield Stage(cli, fleet, fleet.watch(), models, places)
        finally:
            fleet.end()
            for place in places.values():
                end_all_in(place.home)
