"""Courses and rules for their tests: a loop of three phases, and status files that say what a test wants."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from services.handoff.loops.course import Began, Change, Course, Rules, decide
from tests.unit.handoff.scenes import NOW

NAMES = ("plan", "build", "ship")
LINE, OTHER = "STATUS: DONE", "STATUS: DONE again"
PLAN = Course(number=1, phase="plan", since=NOW - 100, of=3)
BUILD = Course(number=2, phase="build", since=NOW - 100, of=3)
SHIP = Course(number=3, phase="ship", since=NOW - 100, of=3)
OVER = replace(SHIP, complete=True)


def rules(
    lines: Sequence[str] | Mapping[int, Sequence[str]] = (),
    names: Sequence[str] = NAMES,
    *,
    by_name: bool = False,
    advance: bool = True,
) -> Rules:
    """`lines`: of the one status file; or of the file of each phase."""

    def read(number: int) -> Sequence[str]:
        assert 1 <= number <= len(names)
        return lines.get(number, ()) if isinstance(lines, Mapping) else lines

    return Rules(names, read, by_name=by_name, advance=advance)


def kinds(changes: Sequence[Change]) -> list[str]:
    return [f"began {each.phase}" if isinstance(each, Began) else type(each).__name__.lower() for each in changes]


def told(course: Course, given: Rules) -> list[str]:
    return kinds(decide(course, given, NOW)[1])
