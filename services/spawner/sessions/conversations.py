"""The agents' own records of their conversations: proof that a text arrived, and what a restart can resume.

They are read and never written; only `delete --purge-conversation` removes one. Which conversation an agent is in comes
from the reconciler's `identified` events of this host and this session.
"""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from services.spawner.sessions.memory import AgentMemory
from services.spawner.view import SpawnerView
from shared.agents.transcript import READERS, TranscriptFormat, is_silent, same_prompt
from shared.contract.events.drift import Identified
from shared.contract.ids import is_conversation
from shared.errors import MusterError
from shared.fleet.launch_needs import variables_of
from shared.messaging.cursors import ReceivedEvent

CLOCKS_DIFFER_S = 1.0
"""Some agents write times in whole seconds."""


@dataclass(frozen=True)
class RecordSearch:
    """The result of looking for a text."""

    readable: bool
    """Whether the agent keeps a record that can be read."""
    conversation: str | None = None
    """The conversation in which it was found."""


@dataclass(frozen=True)
class RecordPlace:
    """Where to look for an agent's records."""

    reader: TranscriptFormat
    env: Mapping[str, str]
    workspace: Path
    conversation: str | None

    def holds(self, path: Path) -> str | None:
        """The conversation in a file. An id that the agent's program could take for an option does not count."""
        found = self.reader.conversation_in(path, self.workspace)
        return found if found is not None and is_conversation(found) else None

    def newest(self) -> Path | None:
        return self.reader.locate(self.env, self.workspace, None)

    def own(self) -> Path | None:
        return self.reader.locate(self.env, self.workspace, self.conversation) if self.conversation else None


class ConversationRecords:
    def __init__(self, own: Mapping[str, str] | None = None) -> None:
        self._own = dict(os.environ if own is None else own)

    def mark(self, view: SpawnerView, agent: str) -> dict[str, Any] | None:
        """How long each of the agent's records is now; None where none can be read."""
        place = self._place(view, agent)
        if place is None:
            return None
        paths = {path for path in (place.own(), place.newest()) if path is not None}
        return {"at": view.now, "files": {str(path): place.reader.mark(path, place.conversation) for path in paths}}

    def search(self, view: SpawnerView, agent: str, mark: Any, text: str) -> RecordSearch:
        """Look for a text that was sent since the mark, in the agent's own conversation.

        Where that is not known, the newest one of the workspace counts, unless it may be another agent's.
        """
        place = self._place(view, agent)
        if place is None or mark is None:
            return RecordSearch(readable=False)
        shared = view.shares_workspace(agent, view.backend_name(agent), place.workspace)
        if shared and place.conversation is None:
            return RecordSearch(readable=False)
        path = place.newest() if place.conversation is None else place.own()
        conversation = place.conversation if place.conversation or path is None else place.holds(path)
        if path is None or conversation is None:
            return RecordSearch(readable=True)
        start = _start(mark, path, place.reader, conversation)
        sent = place.reader.user_texts(path, start, conversation)[0] if start is not None else []
        found = any(same_prompt(text, each) for each in sent)
        return RecordSearch(readable=True, conversation=conversation if found else None)

    def conversation(self, view: SpawnerView, agent: str, known: AgentMemory) -> str | None:
        """The agent's last conversation, if it still exists and is not silent; None when that can't be told."""
        place = self._place(view, agent)
        if place is None:
            return known.session.conversation
        if (own := place.own()) is not None:
            return None if is_silent(place.reader, own, place.conversation) else place.conversation
        path = place.newest()
        if path is None or view.shares_workspace(agent, view.backend_name(agent), place.workspace):
            return None
        try:
            is_its_own = view.turn.corrected(path.stat().st_mtime) >= known.session.started
        except OSError:
            return None
        found = place.holds(path) if is_its_own else None
        return None if found is not None and is_silent(place.reader, path, found) else found

    def is_silent(self, view: SpawnerView, agent: str) -> bool:
        """Whether nothing was said yet in the agent's conversation, or in the newest one if its own is not known.

        False where that can't be told.
        """
        place = self._place(view, agent)
        if place is None:
            return False
        path = place.own() if place.conversation else place.newest()
        if path is None:
            return False
        return is_silent(place.reader, path, place.conversation or place.holds(path))

    def purge(self, view: SpawnerView, agent: str, conversation: str) -> Path | None:
        """Remove the file of one conversation, if it is in a file of its own."""
        place = self._place(view, agent)
        path = place.reader.locate(place.env, place.workspace, conversation) if place else None
        if path is None or path.suffix == ".db":
            return None
        try:
            path.unlink()
        except OSError:
            return None
        return path

    def _place(self, view: SpawnerView, agent: str) -> RecordPlace | None:
        known = view.known(agent)
        try:
            backend = view.backend(agent)
            reader = READERS.get(backend.transcript or "")
            if reader is None or not known.session.workspace:
                return None
            declared = agent in view.fleet.agents
            env = variables_of(view.fleet, agent, backend, self._own) if declared else dict(self._own)
        except MusterError:
            return None
        return RecordPlace(reader, env, Path(known.session.workspace), known.session.conversation)


def _start(mark: Mapping[str, Any], path: Path, reader: TranscriptFormat, conversation: str) -> int | None:
    """The position in a file from which everything came after the mark; None where that can't be told.

    A file that was not marked is read from its beginning if it begins after the mark.
    """
    if str(path) in mark["files"]:
        return int(mark["files"][str(path)])
    begun = next((entry.time for entry in reader.entries(path, conversation) if entry.time is not None), None)
    return 0 if begun is not None and begun.timestamp() >= mark["at"] - CLOCKS_DIFFER_S else None


def note_identified(view: SpawnerView, events: Iterable[ReceivedEvent]) -> None:
    """Remember the conversations that the reconciler has identified."""
    for received in events:
        found = received.envelope.data
        if received.host != view.fleet.space.host or not isinstance(found, Identified):
            continue
        known = view.known(found.agent)
        if known.spawn == found.spawn and known.session.conversation != found.conversation:
            view.remember(found.agent, known.with_session(conversation=found.conversation))
