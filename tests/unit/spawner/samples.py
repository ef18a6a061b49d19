"""A turn of the spawner made by hand: a fleet, what it remembers and what tmux shows."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from services.spawner.sessions.decision import AgentMemory
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
    memory = {f"agent:{agent}": asdict(each) for agent, each in (known or {}).items()}
    turn = Turn("spawner", datetime.now(UTC), False, [], [], Memory(memory))
    return SpawnerView(turn, load_fleet(path), dict(panes or {}), others)
