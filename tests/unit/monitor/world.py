"""A monitor on a tmux that is as the test says, with a real journal, registry and spool of hooks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from registry import AgentRecord, RegistryFile
from services.monitor.health.query_runner import QueryRunner
from services.monitor.service import Monitor
from shared.agents.hooks.spool import Spool
from shared.contract.commands import Command, Explain, Reply
from shared.contract.envelope import Event
from shared.contract.events.activity import StatusChanged
from shared.messaging.journal import Journal
from shared.runtime.turn import Turn
from shared.system.log import Log
from tests.fakes.fleets import WrittenFleet
from tests.fakes.records import START
from tests.fakes.tmux import FakeTmux
from tests.fakes.turns import TurnDriver
from tests.unit.monitor.samples import pane, record

RULE = "─" * 40
BOX = f"{RULE}\n› \x1b[2mtype a message\x1b[0m\n{RULE}\n"
WAITS, WORKS = f"{BOX}  demo agent · enter to send", f"{BOX}  working · esc to interrupt"
AGENTS: dict[str, Any] = {"builder": {}, "tester": {}}


def asks(what: str = "ask x") -> str:
    return f"{RULE}\nDo you allow this? {what}\n  1. Yes\n  2. No\n1 or 2 · esc to refuse"


class World:
    def __init__(self, home: Path, agents: Mapping[str, Any] = AGENTS) -> None:
        self.written = WrittenFleet(home, agents)
        self.path, self.fleet_file = self.written.path, self.written.file
        self.tmux = FakeTmux()
        self.journal = Journal(self.fleet_file.fleet.journal, "monitor")
        self.turns = TurnDriver(self.journal, self.fleet_file.fleet.space, START)
        self.registry = RegistryFile(self.fleet_file.fleet.registry)
        self.spool = Spool(self.fleet_file.fleet.home / "hooks")
        self.spool.prepare()
        self._calls = self._explained = 0
        self.records = True
        """Whether somebody records what is told."""
        self.queries = QueryRunner(self.fleet_file.fleet.home / "peeks", lambda: None, Log("monitor"))
        self.restarts()

    def restarts(self) -> None:
        """The monitor, as a new process."""
        registry = RegistryFile(self.registry.path)
        self.service = Monitor(self.fleet_file, registry, self.tmux, self.journal, self.spool, self.queries)
        self.turns.handlers = self.service.effects

    # --- what others do ---

    def declare(self, agents: Mapping[str, Any] = AGENTS, **more: Any) -> None:
        self.written.declare(agents, **more)

    def runs(self, agent: str = "builder", screen: str = WAITS, spawn: str = "s1", **changes: Any) -> None:
        """A session of its own, with a record of it."""
        self.starts(agent, screen, spawn, **changes)
        self.writes(**{agent: record(spawn=spawn)})

    def starts(self, agent: str = "builder", screen: str = WAITS, spawn: str = "s1", **changes: Any) -> None:
        """In tmux; no record knows of it."""
        place = f"%{list(AGENTS).index(agent) if agent in AGENTS else 9}"
        known = {"fleet": self.fleet_file.fleet.stamp, "pane_id": place}
        self.tmux.panes[agent] = pane(agent, spawn, **{**known, **changes})
        self.shows(agent, screen)

    def shows(self, agent: str, screen: str) -> None:
        found = self.tmux.panes[agent]
        self.tmux.shown[found.pane_id] = screen
        self.tmux.panes[agent] = replace(found, activity=int(self.now.timestamp()))

    def writes(self, **records: AgentRecord) -> None:
        self.registry.write(records, (), {}, ())

    def calls_a_hook(
        self, event: str, spawn: str = "s1", *, ago: float = 0.0, at: str = "", pid: int = 7, **payload: Any
    ) -> Path:
        self._calls += 1
        when = int((self.now.timestamp() - ago) * 1e9)
        file = self.spool.directory / "spool" / f"{when}-{self._calls}"
        said = {"hook_event_name": event, "session_id": "c1", **payload}
        file.write_text(f"1\t{when}\t{spawn}\t{at}\t\t{pid}\n{json.dumps(said)}")
        return file

    def _record(self, turn: Turn) -> None:
        """As the registrar does."""
        records = self.registry.records()
        for event, _ in turn.emitted:
            known = records.get(event.agent) if isinstance(event, StatusChanged) else None
            if isinstance(event, StatusChanged) and known is not None and known.spawn == event.spawn and self.records:
                self.writes(**{event.agent: known.model_copy(update={"activity": event.status})})

    # --- turns ---

    @property
    def now(self) -> datetime:
        return self.turns.now

    @now.setter
    def now(self, when: datetime) -> None:
        self.turns.now = when

    @property
    def memory(self) -> Mapping[str, Any]:
        return self.turns.memory

    def turn(self, *, after: float = 1.0, commits: bool = True, asks: Sequence[Command] = ()) -> Turn:
        turn = self.turns.run(self.service.step, *asks, after=after, commits=commits)
        if commits:
            self._record(turn)
        return turn

    def explains(self, agent: str) -> Reply:
        self._explained += 1
        asked = Explain(agent=agent, id=f"explain-{self._explained}")
        (_, reply) = self.turn(asks=[asked]).replies[f"explain-{self._explained}"]
        return reply


def told(turn: Turn) -> list[tuple[str, str]]:
    """Agent and status, or the kind of what is no change of it."""
    return [(getattr(event, "agent", ""), _what(event)) for event, _ in turn.emitted]


def _what(event: Event) -> str:
    return str(getattr(event, "status", getattr(event, "kind", "")))
