"""`muster phase next` and `set`: what people may ask for, and the reason when they may not."""

from dataclasses import replace

import pytest

from services.handoff.loops.phases import (
    LoopFinished,
    NoSuchPhase,
    PhaseBegun,
    PhaseProgress,
    decide,
    next_phase,
    set_phase,
)
from tests.unit.handoff.loops.phase_samples import BUILD, LINE, NAMES, OTHER, OVER, PLAN, SHIP, changes_of, kinds, rules
from tests.unit.handoff.samples import NOW


def test_a_person_begins_the_next_phase_whatever_the_file_says() -> None:
    progress, changes = next_phase(PLAN, rules(), NOW, "ada")
    assert progress == PhaseProgress(number=2, phase="build", since=NOW, of=3, at_once=True)
    assert changes == [PhaseBegun(2, "build", "plan", "asked for by ada")]


def test_a_person_begins_a_loop() -> None:
    progress, changes = next_phase(PhaseProgress(), rules(), NOW, "ada")
    assert (progress.number, changes) == (1, [PhaseBegun(1, "plan", None, "asked for by ada")])


def test_a_person_ends_the_last_phase() -> None:
    progress, changes = next_phase(SHIP, rules(), NOW, "ada")
    assert progress == replace(SHIP, complete=True, since=NOW, at_once=True)
    assert changes == [LoopFinished("ended by ada")]
    assert decide(progress, rules([LINE]), NOW + 1) == (progress, [])


def test_a_person_begins_the_next_phase_where_that_is_left_to_people() -> None:
    waits, _ = decide(PLAN, rules([LINE], advance=False), NOW)
    progress, _ = next_phase(waits, rules([LINE], advance=False), NOW, "ada")
    assert (progress.number, progress.reported_line, progress.stale) == (2, "", (LINE,))
    assert changes_of(progress, rules([LINE], advance=False)) == []
    assert changes_of(progress, rules([OTHER], advance=False)) == ["done"]


def test_a_phase_that_was_added_is_next_after_a_loop_is_complete() -> None:
    assert kinds(next_phase(OVER, rules(names=(*NAMES, "sell")), NOW, "ada")[1]) == ["began sell"]


def test_the_next_phase_is_that_of_the_fleet_file_as_it_is_now() -> None:
    assert kinds(next_phase(BUILD, rules(names=("think", *NAMES)), NOW, "ada")[1]) == ["began ship"]
    assert kinds(next_phase(replace(SHIP, number=9), rules(names=("a", "b")), NOW, "ada")[1]) == ["completed"]


def test_after_the_last_phase_there_is_no_next_one() -> None:
    with pytest.raises(NoSuchPhase, match=r"the loop is complete: there is no phase after the last one"):
        next_phase(OVER, rules(), NOW, "ada")


def test_a_loop_without_phases_has_no_next_phase() -> None:
    with pytest.raises(NoSuchPhase, match="this loop has no phases"):
        next_phase(BUILD, rules(names=()), NOW, "ada")
    with pytest.raises(NoSuchPhase, match="this loop has no phases"):
        set_phase(BUILD, rules(names=()), "1", NOW, "ada")


@pytest.mark.parametrize(
    ("wanted", "number"), [("plan", 1), ("build", 2), ("1", 1), ("3", 3), ("03", 3), ("2 fast", 4), ("4", 4)]
)
@pytest.mark.parametrize("progress", [PhaseProgress(), PLAN, SHIP, OVER])
def test_a_phase_is_set_by_its_name_or_number(progress: PhaseProgress, wanted: str, number: int) -> None:
    after, (change,) = set_phase(progress, rules(names=(*NAMES, "2 fast")), wanted, NOW, "ada")
    assert (after.number, after.complete, after.at_once, after.since) == (number, False, True, NOW)
    assert isinstance(change, PhaseBegun)
    assert (change.number, change.phase, change.was) == (number, after.phase, progress.phase or None)


def test_a_phase_whose_name_is_a_number_is_found_by_name() -> None:
    assert set_phase(PLAN, rules(names=("a", "1", "c")), "1", NOW, "ada")[0].number == 2


@pytest.mark.parametrize(
    "wanted", ["", "0", "4", "-1", "+1", "1.0", " 1", "Plan", "²", "٣", "rest", "9" * 200, "0000004", "0000019", "1e0"]
)
def test_an_unknown_phase_is_refused_with_a_list_of_the_phases(wanted: str) -> None:
    with pytest.raises(NoSuchPhase, match=r"there are: plan, build, ship, or 1 to 3") as refusal:
        set_phase(PLAN, rules(), wanted, NOW, "ada")
    assert f"there is no phase {wanted!r}" in str(refusal.value)


@pytest.mark.parametrize("names_its_phase", [False, True])
@pytest.mark.parametrize("progress", [SHIP, OVER])
def test_a_phase_that_is_set_again_does_not_end_by_its_earlier_line(
    progress: PhaseProgress, names_its_phase: bool
) -> None:
    given = rules({1: [LINE], 2: [LINE]}, names_its_phase=names_its_phase)
    back, _ = set_phase(progress, given, "plan", NOW, "ada")
    assert decide(back, given, NOW + 1) == (back, [])
    assert changes_of(back, rules({1: [LINE, OTHER]}, names_its_phase=names_its_phase)) == ["began build"]


def test_setting_a_phase_again_begins_it_anew() -> None:
    once, _ = set_phase(PLAN, rules(), "build", NOW, "ada")
    again, changes = set_phase(once, rules(), "build", NOW, "ada")
    assert (again.number, changes) == (2, [PhaseBegun(2, "build", "build", "asked for by ada")])
    assert again.since > once.since
