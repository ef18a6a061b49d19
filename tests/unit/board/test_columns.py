"""Where a card is: every fact has its column."""

from itertools import product

import pytest

from registry import AgentRecord
from services.board.columns import column_of
from shared.contract.states import Activity, CardColumn, Desired, Status
from tests.fakes.records import make_record
from tests.unit.board.samples import doing

NEEDS_YOU, TROUBLE, LIMITED = CardColumn.NEEDS_YOU, CardColumn.TROUBLE, CardColumn.LIMITED
WORKING, WAITING, STARTING = CardColumn.WORKING, CardColumn.WAITING, CardColumn.STARTING
DONE, STOPPED = CardColumn.DONE, CardColumn.STOPPED


def place(record: AgentRecord | None, *, watched: bool = True, parked: bool = False, starts: bool = True) -> CardColumn:
    return column_of(record, is_watched=watched, is_parked=parked, starts=starts)


def ended(status: Status, **more: object) -> AgentRecord:
    return make_record(status, **more)


@pytest.mark.parametrize("status", Status)
def test_every_combination_has_a_column(status: Status) -> None:
    booleans = (True, False)
    for activity, desired, code in product([None, *Activity], Desired, (None, 0, 1, -9)):
        record = make_record(status, activity=activity, desired=desired, exit_status=code)
        for watched, parked, starts in product(booleans, booleans, booleans):
            assert place(record, watched=watched, parked=parked, starts=starts) in CardColumn


@pytest.mark.parametrize(
    ("activity", "column"),
    [
        (None, STARTING),
        (Activity.STARTING, STARTING),
        (Activity.WORKING, WORKING),
        (Activity.WAITING, WAITING),
        (Activity.NEEDS_APPROVAL, NEEDS_YOU),
        (Activity.LIMITED, LIMITED),
        (Activity.STALLED, TROUBLE),
        (Activity.FAILED, TROUBLE),
        (Activity.UNKNOWN, TROUBLE),
        (Activity.DONE, DONE),
    ],
)
def test_an_agent_that_runs_is_where_its_activity_says(activity: Activity | None, column: CardColumn) -> None:
    assert place(doing(activity)) is column


@pytest.mark.parametrize(
    ("activity", "column"),
    [
        (None, LIMITED),
        (Activity.STARTING, LIMITED),
        (Activity.WAITING, LIMITED),
        (Activity.STALLED, LIMITED),
        (Activity.LIMITED, LIMITED),
        (Activity.WORKING, WORKING),
        (Activity.NEEDS_APPROVAL, NEEDS_YOU),
        (Activity.FAILED, TROUBLE),
        (Activity.UNKNOWN, TROUBLE),
        (Activity.DONE, DONE),
    ],
)
def test_the_limit_of_an_account_holds_those_that_do_nothing_else(
    activity: Activity | None, column: CardColumn
) -> None:
    assert place(doing(activity), parked=True) is column


@pytest.mark.parametrize(
    ("record", "column"),
    [
        (ended(Status.EXITED, exit_status=0), DONE),
        (ended(Status.EXITED, exit_status=0, desired=Desired.STOPPED), DONE),
        (ended(Status.EXITED, exit_status=1), TROUBLE),
        (ended(Status.EXITED, exit_status=None), TROUBLE),
        (ended(Status.EXITED, exit_status=-15, desired=Desired.STOPPED), STOPPED),
        (ended(Status.TERMINATED), TROUBLE),
        (ended(Status.TERMINATED, desired=Desired.STOPPED), STOPPED),
        (ended(Status.STOPPED), STOPPED),
        (ended(Status.STOPPED, desired=Desired.STOPPED), STOPPED),
        (ended(Status.GAVE_UP), TROUBLE),
        (ended(Status.GAVE_UP, desired=Desired.STOPPED), TROUBLE),
    ],
)
@pytest.mark.parametrize("parked", [True, False])
def test_an_agent_that_ended_is_where_its_end_says(record: AgentRecord, column: CardColumn, parked: bool) -> None:
    assert place(record, parked=parked) is column


def test_what_an_ended_agent_did_last_counts_no_more() -> None:
    assert place(ended(Status.STOPPED, activity=Activity.NEEDS_APPROVAL)) is STOPPED


@pytest.mark.parametrize("activity", [None, *Activity])
def test_a_side_service_that_runs_works(activity: Activity | None) -> None:
    assert place(doing(activity), watched=False, parked=True) is WORKING


@pytest.mark.parametrize(
    ("starts", "parked", "column"),
    [(True, False, STARTING), (False, False, STOPPED), (True, True, LIMITED), (False, True, STOPPED)],
)
def test_an_agent_without_a_record_is_about_to_start_or_not_wanted(
    starts: bool, parked: bool, column: CardColumn
) -> None:
    assert place(None, starts=starts, parked=parked) is column
