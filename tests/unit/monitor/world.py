"""A monitor on a tmux that is as the test says, with a real journal, registry and spool of hooks."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

from registry import AgentRecord, RegistryFile
from services.monitor.health.asking import Asking
from services.monitor.service import Monitor
from shared.commands import Command, Explain, Reply
from shared.desk import request_of
from shared.events import Event, StatusChanged
from shared.fleet import FleetFile
from shared.hooks.spool import Spool
from shared.journal import Journal
from shared.log import Log
from shared.tmux import Pane, Tmux, TmuxUnavailable
from shared.turn import Asked, Turn
from tests.unit.monitor.seeing import START, pane, record

RULE = "─" * 40
BOX = f"{RULE}\n› \x1b[2mtype a message\x1b[0m\n{RULE}\n"
WAITS, WORKS = f"{BOX}  demo agent · enter to send", f"{BOX}  working · esc to interrupt"
AGENTS: dict[str, Any] = {"builder": {}, "tester": {}}


def asks(what: str = "ask x") -> str:
    return f"{RULE}\nDo you allow this? {what}\n  1. Yes\n  2. No\n1 or 2 · esc to refuse"


class FakeTmux:
    """As far as the monitor uses one."""

    def __init__(self) -> None:
        self.panes: dict[str, Pane] = {}
        self.shown: dict[str, str] = {}
        self.answers = True
        self.captured: list[list[str]] = []

    def glance(self, fleet: str) -> dict[str, Pane]:
        if not self.answers:
            raise TmuxUnavailable("list-panes", "")
        return {agent: each for agent, each in self.panes.items() if each.fleet == fleet}

    def screens(self, pane_ids: Sequence[str], *, styled: bool = False) -> dict[str, str]:
        assert styled
        self.captured.append(list(pane_ids))
        return {pane_id: self.shown[pane_id] for pane_id in pane_ids if pane_id in self.shown}


class World:
    def __init__(self, home: Path, agents: Mapping[str, Any] = AGENTS) -> None:
        self.path = home / "fleet.yaml"
        self.declare(agents)
        self.fleet_file = FleetFile(self.path)
        self.fleet_file.fleet.home.mkdir()
        self.tmux = FakeTmux()
        self.journal = Journal(self.fleet_file.fleet.journal, "monitor")
        self.registry = RegistryFile(self.fleet_file.fleet.registry)
        self.spool = Spool(self.fleet_file.fleet.home / "hooks")
        self.spool.prepare()
        self.memory: dict[str, Any] = {}
        self.now = START
        self._calls = 0
        self.records = True
        """Whether somebody records what is told."""
        self.asking = Asking(self.fleet_file.fleet.home / "peeks", lambda: None)
        self.restarts()

    def restarts(self) -> None:
        """The monitor, as a new process."""
        registry = RegistryFile(self.registry.path)
        tmux = cast(Tmux, self.tmux)
        self.service = Monitor(self.fleet_file, registry, tmux, self.journal, self.spool, Log("monitor"), self.asking)

    # --- what others do ---

    def declare(self, agents: Mapping[str, Any] = AGENTS, **more: Any) -> None:
        self.path.write_text(json.dumps({"host": "box", "agents": agents, **more}))

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
        for event, _ in turn.told:
            known = records.get(event.agent) if isinstance(event, StatusChanged) else None
            if isinstance(event, StatusChanged) and known is not None and known.spawn == event.spawn and self.records:
                self.writes(**{event.agent: known.model_copy(update={"activity": event.status})})

    # --- turns ---

    def turn(self, *explain: str, after: float = 1.0, commits: bool = True, asks: Sequence[Command] = ()) -> Turn:
        self.now += timedelta(seconds=after)
        space = self.fleet_file.fleet.space
        commands = [*asks, *(Explain(agent=agent, id=f"r-{agent}") for agent in explain)]
        asked = [Asked(request_of(space, each, self.now.timestamp()), each) for each in commands]
        turn = Turn("monitor", self.now, poll=False, heard=[], asked=asked, memory=self.memory)
        self.service.step(turn)
        if commits:
            kept = json.loads(json.dumps(turn.kept))
            self.memory = {key: each for key, each in (self.memory | kept).items() if each is not None}
            self._record(turn)
        return turn

    def explains(self, agent: str) -> Reply:
        (_, reply) = self.turn(agent).answers[f"r-{agent}"]
        return reply


def told(turn: Turn) -> list[tuple[str, str]]:
    """Agent and status, or the kind of what is no change of it."""
    return [(getattr(event, "agent", ""), _what(event)) for event, _ in turn.told]


def _what(event: Event) -> str:
    return str(getattr(event, "status", getattr(event, "kind", "")))
