"""What a loop remembers is read back as it was, by a process that starts later; what did not change is not written."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.handoff.loop_turn import BRANCHES, COMMITS_REMEMBERED, OUTAGES, BranchMemory, LoopTurn
from services.handoff.loops.mailbox import MAILBOXES, Mailbox, QueuedMessage
from services.handoff.loops.phase_actions import ACTIONS, ActionKind, PhaseAction
from services.handoff.loops.phases import PROGRESS, PhaseProgress
from shared.fleet import Declaration, Fleet
from shared.runtime.memory import Memory
from shared.runtime.turn import Turn
from tests.unit.handoff.samples import NOW, loop, read_back

WORDS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8)
TIMES = st.floats(0, 4e9)
BRANCH_MEMORIES = st.builds(
    BranchMemory,
    WORDS,
    WORDS,
    tip=st.none() | WORDS,
    is_gone=st.booleans(),
    reported=st.lists(WORDS).map(tuple),
    statuses=st.dictionaries(WORDS, WORDS),
    status_reported=WORDS,
)
PROGRESSES = st.builds(
    PhaseProgress,
    number=st.integers(1, 9),
    phase=WORDS,
    since=TIMES,
    complete=st.booleans(),
    stale=st.lists(WORDS).map(tuple),
    reported_line=WORDS,
    at_once=st.booleans(),
)
PHASE_ACTIONS = st.builds(
    PhaseAction,
    st.sampled_from(ActionKind),
    WORDS,
    st.lists(WORDS).map(tuple),
    st.integers(1, 9),
    WORDS,
    TIMES,
    at_once=st.booleans(),
    command_id=WORDS,
    asked_at=TIMES,
    tries=st.integers(0, 99),
    not_before=TIMES,
    failure=WORDS,
    done=st.booleans(),
)
MESSAGES = st.builds(QueuedMessage, WORDS, WORDS, TIMES, st.sampled_from(["idle", "now"]), st.booleans())
FILLED_MAILBOXES = st.builds(
    Mailbox,
    st.lists(MESSAGES, min_size=1).map(tuple),
    st.integers(0, 9),
    WORDS,
    TIMES,
    st.integers(0, 99),
    TIMES,
    st.booleans(),
    WORDS,
)


FLEET = Fleet(Path("/f/fleet.yaml"), Declaration())


def loop_turn(stored: dict[str, Any] | None = None, name: str = "app", **changes: Any) -> LoopTurn:
    now = datetime.fromtimestamp(NOW, UTC)
    turn = Turn("handoff", now, poll=False, events=[], commands=[], memory=Memory(stored or {}))
    return LoopTurn(turn, FLEET, name, loop(**changes), "https://example.org/app.git")


def later(before: LoopTurn, name: str = "app") -> LoopTurn:
    """The same in a turn of a process that starts later."""
    return loop_turn(json.loads(json.dumps(dict(before.turn.memory.changes))), name)


@given(BRANCH_MEMORIES, PROGRESSES, st.lists(PHASE_ACTIONS).map(tuple), TIMES)
def test_what_a_loop_remembers_is_read_back(
    branch: BranchMemory, progress: PhaseProgress, actions: tuple[PhaseAction, ...], down_since: float
) -> None:
    before = loop_turn()
    before.put(BRANCHES, branch)
    before.put(PROGRESS, progress)
    before.put(ACTIONS, actions)
    before.put(OUTAGES, down_since)
    for each in (before, later(before)):
        assert (each.branch, each.progress, each.actions, each.find(OUTAGES)) == (branch, progress, actions, down_since)
    other = later(before, "other")
    assert (other.branch, other.progress, other.actions, other.find(OUTAGES)) == (None, PhaseProgress(), (), None)


@given(FILLED_MAILBOXES)
def test_a_mailbox_is_read_back(mailbox: Mailbox) -> None:
    assert read_back(MAILBOXES, mailbox) == mailbox


def test_what_did_not_change_is_not_written_again() -> None:
    progress = PhaseProgress(2, "build", NOW, stale=("x",))
    action = PhaseAction(ActionKind.STOP, "bob", (), 2, "build", NOW)
    before = loop_turn()
    before.put(PROGRESS, progress)
    before.put(ACTIONS, (action,))
    now = later(before)
    now.put(PROGRESS, progress)
    now.put(ACTIONS, (action,))
    assert now.turn.memory.changes == {}
    now.put(ACTIONS, ())
    assert later(now).actions == ()


@pytest.mark.parametrize(
    ("address", "branch", "is_known"),
    [
        ("https://example.org/app.git", "main", True),
        ("https://example.org/other.git", "main", False),
        ("https://example.org/app.git", "other", False),
    ],
)
def test_a_branch_is_known_only_while_the_fleet_file_names_it(address: str, branch: str, is_known: bool) -> None:
    now = loop_turn()
    now.put(BRANCHES, BranchMemory(address, branch))
    assert (now.known_branch is not None) is is_known


def test_of_reported_commits_the_newest_are_remembered() -> None:
    branch = BranchMemory("a", "b", reported=tuple(f"k{number}" for number in range(COMMITS_REMEMBERED)))
    after = branch.with_reported(("new",), {"k7", "other"})
    assert (len(after.reported), after.reported[0], after.reported[-1]) == (COMMITS_REMEMBERED, "k1", "new")
    assert after.dropped == ("k7", "other"), "a commit that was dropped may come again, reported or not"
    assert BranchMemory("a", "b").with_reported((), ()) == BranchMemory("a", "b")
