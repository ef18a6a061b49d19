"""What holds for all progress, whatever the status files say and however the fleet file is edited."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from services.handoff.loops.phases import (
    LoopFinished,
    NoSuchPhase,
    PhaseBegun,
    PhaseProgress,
    PhaseRules,
    decide,
    next_phase,
    renumbered,
    set_phase,
    without_removed_lines,
)
from tests.unit.handoff.loops.phase_samples import rules
from tests.unit.handoff.samples import NOW

LINES = st.lists(st.sampled_from(["DONE", "DONE 1", "DONE 2"]), unique=True)
NAMES = st.lists(st.sampled_from("abcdefg"), unique=True, max_size=5)
FILES = LINES | st.dictionaries(st.integers(1, 5), LINES)
RULES = st.builds(
    lambda names, lines, names_its_phase, advance: rules(
        lines, names, names_its_phase=names_its_phase, advance=advance
    ),
    NAMES,
    FILES,
    st.booleans(),
    st.booleans(),
)
PROGRESSES = st.just(PhaseProgress()) | st.builds(
    PhaseProgress,
    number=st.integers(1, 7),
    phase=st.sampled_from("abcdefgh"),
    since=st.floats(NOW - 1e6, NOW + 1e6),
    complete=st.booleans(),
    stale=LINES.map(tuple),
    reported_line=st.sampled_from(["", "DONE"]),
    at_once=st.booleans(),
)


@given(PROGRESSES, RULES)
def test_a_decision_ends_and_deciding_again_changes_nothing(progress: PhaseProgress, given: PhaseRules) -> None:
    after, _ = decide(progress, given, NOW)
    assert decide(after, given, NOW) == (after, [])
    assert decide(after, given, NOW + 1e6) == (after, [])


@given(PROGRESSES, RULES)
def test_the_phase_is_a_declared_one_with_its_declared_name(progress: PhaseProgress, given: PhaseRules) -> None:
    after = renumbered(decide(progress, given, NOW)[0], given.names)
    if given.names and not after.complete:
        assert 1 <= after.number <= len(given.names)
        assert after.phase == given.names[after.number - 1]


@given(PROGRESSES, RULES)
def test_each_phase_that_begins_is_reported_with_the_one_before_it(progress: PhaseProgress, given: PhaseRules) -> None:
    after, changes = decide(progress, given, NOW)
    was = renumbered(progress, given.names).phase or None
    begun = [each for each in changes if isinstance(each, PhaseBegun)]
    for each in begun:
        assert (each.phase, each.was) == (given.names[each.number - 1], was)
        was = each.phase
    numbers = [each.number for each in begun]
    assert numbers == sorted(set(numbers))
    if begun:
        assert (after.number, after.phase) == (begun[-1].number, begun[-1].phase)
    assert [each for each in changes if isinstance(each, LoopFinished)] in ([], changes[-1:])


@given(PROGRESSES, RULES)
def test_a_complete_loop_without_new_phases_stays_complete(progress: PhaseProgress, given: PhaseRules) -> None:
    over = replace(progress, complete=True, number=len(given.names), phase="".join(given.names[-1:]))
    if given.names:
        assert decide(over, given, NOW) == (over, [])


@given(PROGRESSES, NAMES)
def test_renumbering_twice_is_renumbering_once(progress: PhaseProgress, names: Sequence[str]) -> None:
    once = renumbered(progress, names)
    assert renumbered(once, names) == once


@given(PROGRESSES, RULES, st.sampled_from([*"abcdefg", *"0123456789"]))
def test_a_phase_that_a_person_set_lasts_until_a_new_line(
    progress: PhaseProgress, given: PhaseRules, wanted: str
) -> None:
    try:
        begun, (change,) = set_phase(progress, given, wanted, NOW, "ada")
    except NoSuchPhase:
        assert wanted not in given.names
        assert not (wanted.isdigit() and 1 <= int(wanted) <= len(given.names))
        return
    assert isinstance(change, PhaseBegun)
    assert wanted in (begun.phase, str(begun.number))
    assert decide(begun, given, NOW) == (begun, [])


@given(PROGRESSES, RULES)
def test_the_next_phase_is_the_next_one_or_the_end(progress: PhaseProgress, given: PhaseRules) -> None:
    before = renumbered(progress, given.names)
    try:
        after, (change,) = next_phase(progress, given, NOW, "ada")
    except NoSuchPhase:
        assert not given.names or before.complete
        return
    assert isinstance(change, LoopFinished) == after.complete
    assert after.number == before.number + (not after.complete)


EDITS = st.tuples(NAMES.filter(bool), st.dictionaries(st.integers(1, 5), LINES), st.floats(0, 100))


@given(st.lists(EDITS, max_size=12), st.booleans(), st.booleans())
def test_every_change_is_reported_and_nothing_else_over_any_sequence_of_edits(
    life: list[tuple[list[str], Mapping[int, Sequence[str]], float]], names_its_phase: bool, advance: bool
) -> None:
    progress, now = PhaseProgress(), NOW
    for names, lines, passes in life:
        now += passes
        given = rules(lines, names, names_its_phase=names_its_phase, advance=advance)
        progress = renumbered(progress, names)
        if progress.number:
            progress = without_removed_lines(progress, list(given.done_lines(min(progress.number, len(names)))))
        after, changes = decide(progress, given, now)
        assert (after == progress) == (not changes)
        progress = renumbered(after, names)
        assert progress.number
