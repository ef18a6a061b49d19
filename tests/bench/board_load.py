"""The load of the board's benchmark: services that tell a planned story of a fleet, through the real runtime.

`python -m tests.bench.board_load monitor --fleet FILE --agents 500 --rate 50 --seconds 60 --directory DIR`, and also
as `spawner` and `reconciler`: each tells its own part, in the journal first, then to the broker. The story begins at
the time in the file `begin` in DIR; when each event was told is in `<service>.json` there, at its end.
"""

import argparse
import json
import random
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import ClassVar

from shared.contract.envelope import Data, Event
from shared.contract.events.activity import ApprovalNeeded, LimitHit, LimitLifted, StatusChanged
from shared.contract.events.drift import DriftResolved, WrongBackend
from shared.contract.events.lifecycle import AgentSpawned
from shared.contract.states import Activity
from shared.runtime.bootstrap import serve_fleet
from shared.runtime.turn import Turn

ACCOUNTS = 20
APPROVALS, LIMITS, DRIFTS = 0.04, 0.003, 0.02
"""The share of an agent's changes that is not from working to waiting, or back."""
ROLES = ("api", "web", "review", "tests", "docs")
DIALOG = """\
Bash command

  {command}
  Run the tests of the payments service again, with all their output

Do you want to proceed?
❯ 1. Yes
  2. Yes, and don't ask again for pytest commands
  3. No, and tell the agent what to do differently (esc)"""


def agent_name(number: int) -> str:
    return f"agent-{number:03}"


def spawn_of(agent: str) -> str:
    return f"spawn-{agent}"


def account_of(number: int) -> str:
    return f"account-{number % ACCOUNTS:02}"


@dataclass(frozen=True)
class PlannedEvent:
    """What is told, when and by whom. Its number is in the text that people read, so that it is found on the page."""

    number: int
    at_s: float
    service: str
    kind: str
    agent: int
    status: Activity | None = None
    was: Activity | None = None

    def event(self, now: datetime) -> Event:
        agent = agent_name(self.agent)
        spawn, account, text = spawn_of(agent), account_of(self.agent), f"it uses Bash #{self.number}: pytest -q"
        match self.kind:
            case "approval_needed":
                dialog = DIALOG.format(command=f"pytest -q -k 'case_{self.number}'")
                return ApprovalNeeded(
                    agent=agent, spawn=spawn, since=now, reason=text, dialog=dialog, fingerprint=f"n{self.number}",
                    can=["approve", "deny"],
                )  # fmt: skip
            case "limit_hit":
                lifts = now + timedelta(hours=2)
                return LimitHit(
                    agent=agent, spawn=spawn, account=account, scope="weekly", since=now, resets_at=lifts, reason=text
                )
            case "limit_lifted":
                return LimitLifted(agent=agent, spawn=spawn, account=account, how="by_itself", reason=text)
            case "wrong_backend":
                return WrongBackend(agent=agent, spawn=spawn, expected="claude", found=None, command="bash")
            case "resolved":
                return DriftResolved(agent=agent, spawn=spawn, drift="wrong_backend", reason="it runs again")
        assert self.status is not None
        return StatusChanged(
            agent=agent, spawn=spawn, status=self.status, was=self.was, since=now, reason=text, decided_by="hooks"
        )


def first_events(agents: int) -> list[PlannedEvent]:
    """What every agent does before the story begins: one half works, the other waits."""
    states = (Activity.WORKING, Activity.WAITING)
    return [PlannedEvent(n + 1, 0.0, "monitor", "status_changed", n, states[n % 2]) for n in range(agents)]


