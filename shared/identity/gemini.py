"""Gemini CLI: the conversation that the process has opened last (measured with 0.61.0).

It holds no file open and writes its number nowhere. But each time that it opens a conversation, at its start and after
`/clear`, it writes a line with the time into the conversation's file; and `logs.json` of the project keeps each command
under the first conversation of the process that was given it. The process is tied to its first conversation by its
command line, or by being the only one that can have begun it; and to a later one by the `/clear` that led there. What
another process has opened in the same directory is explained in the same way. What nobody explains leaves no answer.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from shared.identity.gemini_files import LEADS_WITHIN_S, Clearing, Opening, clearings, openings
from shared.identity.identity import Identity
from shared.identity.reading import home, option
from shared.identity.relatives import others, selves
from shared.processes import Process, Processes
from shared.transcripts import READERS

STARTS_WITHIN_S = 90.0
"""A process opens its first conversation within this time, or is not recognised by it."""
SLACK_S = 0.1
"""A process's start is known to a hundredth of a second."""


@dataclass(frozen=True)
class Candidate:
    """A process that works in this directory, and the conversation that its command line names."""

    started: float
    named: str | None


def identify(processes: Processes, agent: Process, workspace: Path) -> Identity | None:
    own = selves(processes, agent)
    root = _root(processes, own[-1]) if own else None
    if root is None:
        return None
    worker = own[-1]  # it starts itself anew, as a child, to have more memory
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
    return Identity(found.conversation, found.path, place) if found is not None else None


def _last_of(
    own: Candidate, rivals: Sequence[Candidate], opened: Sequence[Opening], cleared: Sequence[Clearing]
) -> Opening | None:
    """The last opening that is this process's own, if it is certain which ones are."""
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
    """For each opening the first conversation of the process whose `/clear` led to it, and None for a first one.

    One command leads to one opening. No answer where those of two processes may be mixed up.
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
    """Others that may write here; what can't be seen of a process counts against certainty."""
    for process in others(processes, own):
        if _root(processes, process) in (root, None) and processes.cwd(process) in (place, None):
            yield _candidate(processes, process)


def _candidate(processes: Processes, process: Process) -> Candidate:
    given = option(processes.arguments(process), "--session-id", "--resume", "-r")
    try:
        named = str(UUID(given)) if given else None
    except ValueError:
        named = None  # `latest`, or a place in its list
    return Candidate(process.started, named)


def _root(processes: Processes, process: Process) -> Path | None:
    return home(processes.environment(process), "GEMINI_CLI_HOME", "")
