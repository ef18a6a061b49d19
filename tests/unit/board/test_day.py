"""The last day of an agent in slices: a letter for each, the one that a person should see."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.board.day import DAYS, LETTERS, NOTHING_KNOWN, SLICE_S, SLICES, AgentDay, day_document, new_day
from shared.contract.states import CardColumn

START = 1_900_000_000 // SLICE_S * SLICE_S
WORKING, WAITING, NEEDS_YOU, DONE = CardColumn.WORKING, CardColumn.WAITING, CardColumn.NEEDS_YOU, CardColumn.DONE


def begun(at: float = 0.0) -> AgentDay:
    return new_day(START + at)


def test_every_column_has_a_letter_of_its_own() -> None:
    assert set(LETTERS) == set(CardColumn)
    assert len({*LETTERS.values(), NOTHING_KNOWN}) == len(CardColumn) + 1


def test_a_slice_has_the_letter_of_what_took_most_of_it() -> None:
    day = begun().until(START + 40, DONE).until(START + 119, WAITING)
    assert day.letter == "i"
    assert day.letters == ""
    assert day.until(START + 130, WAITING).letters == "i"


def test_what_a_person_should_not_overlook_counts_for_more() -> None:
    day = begun().until(START + 95, WORKING).until(START + 120, NEEDS_YOU)
    assert day.letters == "w"
    assert begun().until(START + 80, WORKING).until(START + 120, NEEDS_YOU).letters == "n"


def test_whole_slices_pass_at_once() -> None:
    day = begun(60).until(START + 5 * SLICE_S + 10, WORKING)
    assert (day.letters, day.letter, day.end) == ("wwwww", "w", START // SLICE_S + 5)
    assert day.spent == {WORKING: 10.0}


def test_a_day_is_no_longer_than_a_day() -> None:
    day = begun().until(START + 700 * SLICE_S, WORKING).until(START + 1000 * SLICE_S, WAITING)
    assert day.letters == "w" * (SLICES - 300) + "i" * 300
    assert day.until(START + 5000 * SLICE_S, WAITING).letters == "", "longer than a day"


def test_what_nobody_saw_is_not_known() -> None:
    day = begun().until(START + 60, WORKING).after_absence(START + 3 * SLICE_S + 5)
    assert (day.letters, day.letter) == ("w..", NOTHING_KNOWN)
    assert begun().until(START + 60, WORKING).after_absence(START + 90).letter == "w", "in the same slice"
    assert begun().after_absence(START + 5000 * SLICE_S).letters == ""


def test_a_clock_that_is_set_back_a_little_takes_little_away() -> None:
    day = begun().until(START + 10 * SLICE_S + 0.01, WORKING)
    back = day.until(START + 10 * SLICE_S - 0.01, WORKING)
    assert (back.letters, back.end) == ("w" * 9, day.end - 1)
    assert day.after_absence(START + 8 * SLICE_S).letters == "w" * 8
    assert day.until(START - 7 * 24 * 3600, WORKING).letters == ""
    assert day.until(START + 10 * SLICE_S, WORKING).spent == day.spent, "in the same slice nothing is added"


def test_it_is_kept_whole() -> None:
    day = begun().until(START + 3 * SLICE_S + 5, WORKING).until(START + 3 * SLICE_S + 9, NEEDS_YOU)
    assert DAYS.load(DAYS.dump(day)) == day


# --- the document ---


def test_the_page_is_given_the_last_day_with_the_slice_under_way_last() -> None:
    day = begun().until(START + 2 * SLICE_S + 30, WORKING)
    document = day_document({"builder": day}, START + 2 * SLICE_S + 30)
    assert document["start"] == START + 2 * SLICE_S - (SLICES - 1) * SLICE_S
    assert document["bucket_s"] == SLICE_S
    assert document["columns"] == "ntlwisdx"
    assert document["agents"] == {"builder": "www".rjust(SLICES, ".")}


@pytest.mark.parametrize("later", [0, 1, 5, SLICES - 1, SLICES, 5000])
def test_what_came_since_is_not_known(later: int) -> None:
    day = begun().until(START + 2 * SLICE_S + 30, WORKING)
    (row,) = day_document({"builder": day}, START + (2 + later) * SLICE_S)["agents"].values()  # type: ignore[attr-defined]
    assert row == ("www" + "." * later)[-SLICES:].rjust(SLICES, ".")


@given(
    steps=st.lists(
        st.tuples(st.floats(-4000, 40_000), st.sampled_from(CardColumn), st.booleans()), min_size=1, max_size=30
    )
)
def test_whatever_the_clock_does_a_row_has_its_length(steps: list[tuple[float, CardColumn, bool]]) -> None:
    day, now = begun(), float(START)
    for passed, column, was_there in steps:
        now += passed
        day = day.until(now, column) if was_there else day.after_absence(now)
        assert day.end == int(now // SLICE_S)
        assert len(day.letters) <= SLICES
        assert sum(day.spent.values()) <= SLICE_S + 1e-6
        (row,) = day_document({"a": day}, now)["agents"].values()  # type: ignore[attr-defined]
        assert len(row) == SLICES
        assert set(row) <= {*LETTERS.values(), NOTHING_KNOWN}