def story(agents: int, rate: float, seconds: float) -> list[PlannedEvent]:
    """The same each time: every agent in its turn goes from working to waiting or back; now and then something else."""
    chance, events = random.Random(1), list[PlannedEvent]()
    doing = {planned.agent: planned.status for planned in first_events(agents)}
    drifting = set[int]()
    turns = iter([n for _ in range(int(rate * seconds) // agents + 1) for n in chance.sample(range(agents), agents)])
    while len(events) < rate * seconds:
        agent = next(turns)
        for service, kind, status in _change(chance, agent, doing[agent], drifting):
            number = agents + len(events) + 1
            at_s = len(events) / rate
            events.append(PlannedEvent(number, at_s, service, kind, agent, status, doing[agent]))
            doing[agent] = status or doing[agent]
    return events


def _change(
    chance: random.Random, agent: int, doing: Activity | None, drifting: set[int]
) -> Iterator[tuple[str, str, Activity | None]]:
    """The events of an agent's next change."""
    if doing is Activity.LIMITED:
        yield "monitor", "limit_lifted", None
    if agent in drifting:
        drifting.discard(agent)
        yield "reconciler", "resolved", None
    elif chance.random() < DRIFTS:
        drifting.add(agent)
        yield "reconciler", "wrong_backend", None
    if doing is Activity.WORKING and (drawn := chance.random()) < APPROVALS + LIMITS:
        if drawn < APPROVALS:
            yield "monitor", "status_changed", Activity.NEEDS_APPROVAL
            yield "monitor", "approval_needed", None
        else:
            yield "monitor", "limit_hit", None
            yield "monitor", "status_changed", Activity.LIMITED
    else:
        yield "monitor", "status_changed", Activity.WAITING if doing is Activity.WORKING else Activity.WORKING


class PlannedTelling:
    """Tells its part of the story in time, one turn for what is due together."""

    name: ClassVar[str]

    def __init__(self, options: argparse.Namespace) -> None:
        self._directory: Path = options.directory
        self._first = self.first(options.agents)
        planned = story(options.agents, options.rate, options.seconds)
        self._planned = [each for each in planned if each.service == self.name]
        self._begin: float | None = None
        self._told: dict[int, float] = {}
        self._count = len(self._planned)

    def first(self, agents: int) -> Sequence[Event]:
        """What is told before the story begins."""
        return [each.event(datetime.now(UTC)) for each in first_events(agents) if each.service == self.name]

    def states(self) -> Iterable[Data]:
        return ()

    def step(self, turn: Turn) -> None:
        for event in self._first:
            turn.emit(event)
        self._first = ()
        if self._begin is None:
            self._begin = self._read_begin()
        if self._begin is None:
            turn.look_again_at(turn.now + timedelta(seconds=0.1))
            return
        now = turn.now.timestamp()
        while self._planned and self._begin + self._planned[0].at_s <= now:
            planned = self._planned.pop(0)
            turn.emit(planned.event(turn.now))
            self._told[planned.number] = now
        if self._planned:
            turn.look_again_at(datetime.fromtimestamp(self._begin + self._planned[0].at_s, UTC))
        elif len(self._told) == self._count:
            self._write()

    def _read_begin(self) -> float | None:
        file = self._directory / "begin"
        return float(file.read_text()) if file.exists() else None

    def _write(self) -> None:
        written = self._directory / f"{self.name}.new"
        written.write_text(json.dumps(self._told))
        written.rename(self._directory / f"{self.name}.json")


class SpawnerLoad(PlannedTelling):
    name = "spawner"

    def first(self, agents: int) -> Sequence[Event]:
        return [
            AgentSpawned(
                agent=agent_name(n), spawn=spawn_of(agent_name(n)), backend="claude", workspace=str(self._directory),
                session=agent_name(n), pane=f"%{n}", pid=1000 + n, command="claude", role=ROLES[n % len(ROLES)],
            )
            for n in range(agents)
        ]  # fmt: skip


class MonitorLoad(PlannedTelling):
    name = "monitor"


class ReconcilerLoad(PlannedTelling):
    name = "reconciler"


LOADS: tuple[type[PlannedTelling], ...] = (SpawnerLoad, MonitorLoad, ReconcilerLoad)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("service", choices=[load.name for load in LOADS])
    parser.add_argument("--fleet", required=True)
    parser.add_argument("--agents", type=int, required=True)
    parser.add_argument("--rate", type=float, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--directory", type=Path, required=True)
    options = parser.parse_args()
    load = next(load for load in LOADS if load.name == options.service)
    return serve_fleet(options.fleet, load.name, lambda _: load(options))


if __name__ == "__main__":
    sys.exit(main())
