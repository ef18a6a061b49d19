"""How a loop goes through its phases. Pure.

A phase ends when its status file gets a line that says so. Lines that stood there when the phase began are of an
earlier one: they count only after they were gone, unless a line or its file names its phase.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from shared.errors import MusterError

Read = Callable[[int], Sequence[str]]
"""The lines by which the phase of a number (counted from 1) is done, as they stand on the branch now."""


class NoSuchPhase(MusterError):
    """What was asked for can't be done to this loop."""


@dataclass(frozen=True)
class PhaseProgress:
    """How far a loop is. Kept over restarts."""

    number: int = 0
    """Of the phase that it is in, or that was its last, counted from 1; 0: it has not begun."""
    phase: str = ""
    """The name of that phase: the fleet file may have others before it by now."""
    since: float = 0.0
    of: int = 0
    """How many phases there were when it began."""
    complete: bool = False
    stale: tuple[str, ...] = ()
    """Lines that stood in the status file when the phase began."""
    told: str = ""
    """The line of which was told that the phase is done, where it is left to people to go on."""
    at_once: bool = False
    """Whether a person asked for the phase: nobody is waited for."""


@dataclass(frozen=True)
class PhaseBegun:
    """A phase began; `was` is the one before."""

    number: int
    phase: str
    was: str | None
    reason: str


@dataclass(frozen=True)
class PhaseFinished:
    """The phase is done, and a person has to say that the next one begins."""

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
    read: Read
    by_name: bool = False
    """Whether lines name their phase, so that one which stands there already is meant."""
    advance: bool = True


def decide(course: PhaseProgress, rules: PhaseRules, now: float) -> tuple[PhaseProgress, list[Change]]:
    """Where the loop is now, and what changed on the way. Several phases may have been done at once."""
    changes: list[Change] = []
    while (step := _step(course, rules, now)) is not None:
        course, change = step
        changes.append(change)
    return course, changes


def placed(course: PhaseProgress, names: Sequence[str]) -> PhaseProgress:
    """The course by the phases as they are declared now: found by its name, else by its number."""
    if not course.number or not names:
        return course
    if course.phase in names:
        return replace(course, number=names.index(course.phase) + 1)
    number = min(course.number, len(names))
    return replace(course, number=number, phase=names[number - 1])


def is_stale_no_more(course: PhaseProgress, markers: Sequence[str]) -> PhaseProgress:
    """The status file was seen without some of the lines: if they come again, they are meant."""
    stale = tuple(line for line in course.stale if line in markers)
    return course if stale == course.stale else replace(course, stale=stale)


def next_phase(course: PhaseProgress, rules: PhaseRules, now: float, who: str) -> tuple[PhaseProgress, list[Change]]:
    """A person ends the phase."""
    course = placed(course, rules.names)
    if not rules.names:
        raise NoSuchPhase("this loop has no phases")
    if course.complete and course.number >= len(rules.names):
        raise NoSuchPhase("the loop is complete: there is no phase after the last one; `phase set` begins one again")
    if course.number >= len(rules.names):
        ended = replace(course, complete=True, since=_later(course, now), at_once=True)
        return ended, [LoopFinished(f"ended by {who}")]
    return _begin(course, rules, course.number + 1, f"asked for by {who}", now, by_person=True)


def set_phase(
    course: PhaseProgress, rules: PhaseRules, wanted: str, now: float, who: str
) -> tuple[PhaseProgress, list[Change]]:
    """A person begins a phase, by its name or number."""
    names = list(rules.names)
    course = placed(course, names)
    if not names:
        raise NoSuchPhase("this loop has no phases")
    if wanted in names:
        number = names.index(wanted) + 1
    elif wanted.isascii() and wanted.isdigit() and len(wanted) <= 6 and 1 <= int(wanted) <= len(names):
        number = int(wanted)
    else:
        raise NoSuchPhase(f"there is no phase {wanted!r}; there are: {', '.join(names)}, or 1 to {len(names)}")
    return _begin(course, rules, number, f"asked for by {who}", now, by_person=True)


def _step(course: PhaseProgress, rules: PhaseRules, now: float) -> tuple[PhaseProgress, Change] | None:
    names = rules.names
    if not names:
        return None
    if not course.number:
        return _only(_begin(course, rules, 1, "the loop begins", now))
    if not course.complete and course.phase not in names and len(names) < course.of:
        return _taken_out(course, rules, now)
    course = placed(course, names)
    if course.complete:
        if course.number >= len(names):
            return None
        return _only(_begin(course, rules, course.number + 1, "a phase was added", now))
    fresh = [line for line in rules.read(course.number) if line not in course.stale]
    if not fresh:
        return None
    reason = f"the status file says {fresh[0]!r}"
    if not rules.advance:
        if course.told == fresh[0]:
            return None
        return replace(course, told=fresh[0]), PhaseFinished(course.number, course.phase, reason)
    if course.number >= len(names):
        return replace(course, complete=True, since=_later(course, now), at_once=False), LoopFinished(reason)
    return _only(_begin(course, rules, course.number + 1, reason, now))


def _taken_out(course: PhaseProgress, rules: PhaseRules, now: float) -> tuple[PhaseProgress, Change]:
    """The phase that it was in is not declared any more: what took its place begins."""
    reason = f"the phase {course.phase!r} was taken out of the fleet file"
    if course.number <= len(rules.names):
        return _only(_begin(course, rules, course.number, reason, now))
    number = len(rules.names)
    ended = replace(course, number=number, phase=rules.names[-1], complete=True, since=_later(course, now), of=number)
    return ended, LoopFinished(reason)


def _later(course: PhaseProgress, now: float) -> float:
    """Two phases may begin in one moment, and each is another: what is to be done for them is told apart by when."""
    return max(now, course.since + 0.001)


def _only(begun: tuple[PhaseProgress, list[Change]]) -> tuple[PhaseProgress, Change]:
    course, (change,) = begun
    return course, change


def _begin(
    course: PhaseProgress, rules: PhaseRules, number: int, reason: str, now: float, *, by_person: bool = False
) -> tuple[PhaseProgress, list[Change]]:
    stale = () if rules.by_name and not by_person else tuple(rules.read(number))
    phase = rules.names[number - 1]
    begun = PhaseProgress(number, phase, _later(course, now), len(rules.names), stale=stale, at_once=by_person)
    return begun, [PhaseBegun(number, phase, course.phase or None, reason)]
