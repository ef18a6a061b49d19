"""How a loop goes through its phases. Pure.

A phase ends when its status file gets a done line. Done lines that were there when the phase began are stale: they
count only after they were removed once, unless the line or its file names the phase.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from shared.errors import MusterError
from shared.runtime.memory import MemoryTable
from shared.runtime.moments import Moment


class NoSuchPhase(MusterError):
    """The loop has no phase to go to."""


@dataclass(frozen=True)
class PhaseProgress:
    """How far a loop is."""

    number: int = 0
    """The current phase, or the last one of a complete loop, counted from 1; 0: the loop has not begun."""
    phase: str = ""
    """Its name. The fleet file may have given it another number since."""
    since: Moment = 0.0
    of: int = 0
    """How many phases there were when it began."""
    complete: bool = False
    stale: tuple[str, ...] = ()
    """Done lines that were in the status file when the phase began."""
    reported_line: str = ""
    """Where people end the phases: the done line that was reported."""
    at_once: bool = False
    """Whether a person asked for the phase: no agent gets time to finish."""


PROGRESS = MemoryTable("progress:", PhaseProgress)
"""By loop."""


@dataclass(frozen=True)
class PhaseBegun:
    """A phase began; `was` is the one before."""

    number: int
    phase: str
    was: str | None
    reason: str


@dataclass(frozen=True)
class PhaseFinished:
    """The phase is done, and a person has to begin the next one."""

    number: int
    phase: str
    reason: str


@dataclass(frozen=True)
class LoopFinished:
    reason: str


Change = PhaseBegun | PhaseFinished | LoopFinished


@dataclass(frozen=True)
class PhaseRules:
    names: Sequence[str]
    done_lines: Callable[[int], Sequence[str]]
    """The done lines on the branch now, for the number of a phase."""
    names_its_phase: bool = False
    """Whether a done line or its file names the phase: then none is stale."""
    advance: bool = True
    """Whether a done line begins the next phase."""


def decide(progress: PhaseProgress, rules: PhaseRules, now: float) -> tuple[PhaseProgress, list[Change]]:
    """The progress now, and what changed. Several phases may be done at once."""
    changes: list[Change] = []
    while (step := _step(progress, rules, now)) is not None:
        progress, change = step
        changes.append(change)
    return progress, changes


def renumbered(progress: PhaseProgress, names: Sequence[str]) -> PhaseProgress:
    """The progress in the phases that are declared now: the phase is found by its name, else by its number."""
    if not progress.number or not names:
        return progress
    if progress.phase in names:
        return replace(progress, number=names.index(progress.phase) + 1)
    number = min(progress.number, len(names))
    return replace(progress, number=number, phase=names[number - 1])


def without_removed_lines(progress: PhaseProgress, done_lines: Sequence[str]) -> PhaseProgress:
    """Stale lines that the status file no longer has count when they come again."""
    stale = tuple(line for line in progress.stale if line in done_lines)
    return progress if stale == progress.stale else replace(progress, stale=stale)


def next_phase(progress: PhaseProgress, rules: PhaseRules, now: float, who: str) -> tuple[PhaseProgress, list[Change]]:
    """A person (`who`) ends the phase."""
    progress = renumbered(progress, rules.names)
    if not rules.names:
        raise NoSuchPhase("this loop has no phases")
    if progress.complete and progress.number >= len(rules.names):
        raise NoSuchPhase("the loop is complete: there is no phase after the last one; `phase set` begins one again")
    if progress.number >= len(rules.names):
        ended = replace(progress, complete=True, since=_later(progress, now), at_once=True)
        return ended, [LoopFinished(f"ended by {who}")]
    begun, change = _begin(progress, rules, progress.number + 1, f"asked for by {who}", now, by_person=True)
    return begun, [change]


def set_phase(
    progress: PhaseProgress, rules: PhaseRules, wanted: str, now: float, who: str
) -> tuple[PhaseProgress, list[Change]]:
    """A person (`who`) begins a phase, by its name or number."""
    names = list(rules.names)
    progress = renumbered(progress, names)
    if not names:
        raise NoSuchPhase("this loop has no phases")
    if wanted in names:
        number = names.index(wanted) + 1
    elif wanted.isascii() and wanted.isdigit() and len(wanted) <= 6 and 1 <= int(wanted) <= len(names):
        number = int(wanted)
    else:
        raise NoSuchPhase(f"there is no phase {wanted!r}; there are: {', '.join(names)}, or 1 to {len(names)}")
    begun, change = _begin(progress, rules, number, f"asked for by {who}", now, by_person=True)
    return begun, [change]


def _step(progress: PhaseProgress, rules: PhaseRules, now: float) -> tuple[PhaseProgress, Change] | None:
    names = rules.names
    if not names:
        return None
    if not progress.number:
        return _begin(progress, rules, 1, "the loop begins", now)
    if not progress.complete and progress.phase not in names and len(names) < progress.of:
        return _taken_out(progress, rules, now)
    progress = renumbered(progress, names)
    if progress.complete:
        if progress.number >= len(names):
            return None
        return _begin(progress, rules, progress.number + 1, "a phase was added", now)
    fresh = [line for line in rules.done_lines(progress.number) if line not in progress.stale]
    if not fresh:
        return None
    reason = f"the status file says {fresh[0]!r}"
    if not rules.advance:
        if progress.reported_line == fresh[0]:
            return None
        return replace(progress, reported_line=fresh[0]), PhaseFinished(progress.number, progress.phase, reason)
    if progress.number >= len(names):
        return replace(progress, complete=True, since=_later(progress, now), at_once=False), LoopFinished(reason)
    return _begin(progress, rules, progress.number + 1, reason, now)


def _taken_out(progress: PhaseProgress, rules: PhaseRules, now: float) -> tuple[PhaseProgress, Change]:
    """The phase is no longer declared: the one in its place begins."""
    reason = f"the phase {progress.phase!r} was taken out of the fleet file"
    if progress.number <= len(rules.names):
        return _begin(progress, rules, progress.number, reason, now)
    number = len(rules.names)
    ended = replace(
        progress, number=number, phase=rules.names[-1], complete=True, since=_later(progress, now), of=number
    )
    return ended, LoopFinished(reason)


def _later(progress: PhaseProgress, now: float) -> float:
    """Two phases may begin at the same time; `since` must differ, since it tells their actions apart."""
    return max(now, progress.since + 0.001)


def _begin(
    progress: PhaseProgress, rules: PhaseRules, number: int, reason: str, now: float, *, by_person: bool = False
) -> tuple[PhaseProgress, Change]:
    stale = () if rules.names_its_phase and not by_person else tuple(rules.done_lines(number))
    phase = rules.names[number - 1]
    begun = PhaseProgress(number, phase, _later(progress, now), len(rules.names), stale=stale, at_once=by_person)
    return begun, PhaseBegun(number, phase, progress.phase or None, reason)
