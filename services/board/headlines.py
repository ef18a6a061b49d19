"""What an agent does, in a few words for its card. Pure."""

import re
from collections.abc import Mapping

from registry import AgentRecord
from services.board.columns import HELD_BY_LIMIT
from shared.contract.states import Activity, Status

LONGEST = 120

SAID_IN_SHORT: Mapping[Activity, tuple[tuple[str, str], ...]] = {
    Activity.WORKING: (
        (r"^it uses (\S[^:]*)", r"Uses \1"),
        (r"^the command that it asked for runs", "Runs a command"),
        (r"^subagent ", "A subagent works"),
        (r"makes its conversation shorter", "Shortens its conversation"),
    ),
    Activity.WAITING: (
        (r"turn (?:ended|is over)|answer is complete", "Turn finished"),
        (r"^its session began", "Ready"),
        (r"interrupt", "Interrupted"),
    ),
    Activity.NEEDS_APPROVAL: (
        (r"^it asks for permission: (\S.*)", r"Asks for permission: \1"),
        (r"^it asks a question", "Asks a question"),
        (r"^its screen shows (\S.*)", r"Shows \1"),
    ),
}
"""By a part of the monitor's reason, which also tells by what it is known; the first that fits counts."""

USUAL: Mapping[Activity | None, str] = {
    None: "Starts",
    Activity.STARTING: "Starts",
    Activity.WORKING: "Works",
    Activity.WAITING: "Waits for a prompt",
    Activity.NEEDS_APPROVAL: "Asks a person",
    Activity.LIMITED: "Usage limit",
    Activity.STALLED: "Idle for too long",
    Activity.DONE: "Done",
    Activity.FAILED: "Failed",
    Activity.UNKNOWN: "Unknown",
}

ENDED: Mapping[Status, str] = {
    Status.STOPPED: "Stopped",
    Status.GAVE_UP: "Given up",
    Status.TERMINATED: "Its session is gone",
    Status.EXITED: "Its program ended",
}


def headline(record: AgentRecord | None, *, is_watched: bool, parked_by: str, starts: bool) -> str:
    """A few words for a card. `parked_by`: another agent that has hit the usage limit of the same account."""
    if record is not None and not record.is_running:
        return _of_ended(record)
    if record is not None and record.limit is not None and record.activity in HELD_BY_LIMIT:
        limit = record.limit.strip() or "usage"
        return _cut(f"{limit[0].upper()}{limit[1:]} limit")
    if parked_by:
        return f"Waits for the same account as {parked_by}"
    if record is None:
        return "Starts soon" if starts else "Not started"
    if not is_watched:
        return "Runs"
    activity = record.activity
    for pattern, short in SAID_IN_SHORT.get(activity, ()) if activity is not None else ():
        if found := re.search(pattern, record.activity_reason):
            return _cut(found.expand(short))
    if activity in (Activity.FAILED, Activity.UNKNOWN, Activity.STALLED) and record.activity_reason:
        return _cut(f"{USUAL[activity]}: {record.activity_reason}")
    return USUAL[activity]


def _of_ended(record: AgentRecord) -> str:
    if record.status is Status.EXITED:
        how = "" if record.exit_status is None else f" with status {record.exit_status}"
        return "Finished" if record.exit_status == 0 else f"Its program ended{how}"
    if record.status is Status.TERMINATED or not record.reason:
        return ENDED[record.status]
    return _cut(f"{ENDED[record.status]}: {record.reason}")


def _cut(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"
