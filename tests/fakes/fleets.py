"""A fleet file that a test writes and edits, read by the real loader."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shared.fleet import FleetFile


class WrittenFleet:
    """`fleet.yaml` in a directory, for the host `box`, with an existing home."""

    def __init__(self, directory: Path, agents: Mapping[str, Any], **more: Any) -> None:
        self.path = directory / "fleet.yaml"
        self.declare(agents, **more)
        self.file = FleetFile(self.path)
        self.file.fleet.home.mkdir(mode=0o700, exist_ok=True)

    def declare(self, agents: Mapping[str, Any], **more: Any) -> None:
        """Write it, or edit it."""
        self.path.write_text(json.dumps({"host": "box", "agents": agents, **more}))

    def opened(self) -> FleetFile:
        """The file as a new process reads it."""
        return FleetFile(self.path)
