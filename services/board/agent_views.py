"""What the page shows of one agent when it is asked: comments, timeline, evidence, transcript, record."""

import stat
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from shlex import quote
from typing import Any

from registry import AgentRecord
from services.board.cards import loop_of
from services.board.documents import comment_document
from services.board.memory import COMMENTS
from services.board.page_commands import PageCommands
from shared.agents.transcript import READERS, TranscriptEntry
from shared.client.transcript_place import TranscriptPlace
from shared.contract.commands import Explain
from shared.contract.events.board import CardObserved
from shared.contract.topics import (
    AGENT_ACTIVITY,
    AGENT_DRIFT,
    AGENT_LIFECYCLE,
    CARD_COMMENT,
    LOOP_EVENT,
    MalformedDocument,
    locate,
)
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.messaging.journal import JournalEntry, JournalReader
from shared.runtime.memory import Memory

TIMELINE = (AGENT_LIFECYCLE, AGENT_DRIFT, AGENT_ACTIVITY, CARD_COMMENT)
MOST_ENTRIES = 300
SCANNED_PER_SERVICE = 20_000
"""How many of a service's newest events are looked through for those of one agent."""
MOST_TRANSCRIPT_BYTES = 32 * 1024 * 1024
TRANSCRIPT_ENTRIES, TRANSCRIPT_CHARACTERS = 100, 4000
EXPLAINED_WITHIN_S = 8.0
COMMITTED_WITHIN_S = 1.0


class AgentViews:
    """Answers questions about agents. For any thread; each answer opens what it needs."""

    def __init__(
        self,
        fleet: Callable[[], Fleet],
        records: Callable[[], Mapping[str, AgentRecord]],
        commands: PageCommands,
        told: Callable[[str], int],
    ) -> None:
        """`told`: the number of the newest comment on an agent's card that pages have heard of."""
        self._fleet, self._records, self._commands, self._told = fleet, records, commands, told

    def about(self, agent: str, what: str) -> dict[str, Any] | None:
        """The answer; None if there is no such agent or question."""
        fleet, record = self._fleet(), self._records().get(agent)
        if record is None and agent not in fleet.agents:
            return None
        match what:
            case "comments":
                return {"comments": self._comments(fleet, agent)}
            case "timeline":
                return {"entries": self._timeline(fleet, agent)}
            case "evidence":
                return self._evidence(agent)
            case "transcript":
                return _transcript(fleet, agent, record)
            case "record":
                return {"record": record.model_dump(mode="json") if record else None, "attach": _attach(fleet, record)}
        return None

    def _comments(self, fleet: Fleet, agent: str) -> list[dict[str, Any]]:
        """A page may ask before the turn that told it of a comment is committed: then that is waited for."""
        told, deadline = self._told(agent), time.monotonic() + COMMITTED_WITHIN_S
        with closing(JournalReader(fleet.journal, "board")) as journal:
            while True:
                found = Memory(journal.memory_under(COMMENTS.key(agent))).find(COMMENTS, agent)
                comments = found.comments if found is not None else ()
                if (comments and comments[-1].number >= told) or not told or time.monotonic() > deadline:
                    return [comment_document(agent, each) for each in comments]
                time.sleep(0.02)

    def _timeline(self, fleet: Fleet, agent: str) -> list[dict[str, Any]]:
        """The newest events of an agent, newest first."""
        loop = loop_of(fleet, agent)
        rows = (*TIMELINE, LOOP_EVENT) if loop is not None else TIMELINE
        topics = [row.name(fleet.space, **{row.ids[0]: str(loop) if row is LOOP_EVENT else agent}) for row in rows]
        with closing(JournalReader(fleet.journal, "board")) as journal:
            entries = journal.newest_on(topics, MOST_ENTRIES, SCANNED_PER_SERVICE)
        # A comment on an event that is in the timeline itself would be the same line again.
        told = frozenset(row.family for row in rows if row is not CARD_COMMENT)
        return [shown for entry in entries if (shown := _shown(entry, fleet.space.prefix, told)) is not None]

    def _evidence(self, agent: str) -> dict[str, Any]:
        """What `muster explain` says."""
        command_id = self._commands.submit(Explain(agent=agent), "the page")
        deadline = time.monotonic() + EXPLAINED_WITHIN_S
        while (reply := self._commands.reply(command_id)) is None:
            if time.monotonic() > deadline:
                return {"said": "the monitor gives no answer; `muster status` tells whether it runs", "found": None}
            time.sleep(0.05)
        return {"said": "" if reply.ok else reply.said, "found": reply.result if reply.ok else None}


def _shown(entry: JournalEntry, prefix: str, told: Collection[str]) -> dict[str, Any] | None:
    located = locate(entry.topic, prefix)
    if located is None:
        return None
    try:
        envelope = located[1].read(entry.payload)
    except MalformedDocument:
        return None
    event = envelope.data
    if isinstance(event, CardObserved) and event.about.partition(".")[0] in told:
        return None
    return {
        "time": envelope.time.isoformat(),
        "family": located[1].family,
        "kind": event.word(),
        "tone": getattr(event, "tells", event.tone).value,
        "text": event.sentence(),
    }


def _transcript(fleet: Fleet, agent: str, record: AgentRecord | None) -> dict[str, Any]:
    """The end of its conversation; `said` tells why there is none."""
    nothing = {"path": "", "conversation": "", "entries": []}
    try:
        place = TranscriptPlace.of(fleet, agent, record)
        path, conversation = place.find()
        found = path.stat()
    except (MusterError, OSError) as error:
        return {**nothing, "said": str(error)}
    size = found.st_size
    if not stat.S_ISREG(found.st_mode):  # a pipe might never end
        return {**nothing, "path": str(path), "said": f"{path} is no file"}
    if size > MOST_TRANSCRIPT_BYTES:
        said = f"its transcript has {size >> 20} MB, too much for this page; run: muster transcript {agent} --last 5"
        return {**nothing, "path": str(path), "said": said}
    try:
        last = deque(READERS[place.format].entries(path, conversation), maxlen=TRANSCRIPT_ENTRIES)
    except OSError as error:
        return {**nothing, "path": str(path), "said": f"{path} can't be read: {error.strerror}"}
    return {"said": "", "path": str(path), "conversation": conversation, "entries": [_entry(each) for each in last]}


def _entry(entry: TranscriptEntry) -> dict[str, Any]:
    text = entry.text
    if len(text) > TRANSCRIPT_CHARACTERS:
        text = f"{text[:TRANSCRIPT_CHARACTERS]}… ({len(text) - TRANSCRIPT_CHARACTERS} more characters)"
    return {
        "who": entry.who.value,
        "text": text,
        "time": entry.time.isoformat() if entry.time is not None else None,
        "tool": entry.tool,
        "failed": entry.failed,
    }


def _attach(fleet: Fleet, record: AgentRecord | None) -> str:
    """The command that shows an agent's own terminal; empty while it has none."""
    if record is None or not record.is_running or not record.session:
        return ""
    socket = fleet.declared.tmux.socket
    server = "" if socket == "default" else f" {'-S' if '/' in socket else '-L'} {quote(socket)}"
    # Anybody may rename a session, and a person pastes this. In quotes also since zsh has a meaning for `=`.
    session = record.session.replace("'", "'\"'\"'")
    return f"tmux{server} attach -t '={session}'"
