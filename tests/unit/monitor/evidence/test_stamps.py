"""Stamps on the present clock: each is corrected when it is first read, and keeps its place."""

from services.monitor.evidence.stamps import CorrectedStamps
from shared.system.clock import ClockHistory, ClockReading
from tests.unit.monitor.samples import pane

HOUR = 3600.0
NOON = 1_800_000_000.0
CALM = ClockHistory.beginning(ClockReading("b", NOON, 10 * HOUR))
SET_BACK = CALM.continued(ClockReading("b", NOON - 2 * HOUR, 10 * HOUR), 10 * HOUR)


def test_a_stamp_that_is_read_again_keeps_its_place_when_the_clock_comes_there_again() -> None:
    stamps = CorrectedStamps()
    stamps.begin(CALM, NOON)
    assert stamps.moment("screen", NOON - 600) == NOON - 600
    stamps.begin(SET_BACK, NOON - 2 * HOUR)
    assert stamps.moment("screen", NOON - 600) == NOON - 600 - 2 * HOUR
    stamps.begin(SET_BACK, NOON)
    assert stamps.moment("screen", NOON - 600) == NOON - 600 - 2 * HOUR
    assert stamps.moment("screen", NOON - 1) == NOON - 1, "it is news"


def test_a_second_jump_moves_what_was_corrected() -> None:
    stamps = CorrectedStamps()
    stamps.begin(SET_BACK, NOON - 2 * HOUR)
    assert stamps.moment("screen", NOON - 600) == NOON - 600 - 2 * HOUR
    again = SET_BACK.continued(ClockReading("b", NOON + 3 * HOUR, 11 * HOUR), 11 * HOUR)
    stamps.begin(again, NOON + 3 * HOUR)
    assert stamps.moment("screen", NOON - 600) == NOON + 3 * HOUR - HOUR - 600


def test_the_times_of_a_pane_are_corrected_too() -> None:
    stamps, shown = CorrectedStamps(), pane(created=int(NOON - 900), activity=int(NOON - 60))
    stamps.begin(CALM, NOON)
    assert stamps.pane(shown) is shown
    stamps.begin(SET_BACK, NOON - 2 * HOUR)
    after = stamps.pane(shown)
    assert (after.created, after.activity) == (int(NOON - 900 - 2 * HOUR), int(NOON - 60 - 2 * HOUR))
