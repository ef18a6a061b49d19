"""The agents' own records of their conversations: proof that a text arrived, and what a restart can take up again.

They are read and never written; only `delete` with its word for it removes one.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.spawner.decide import Known
from services.spawner.scene import Scene
from shared.errors import MusterError
from shared.fleet.needs import variables_of
from shared.ids import is_conversation
from shared.transcripts import READERS, Reader, same_prompt


@dataclass(frozen=True)
class Search:
    """What came of looking for a text."""

    readable: bool
    """Whether the agent keeps a record that can be read."""
    conversation: str | None = None
    """Where it was found."""


@dataclass(frozen=True)
class Place:
    """Where to look for an agent's records."""

    reader: Reader
    env: Mapping[str, str]
    workspace: Path
    conversation: str | None

    def holds(self, path: Path) -> str | None:
        """Which conversation a file holds. What could pass for an option of the agent's program is none."""
        found = self.reader.conversation_in(path, self.workspace)
        return found if found is not None and is_conversation(found) else None

    def newest(self) -> Path | None:
        return self.reader.locate(self.env, self.workspace, None)

    def own(self) -> Path | None:
        return self.reader.locate(self.env, self.workspace, self.conversation) if self.conversation else None


class Records:
    def __init__(self, own: Mapping[str, str] | None = None) -> None:
        self._own = dict(os.environ if own is None else own)

    def mark(self, scene: Scene, agent: str) -> dict[str, int] | None:
        """Where the agent's records end now, by file; None where there are none that can be read."""
        place = self._place(scene, agent)
        if place is None:
            return None
        paths = {path for path in (place.own(), place.newest()) if path is not None}
        return {str(path): place.reader.mark(path, place.conversation) for path in paths}

    def search(self, scene: Scene, agent: str, mark: Any, text: str) -> Search:
        """Look for a text that was sent since the mark."""
        place = self._place(scene, agent)
        if place is None or mark is None:
            return Search(readable=False)
        for path in {path for path in (place.own(), place.newest()) if path is not None}:
            conversation = place.holds(path)
            sent, _ = place.reader.user_texts(path, mark.get(str(path), 0), conversation)
            if any(same_prompt(text, each) for each in sent):
                return Search(readable=True, conversation=conversation)
        return Search(readable=True)

    def conversation(self, scene: Scene, agent: str, known: Known) -> str | None:
        """The conversation that the agent was last in and that is still there; None when that can't be told."""
        place = self._place(scene, agent)
        if place is None:
            return known.conversation
        if place.own() is not None:
            return place.conversation
        path = place.newest()
        if path is None or scene.shares_workspace(agent, scene.backend_name(agent), place.workspace):
            return None
        try:
            is_its_own = path.stat().st_mtime >= known.started
        except OSError:
            return None
        return place.holds(path) if is_its_own else None

    def purge(self, scene: Scene, agent: str, conversation: str) -> Path | None:
        """Remove the file of one conversation, if the agent keeps it in one of its own."""
        place = self._place(scene, agent)
        path = place.reader.locate(place.env, place.workspace, conversation) if place else None
        if path is None or path.suffix == ".db":
            return None
        try:
            path.unlink()
        except OSError:
            return None
        return path

    def _place(self, scene: Scene, agent: str) -> Place | None:
        known = scene.known(agent)
        try:
            backend = scene.backend(agent)
            reader = READERS.get(backend.transcript or "")
            if reader is None or not known.workspace:
                return None
            declared = agent in scene.fleet.agents
            env = variables_of(scene.fleet, agent, backend, self._own) if declared else dict(self._own)
        except MusterError:
            return None
        return Place(reader, env, Path(known.workspace), known.conversation)
