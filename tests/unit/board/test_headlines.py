"""The few words on a card: one short line, whatever the monitor says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from registry import AgentRecord
from services.board.headlines import LONGEST, headline
from shared.contract.states import Activity, Status
from tests.fakes.records import make_record
from tests.unit.board.samples import RECORDS, doing


def said(record: AgentRecord | None, *, watched: bool = True, parked_by: str = "", starts: bool = True) -> str:
    return headline(record, is_watched=watched, parked_by=parked_by, starts=starts)


@given(
    record=st.none() | RECORDS, watched=st.booleans(), parked_by=st.sampled_from(["", "a" * 64]), starts=st.booleans()
)
def test_it_is_one_line_and_bounded_and_never_empty(
    record: AgentRecord | None, watched: bool, parked_by: str, starts: bool
) -> None:
    words = said(record, watched=watched, parked_by=parked_by, starts=starts)
    assert words == " ".join(words.split())
    assert 0 < len(words) <= LONGEST


@pytest.mark.parametrize(
    ("activity", "reason", "words"),
    [
        (Activity.WORKING, "it uses Bash: git status", "Uses Bash"),
        (Activity.WORKING, "it uses Read", "Uses Read"),
        (Activity.WORKING, "the command that it asked for runs: make test", "Runs a command"),
        (Activity.WORKING, "subagent a1: it uses Bash", "A subagent works"),
        (Activity.WORKING, "it makes its conversation shorter", "Shortens its conversation"),
        (Activity.WORKING, "its tools have run", "Works"),
        (Activity.WORKING, "its program runs, and ends when it is done", "Works"),
        (Activity.WAITING, "its turn ended", "Turn finished"),
        (Activity.WAITING, "its turn is over, but its subagents may work", "Turn finished"),
        (Activity.WAITING, "its answer is complete", "Turn finished"),
        (Activity.WAITING, "its session began (startup)", "Ready"),
        (Activity.WAITING, "it was interrupted", "Interrupted"),
        (Activity.WAITING, "its turn was interrupted", "Interrupted"),
        (Activity.WAITING, "it waits for a prompt", "Waits for a prompt"),
        (Activity.NEEDS_APPROVAL, "it asks for permission: Bash: rm -r /", "Asks for permission: Bash: rm -r /"),
        (Activity.NEEDS_APPROVAL, "it asks a question (AskUserQuestion)", "Asks a question"),
        (Activity.NEEDS_APPROVAL, "its screen shows a permission dialog", "Shows a permission dialog"),
        (Activity.NEEDS_APPROVAL, "", "Asks a person"),
        (Activity.FAILED, "its program is gone from its pane", "Failed: its program is gone from its pane"),
        (Activity.UNKNOWN, "", "Unknown"),
        (Activity.STALLED, "idle for 1800 s", "Idle for too long: idle for 1800 s"),
        (Activity.DONE, "its session ended (logout)", "Done"),
        (Activity.STARTING, "its program has just started", "Starts"),
        (None, "", "Starts"),
    ],
)
def test_a_reason_of_the_monitor_is_said_in_short(activity: Activity | None, reason: str, words: str) -> None:
    assert said(doing(activity, reason=reason)) == words


@pytest.mark.parametrize(
    ("status", "facts", "words"),
    [
        (Status.EXITED, {"exit_status": 0}, "Finished"),
        (Status.EXITED, {"exit_status": 2}, "Its program ended with status 2"),
        (Status.EXITED, {"exit_status": None}, "Its program ended"),
        (Status.STOPPED, {"reason": "asked for by ada"}, "Stopped: asked for by ada"),
        (Status.STOPPED, {"reason": ""}, "Stopped"),
        (Status.GAVE_UP, {"reason": "it died 6 times"}, "Given up: it died 6 times"),
        (Status.TERMINATED, {"reason": "tmux has no session x"}, "Its session is gone"),
    ],
)
def test_an_end_is_said_in_short(status: Status, facts: dict[str, object], words: str) -> None:
    assert said(make_record(status, **facts)) == words


def test_a_long_reason_is_cut() -> None:
    words = said(doing(Activity.UNKNOWN, reason="x" * 500))
    assert (len(words), words[-2:]) == (LONGEST, "x…")


def test_a_limit_is_said_before_what_it_does() -> None:
    limited = doing(Activity.LIMITED, reason="its screen shows it", limit="weekly")
    assert said(limited, parked_by="other") == "Weekly limit"
    assert said(limited.model_copy(update={"limit": "usage"})) == "Usage limit"
    assert said(doing(Activity.WAITING), parked_by="other") == "Waits for the same account as other"
    assert said(doing(Activity.WORKING, reason="it uses Bash", limit="weekly")) == "Uses Bash", (
        "it goes on all the same"
    )


def test_what_has_no_record_or_is_not_watched() -> None:
    assert said(None) == "Starts soon"
    assert said(None, starts=False) == "Not started"
    assert said(None, parked_by="other") == "Waits for the same account as other"
    assert said(doing(None), watched=False) == "Runs"
