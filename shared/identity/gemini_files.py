"""What Gemini CLI leaves in a project's directory: when conversations were opened, and left by `/clear`."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shared.identity.reading import changed, conversation, json_in
from shared.transcripts.entry import at

HEAD = b'{"sessionId":'
HEAD_BYTES = 4096
LEADS_WITHIN_S = 5.0
"""A command is logged, and then the next conversation is opened: a tenth of a second later on an idle machine."""


@dataclass(frozen=True, order=True)
class Opening:
    """A process began or took up a conversation."""

    time: float
    conversation: str
    path: Path


@dataclass(frozen=True)
class Clearing:
    """`/clear` was given to the process whose first conversation this was."""

    time: float
    first: str

    def leads_to(self, opening: Opening) -> bool:
        return 0 <= opening.time - self.time <= LEADS_WITHIN_S


def openings(chats: Path, since: float) -> list[Opening]:
    """All openings since a time, the earliest first."""
    try:
        files = [path for path in chats.glob("*.jsonl") if (changed(path) or 0.0) >= since]
    except OSError:
        return []
    return sorted(opening for path in files for opening in _in(path) if opening.time >= since)


def _in(path: Path) -> Iterator[Opening]:
    try:
        with path.open("rb") as file:
            # Nothing else is parsed, however long the conversation is.
            heads = [line for line in file if line.startswith(HEAD) and len(line) <= HEAD_BYTES]
    except OSError:
        return
    for line in heads:
        try:
            head = json.loads(line)
        except (ValueError, RecursionError):
            continue
        said, time = conversation(head.get("sessionId")), at(head.get("startTime"))
        if said is not None and time is not None and head.get("kind", "main") == "main":
            yield Opening(time.timestamp(), said, path)


def clearings(log: Path) -> list[Clearing]:
    entries = json_in(log)
    found = (_clearing(entry) for entry in (entries if isinstance(entries, list) else []))
    return [clearing for clearing in found if clearing is not None]


def _clearing(entry: object) -> Clearing | None:
    if not isinstance(entry, dict) or not str(entry.get("message")).startswith("/clear"):
        return None
    first, time = conversation(entry.get("sessionId")), at(entry.get("timestamp"))
    return Clearing(time.timestamp(), first) if first is not None and time is not None else None
