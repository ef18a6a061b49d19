"""A turn of the spawner made by hand: a fleet, what it remembers and what tmux shows."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from services.spawner.sessions.memory import AGENTS, AgentMemory, Ended, Phase, Running, SessionFacts
from services.spawner.view import SpawnerView
from shared.fleet import load_fleet
from shared.runtime.memory import Memory
from shared.runtime.turn import Turn
from shared.system.tmux import Pane
from tests.fakes.records import make_pane

BACKENDS = {
    "sleeper": {"binary": "sleep", "argv": ["{binary}", "1000"], "deliver": "arg"},
    "cat": {"binary": "cat", "argv": ["{binary}"], "deliver": "arg"},
}


def remembered(
    spawn: str = "s1", phase: Phase | None = None, *, deaths: Sequence[float] = (), **facts: Any
) -> AgentMemory:
    """An agent that runs, unless another phase is given; `facts` are those of its session."""
    return AgentMemory(phase=phase or Running(), session=SessionFacts(spawn=spawn, **facts), deaths=tuple(deaths))


def ended(spawn: str = "s1", **more: Any) -> AgentMemory:
    return remembered(spawn, Ended(), **more)


def pane(pane_id: str = "%1", session: str = "theirs", **facts: Any) -> Pane:
    known = {"agent": None, "spawn": None, "fleet": None, "command": "sleep", "path": "/"}
    return make_pane(**{"session": session, "pane_id": pane_id, **known, **facts})


def view(
    directory: Path,
    *,
    known: Mapping[str, AgentMemory] | None = None,
    panes: Mapping[str, Pane] | None = None,
    others: Sequence[Pane] = (),
) -> SpawnerView:
    path = directory / "fleet.yaml"
    path.write_text(json.dumps({"host": "box", "agents": {"builder": {}}, "backends": BACKENDS}))
    memory = {AGENTS.key(agent): AGENTS.dump(each) for agent, each in (known or {}).items()}
    turn = Turn("spawner", datetime.now(UTC), False, [], [], Memory(memory))
    return SpawnerView(turn, load_fleet(path), dict(panes or {}), others)
