"""Progress and rules of a loop with three phases, and status files with the lines that a test names."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from services.handoff.loops.phases import (
    Change,
    LoopFinished,
    PhaseBegun,
    PhaseFinished,
    PhaseProgress,
    PhaseRules,
    decide,
)
from tests.unit.handoff.samples import NOW

NAMES = ("plan", "build", "ship")
LINE, OTHER = "STATUS: DONE", "STATUS: DONE again"
PLAN = PhaseProgress(number=1, phase="plan", since=NOW - 100, of=3)
BUILD = PhaseProgress(number=2, phase="build", since=NOW - 100, of=3)
SHIP = PhaseProgress(number=3, phase="ship", since=NOW - 100, of=3)
OVER = replace(SHIP, complete=True)


def rules(
    lines: Sequence[str] | Mapping[int, Sequence[str]] = (),
    names: Sequence[str] = NAMES,
    *,
    names_its_phase: bool = False,
    advance: bool = True,
) -> PhaseRules:
    """`lines`: of the one status file; or of the file of each phase."""

    def done_lines(number: int) -> Sequence[str]:
        assert 1 <= number <= len(names)
        return lines.get(number, ()) if isinstance(lines, Mapping) else lines

    return PhaseRules(names, done_lines, names_its_phase=names_its_phase, advance=advance)


def kinds(changes: Sequence[Change]) -> list[str]:
    names = {PhaseFinished: "done", LoopFinished: "completed"}
    return [f"began {each.phase}" if isinstance(each, PhaseBegun) else names[type(each)] for each in changes]


def changes_of(progress: PhaseProgress, given: PhaseRules) -> list[str]:
    return kinds(decide(progress, given, NOW)[1])
