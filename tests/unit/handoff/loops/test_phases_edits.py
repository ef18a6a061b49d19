"""What an edit of the fleet file does to a loop that is under way, or complete."""

from dataclasses import replace

import pytest

from services.handoff.loops.phases import PhaseBegun, PhaseProgress, decide, placed
from tests.unit.handoff.loops.phase_samples import BUILD, LINE, NAMES, OTHER, OVER, SHIP, kinds, rules, told
from tests.unit.handoff.samples import NOW


def test_a_phase_that_is_added_resumes_a_loop_that_was_complete() -> None:
    course, changes = decide(OVER, rules([LINE], (*NAMES, "sell")), NOW)
    assert course == PhaseProgress(number=4, phase="sell", since=NOW, of=4, stale=(LINE,))
    assert changes == [PhaseBegun(4, "sell", "ship", "a phase was added")]


def test_several_that_are_added_come_one_after_the_other() -> None:
    assert told(OVER, rules([LINE], (*NAMES, "sell", "rest"))) == ["began sell"]
    assert told(OVER, rules({4: [LINE]}, (*NAMES, "sell", "rest"), by_name=True)) == ["began sell", "began rest"]


@pytest.mark.parametrize(
    ("course", "names", "expected"),
    [
        (BUILD, ("plan", "build", "ship"), (2, "build")),
        (BUILD, ("think", "plan", "build", "ship"), (3, "build")),
        (BUILD, ("build", "ship"), (1, "build")),
        (BUILD, ("plan", "make", "ship"), (2, "make")),
        (BUILD, ("ship", "build", "plan"), (2, "build")),
        (SHIP, ("plan",), (1, "plan")),
        (OVER, ("think", "plan", "build", "ship"), (4, "ship")),
        (OVER, ("plan", "build", "sail"), (3, "sail")),
        (PhaseProgress(), NAMES, (0, "")),
        (BUILD, (), (2, "build")),
    ],
)
def test_a_phase_is_found_by_its_name_and_else_by_its_number(
    course: PhaseProgress, names: tuple[str, ...], expected: tuple[int, str]
) -> None:
    after = placed(course, names)
    assert (after.number, after.phase) == expected
    assert replace(after, number=course.number, phase=course.phase) == course


def test_a_loop_whose_phases_are_edited_goes_on_from_the_phase_it_is_in() -> None:
    longer = ("think", *NAMES)
    assert told(BUILD, rules({3: [LINE]}, longer, by_name=True)) == ["began ship"]
    assert told(BUILD, rules({2: [LINE]}, longer, by_name=True)) == []


@pytest.mark.parametrize("names", [("plan", "build", "sail"), ("build", "ship"), ("think", *NAMES), ("plan", "build")])
def test_a_loop_that_is_complete_stays_so_when_phases_are_renamed_removed_or_put_before(names: tuple[str, ...]) -> None:
    assert told(OVER, rules([OTHER], names)) == []


def test_a_phase_that_is_taken_out_is_left_for_what_took_its_place() -> None:
    assert told(BUILD, rules(names=("plan", "ship"))) == ["began ship"]
    course, changes = decide(SHIP, rules(names=("plan", "build")), NOW)
    assert (course.complete, course.number, course.phase, kinds(changes)) == (True, 2, "build", ["completed"])
    assert told(course, rules(names=("plan", "build", "sell"))) == ["began sell"]


def test_a_loop_that_lost_phases_after_it_was_complete_resumes_with_one_that_is_added_then() -> None:
    shorter, _ = decide(OVER, rules(names=("plan", "build")), NOW)
    assert told(placed(shorter, ("plan", "build")), rules(names=("plan", "build", "sell"))) == ["began sell"]
