"""Gemini CLI: the conversation that the process opened last (measured with 0.61.0).

It holds no file open and writes its pid nowhere. But each time it opens a conversation, at its start and after
`/clear`, it writes a line with the time into the conversation's file; and the project's `logs.json` keeps each command
under the first conversation of the process that got it. The process is tied to its first conversation by its command
line, or by being the only one that can have begun it; to a later one by the `/clear` that led there. What another
process opened in the same directory is explained the same way. If anything stays unexplained, there is no answer.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from shared.agents.identity import ConversationIdentity, changed, conversation, home, json_in, option, others, selves
from shared.agents.transcript import READERS, at
from shared.system.processes import Process, Processes

HEAD = b'{"sessionId":'
HEAD_BYTES = 4096
LEADS_WITHIN_S = 5.0
"""How long after a logged command the next conversation is opened: 0.1 s on an idle machine."""


@dataclass(frozen=True, order=True)
class Opening:
    """A process began or resumed a conversation."""

    time: float
    conversation: str
    path: Path


@dataclass(frozen=True)
class Clearing:
    """A `/clear` in the process with this first conversation."""

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
            # Only these lines are parsed: conversations are long.
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


STARTS_WITHIN_S = 90.0
"""A later opening is not taken for a process's first one."""
SLACK_S = 0.1
"""The precision of start times."""


@dataclass(frozen=True)
class Candidate:
    """A process that works in this directory, and the conversation that its command line names."""

    started: float
    named: str | None


def identify(processes: Processes, agent: Process, workspace: Path) -> ConversationIdentity | None:
    own = selves(processes, agent)
    root = _root(processes, own[-1]) if own else None
    if root is None:
        return None
    worker = own[-1]  # it starts itself again as a child, to get more memory
    place = processes.cwd(worker) or workspace
    newest = READERS["gemini"].locate(processes.environment(worker), place, None)
    if newest is None:
        return None
    found = _last_of(
        _candidate(processes, worker),
        list(_rivals(processes, own, root, place)),
        openings(newest.parent, worker.started - LEADS_WITHIN_S),
        clearings(newest.parent.parent / "logs.json"),
    )
    return ConversationIdentity(found.conversation, found.path, place) if found is not None else None


def _last_of(
    own: Candidate, rivals: Sequence[Candidate], opened: Sequence[Opening], cleared: Sequence[Clearing]
) -> Opening | None:
    """The last opening of this process, if it is certain which openings are its own."""
    theirs = {rival.named for rival in rivals}
    led = _led([opening for opening in opened if opening.conversation not in theirs], cleared)
    if led is None:
        return None
    since = own.started - SLACK_S
    firsts = [opening for opening, leader in led.items() if leader is None and opening.time >= since]
    if len({opening.conversation for opening in firsts}) != 1:
        return None
    first = firsts[0]
    if own.named is None:
        is_late = first.time > own.started + STARTS_WITHIN_S
        if is_late or any(rival.named is None and rival.started <= first.time for rival in rivals):
            return None
    elif own.named != first.conversation:
        return None
    after = (opening for opening, leader in led.items() if leader == first.conversation and opening.time >= first.time)
    return max((*firsts, *after), key=lambda opening: opening.time)


def _led(opened: Sequence[Opening], cleared: Sequence[Clearing]) -> Mapping[Opening, str | None] | None:
    """For each opening, the first conversation of the process whose `/clear` led to it; None for a first opening.

    One command leads to one opening. No answer if two processes may be confused.
    """
    led: dict[Opening, str | None] = {}
    left = sorted(cleared, key=lambda clearing: clearing.time)
    for opening in opened:
        before = [clearing for clearing in left if clearing.leads_to(opening)]
        if len({clearing.first for clearing in before}) > 1:
            return None
        led[opening] = before[0].first if before else None
        if before:
            left.remove(before[0])
    return led


def _rivals(processes: Processes, own: Sequence[Process], root: Path, place: Path) -> Iterator[Candidate]:
    """Other processes that may write here, including those whose details can't be read."""
    for process in others(processes, own):
        if _root(processes, process) in (root, None) and processes.cwd(process) in (place, None):
            yield _candidate(processes, process)


def _candidate(processes: Processes, process: Process) -> Candidate:
    given = option(processes.arguments(process), "--session-id", "--resume", "-r")
    try:
        named = str(UUID(given)) if given else None
    except ValueError:
        named = None  # `latest`, or a number in its list
    return Candidate(process.started, named)


def _root(processes: Processes, process: Process) -> Path | None:
    return home(processes.environment(process), "GEMINI_CLI_HOME", "")
