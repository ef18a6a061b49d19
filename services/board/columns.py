"""The column of a card: it follows from facts. Pure."""

from collections.abc import Mapping

from registry import AgentRecord
from shared.contract.states import Activity, CardColumn, Desired, Status

RUNNING: Mapping[Activity | None, CardColumn] = {
    None: CardColumn.STARTING,  # nothing was told yet
    Activity.STARTING: CardColumn.STARTING,
    Activity.WORKING: CardColumn.WORKING,
    Activity.WAITING: CardColumn.WAITING,
    Activity.NEEDS_APPROVAL: CardColumn.NEEDS_YOU,
    Activity.LIMITED: CardColumn.LIMITED,
    Activity.STALLED: CardColumn.TROUBLE,
    Activity.DONE: CardColumn.DONE,
    Activity.FAILED: CardColumn.TROUBLE,
    Activity.UNKNOWN: CardColumn.TROUBLE,  # it may stand at a question that nobody recognised
}
"""The column of an agent that runs, by what it is doing."""

ENDED: Mapping[Status, CardColumn] = {
    Status.STOPPED: CardColumn.STOPPED,
    Status.EXITED: CardColumn.TROUBLE,
    Status.TERMINATED: CardColumn.TROUBLE,
    Status.GAVE_UP: CardColumn.TROUBLE,
}
"""The column of an agent that does not run, by how it ended."""

HELD_BY_LIMIT = frozenset({None, Activity.STARTING, Activity.WAITING, Activity.STALLED, Activity.LIMITED})
"""What an agent is doing while the usage limit of its account keeps it from working."""


def column_of(record: AgentRecord | None, *, is_watched: bool, is_parked: bool, starts: bool) -> CardColumn:
    """Where the card of an agent belongs.

    `is_watched`: the monitor tells what it is doing, as it does of all but side services. `is_parked`: the usage limit
    of its account is reached. `starts`: it is to run without being asked.
    """
    if record is None:
        held = CardColumn.LIMITED if is_parked else CardColumn.STARTING
        return held if starts else CardColumn.STOPPED
    if not record.is_running:
        return _of_ended(record)
    if not is_watched:
        return CardColumn.WORKING
    if is_parked and record.activity in HELD_BY_LIMIT:
        return CardColumn.LIMITED
    return RUNNING[record.activity]


def _of_ended(record: AgentRecord) -> CardColumn:
    if record.status is Status.EXITED and record.exit_status == 0:
        return CardColumn.DONE
    if record.status is not Status.GAVE_UP and record.desired is Desired.STOPPED:
        return CardColumn.STOPPED
    return ENDED[record.status]
