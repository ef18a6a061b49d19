"""A turn of the spawner made by hand: a fleet, what it remembers and what tmux shows."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from services.spawner.decide import Known
from services.spawner.scene import Scene
from shared.fleet import load_fleet
from shared.tmux import Pane
from shared.turn import Turn

BACKENDS = {
    "sleeper": {"binary": "sleep", "argv": ["{binary}", "1000"], "deliver": "arg"},
    "cat": {"binary": "cat", "argv": ["{binary}"], "deliver": "arg"},
}


def pane(pane_id: str = "%1", session: str = "theirs", **facts: Any) -> Pane:
    given: dict[str, Any] = {"agent": None, "spawn": None, "fleet": None, "command": "sleep", "dead": False}
    return Pane(
        session=session,
        session_id="$1",
        pane_id=pane_id,
        pid=7,
        dead_status=None,
        path="/",
        title="",
        created=1,
        activity=1,
        **{**given, **facts},
    )


def scene(
    directory: Path,
    *,
    known: Mapping[str, Known] | None = None,
    panes: Mapping[str, Pane] | None = None,
    others: Sequence[Pane] = (),
) -> Scene:
    path = directory / "fleet.yaml"
    path.write_text(json.dumps({"host": "box", "agents": {"builder": {}}, "backends": BACKENDS}))
    memory = {f"agent:{agent}": asdict(each) for agent, each in (known or {}).items()}
    turn = Turn("spawner", datetime.now(UTC), False, [], [], memory)
    return Scene(turn, load_fleet(path), dict(panes or {}), others)
