"""What an edit of the fleet file does to a loop that is under way, or complete."""

from dataclasses import replace

import pytest

from services.handoff.loops.phases import PhaseBegun, PhaseProgress, decide, renumbered
from tests.unit.handoff.loops.phase_samples import BUILD, LINE, NAMES, OTHER, OVER, SHIP, changes_of, kinds, rules
from tests.unit.handoff.samples import NOW


def test_a_phase_that_is_added_resumes_a_loop_that_was_complete() -> None:
    progress, changes = decide(OVER, rules([LINE], (*NAMES, "sell")), NOW)
    assert progress == PhaseProgress(number=4, phase="sell", since=NOW, of=4, stale=(LINE,))
    assert changes == [PhaseBegun(4, "sell", "ship", "a phase was added")]


def test_phases_that_are_added_come_one_after_the_other() -> None:
    assert changes_of(OVER, rules([LINE], (*NAMES, "sell", "rest"))) == ["began sell"]
    assert changes_of(OVER, rules({4: [LINE]}, (*NAMES, "sell", "rest"), names_its_phase=True)) == [
        "began sell",
        "began rest",
    ]


@pytest.mark.parametrize(
    ("progress", "names", "expected"),
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
    progress: PhaseProgress, names: tuple[str, ...], expected: tuple[int, str]
) -> None:
    after = renumbered(progress, names)
    assert (after.number, after.phase) == expected
    assert replace(after, number=progress.number, phase=progress.phase) == progress


def test_a_loop_whose_phases_are_edited_goes_on_from_the_phase_it_is_in() -> None:
    longer = ("think", *NAMES)
    assert changes_of(BUILD, rules({3: [LINE]}, longer, names_its_phase=True)) == ["began ship"]
    assert changes_of(BUILD, rules({2: [LINE]}, longer, names_its_phase=True)) == []


@pytest.mark.parametrize("names", [("plan", "build", "sail"), ("build", "ship"), ("think", *NAMES), ("plan", "build")])
def test_a_complete_loop_stays_complete_when_phases_are_renamed_removed_or_put_before(names: tuple[str, ...]) -> None:
    assert changes_of(OVER, rules([OTHER], names)) == []


def test_a_phase_that_is_no_longer_declared_is_left_for_the_one_in_its_place() -> None:
    assert changes_of(BUILD, rules(names=("plan", "ship"))) == ["began ship"]
    progress, changes = decide(SHIP, rules(names=("plan", "build")), NOW)
    assert (progress.complete, progress.number, progress.phase, kinds(changes)) == (True, 2, "build", ["completed"])
    assert changes_of(progress, rules(names=("plan", "build", "sell"))) == ["began sell"]


def test_a_complete_loop_that_lost_phases_resumes_with_one_that_is_added_later() -> None:
    shorter, _ = decide(OVER, rules(names=("plan", "build")), NOW)
    assert changes_of(renumbered(shorter, ("plan", "build")), rules(names=("plan", "build", "sell"))) == ["began sell"]
