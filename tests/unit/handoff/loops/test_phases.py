"""How a loop goes from phase to phase by lines in its status file: those of an earlier phase do not count."""

from dataclasses import replace

import pytest

from services.handoff.loops.phases import (
    LoopFinished,
    PhaseBegun,
    PhaseFinished,
    PhaseProgress,
    decide,
    without_removed_lines,
)
from tests.unit.handoff.loops.phase_samples import BUILD, LINE, OTHER, OVER, PLAN, SHIP, changes_of, kinds, rules
from tests.unit.handoff.samples import NOW

# --- one step ---


def test_a_loop_begins_with_its_first_phase() -> None:
    progress, changes = decide(PhaseProgress(), rules(), NOW)
    assert progress == PhaseProgress(number=1, phase="plan", since=NOW, of=3)
    assert changes == [PhaseBegun(1, "plan", None, "the loop begins")]


def test_without_phases_there_is_nothing_to_begin() -> None:
    assert decide(PhaseProgress(), rules(names=()), NOW) == (PhaseProgress(), [])
    assert decide(BUILD, rules(names=()), NOW) == (BUILD, [])


def test_a_line_ends_its_phase_and_begins_the_next() -> None:
    progress, changes = decide(PLAN, rules([LINE]), NOW)
    assert progress == PhaseProgress(number=2, phase="build", since=NOW, of=3, stale=(LINE,))
    assert changes == [PhaseBegun(2, "build", "plan", f"the status file says {LINE!r}")]


def test_after_the_last_phase_the_loop_is_complete() -> None:
    progress, changes = decide(SHIP, rules([LINE]), NOW)
    assert progress == replace(SHIP, complete=True, since=NOW)
    assert changes == [LoopFinished(f"the status file says {LINE!r}")]


@pytest.mark.parametrize(
    ("progress", "lines", "expected"),
    [
        (PLAN, [], []),
        (PLAN, [LINE], ["began build"]),
        (replace(PLAN, stale=(LINE,)), [LINE], []),
        (replace(PLAN, stale=(LINE,)), [OTHER], ["began build"]),
        (replace(PLAN, stale=(LINE,)), [LINE, OTHER], ["began build"]),
        (replace(PLAN, stale=(LINE, OTHER)), [OTHER], []),
        (SHIP, [LINE], ["completed"]),
        (replace(SHIP, stale=(LINE,)), [LINE], []),
        (OVER, [], []),
        (OVER, [LINE], []),
        (OVER, [OTHER], []),
    ],
)
def test_only_a_line_that_is_new_ends_a_phase(progress: PhaseProgress, lines: list[str], expected: list[str]) -> None:
    assert changes_of(progress, rules(lines)) == expected


def test_the_next_phase_does_not_inherit_at_once() -> None:
    assert not decide(replace(PLAN, at_once=True), rules([LINE]), NOW)[0].at_once
    assert not decide(replace(SHIP, at_once=True), rules([LINE]), NOW)[0].at_once


# --- lines of earlier phases ---


def test_a_stale_line_counts_after_it_was_removed() -> None:
    begun, _ = decide(PLAN, rules([LINE]), NOW)
    assert changes_of(begun, rules([LINE])) == []
    gone = without_removed_lines(begun, [])
    assert changes_of(gone, rules([])) == []
    assert changes_of(gone, rules([LINE])) == ["began ship"]


def test_only_the_lines_that_were_removed_count_again() -> None:
    begun = replace(BUILD, stale=(LINE, OTHER))
    after = without_removed_lines(begun, [OTHER, "STATUS: DONE at last"])
    assert after == replace(BUILD, stale=(OTHER,))
    assert changes_of(after, rules([OTHER])) == []
    assert changes_of(after, rules([OTHER, LINE])) == ["began ship"]


def test_progress_that_nothing_changes_stays_the_same_object() -> None:
    begun = replace(BUILD, stale=(LINE,))
    assert without_removed_lines(begun, [LINE, OTHER]) is begun


# --- lines that name their phase ---


def test_several_phases_may_be_done_at_once_where_lines_name_them() -> None:
    progress, changes = decide(PhaseProgress(), rules({1: [LINE], 2: [OTHER]}, names_its_phase=True), NOW)
    assert kinds(changes) == ["began plan", "began build", "began ship"]
    assert (progress.number, progress.complete, progress.stale) == (3, False, ())
    assert [each.was for each in changes if isinstance(each, PhaseBegun)] == [None, "plan", "build"]


def test_all_phases_may_be_done_at_once() -> None:
    progress, changes = decide(PLAN, rules({1: [LINE], 2: [LINE], 3: [LINE]}, names_its_phase=True), NOW)
    assert kinds(changes) == ["began build", "began ship", "completed"]
    assert progress.complete


def test_a_phase_that_is_not_done_holds_up_those_behind_it() -> None:
    assert changes_of(PLAN, rules({2: [LINE], 3: [LINE]}, names_its_phase=True)) == []


def test_where_lines_name_no_phase_one_line_ends_one_phase() -> None:
    assert changes_of(PLAN, rules([LINE, OTHER])) == ["began build"]


def test_phases_that_begin_at_the_same_time_differ_in_since() -> None:
    first, _ = decide(PhaseProgress(), rules(names_its_phase=True), NOW)
    second, _ = decide(first, rules({1: [LINE]}, names_its_phase=True), NOW)
    assert second.since > first.since
    set_back, _ = decide(replace(first, since=NOW + 3600), rules({1: [LINE]}, names_its_phase=True), NOW)
    assert set_back.since > NOW + 3600


def test_a_loop_that_completes_as_its_last_phase_begins_is_complete_since_later() -> None:
    given = rules({1: [LINE], 2: [LINE], 3: [LINE]}, names_its_phase=True)
    begun, _ = decide(PLAN, replace(given, done_lines={1: [LINE], 2: [LINE], 3: []}.__getitem__), NOW)
    over, _ = decide(begun, given, NOW)
    assert (begun.number, over.complete) == (3, True)
    assert over.since > begun.since


# --- where people go on ---


def test_a_phase_that_people_end_is_reported_done_once() -> None:
    by_people = rules([LINE], advance=False)
    progress, changes = decide(PLAN, by_people, NOW)
    assert progress == replace(PLAN, reported_line=LINE)
    assert changes == [PhaseFinished(1, "plan", f"the status file says {LINE!r}")]
    assert decide(progress, by_people, NOW + 60) == (progress, [])


def test_another_done_line_is_reported_too_but_a_stale_one_is_not() -> None:
    progress, _ = decide(PLAN, rules([LINE], advance=False), NOW)
    assert changes_of(progress, rules([OTHER], advance=False)) == ["done"]
    assert changes_of(replace(PLAN, stale=(LINE,)), rules([LINE], advance=False)) == []


def test_the_last_phase_too_waits_for_people_where_they_decide() -> None:
    progress, changes = decide(SHIP, rules([LINE], advance=False), NOW)
    assert (kinds(changes), progress.complete) == (["done"], False)


def test_a_reported_line_begins_the_next_phase_when_advance_is_switched_on() -> None:
    progress, _ = decide(PLAN, rules([LINE], advance=False), NOW)
    assert changes_of(progress, rules([LINE])) == ["began build"]
