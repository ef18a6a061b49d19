"""What is remembered is read back as it was, through JSON, and by a version that knows less."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.handoff.loops.mailbox import Mailbox, Message
from services.handoff.loops.phase_actions import ActionKind, PhaseAction
from services.handoff.loops.phases import PhaseProgress
from services.handoff.memory import BOX, COURSE, ERRANDS, SEEN, TOLD_AT_MOST, BranchMemory, LoopMemory
from shared.runtime.memory import Memory
from shared.runtime.turn import Turn
from tests.unit.handoff.samples import NOW

WORDS = st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=8)
TIMES = st.floats(0, 4e9)
SEENS = st.builds(
    BranchMemory,
    WORDS,
    WORDS,
    tip=st.none() | WORDS,
    is_gone=st.booleans(),
    told=st.lists(WORDS).map(tuple),
    statuses=st.dictionaries(WORDS, WORDS),
    status_told=WORDS,
)
COURSES = st.builds(
    PhaseProgress,
    number=st.integers(1, 9),
    phase=WORDS,
    since=TIMES,
    complete=st.booleans(),
    stale=st.lists(WORDS).map(tuple),
    told=WORDS,
    at_once=st.booleans(),
)
ERRANDS_ = st.builds(
    PhaseAction,
    st.sampled_from(ActionKind),
    WORDS,
    st.lists(WORDS).map(tuple),
    st.integers(1, 9),
    WORDS,
    TIMES,
    at_once=st.booleans(),
    asked=WORDS,
    asked_at=TIMES,
    tries=st.integers(0, 99),
    not_before=TIMES,
    told=WORDS,
    done=st.booleans(),
)
LETTERS = st.builds(Message, WORDS, WORDS, TIMES, st.sampled_from(["idle", "now"]), st.booleans())
BOXES = st.builds(
    Mailbox,
    st.lists(LETTERS, min_size=1).map(tuple),
    st.integers(0, 9),
    WORDS,
    TIMES,
    st.integers(0, 99),
    TIMES,
    st.booleans(),
    WORDS,
)


def turn(memory: dict[str, Any] | None = None) -> Turn:
    now = datetime.fromtimestamp(NOW, UTC)
    return Turn(service="handoff", now=now, poll=False, events=[], commands=[], memory=Memory(memory or {}))


def later(before: Turn) -> Turn:
    """A turn of a process that was started since."""
    return turn(json.loads(json.dumps({**before.memory, **before.remembered})))


@given(SEENS, COURSES, st.lists(ERRANDS_), st.none() | TIMES)
def test_what_is_remembered_of_a_loop_is_read_back(
    seen: BranchMemory, course: PhaseProgress, errands: list[PhaseAction], down: float | None
) -> None:
    now = turn()
    memory = LoopMemory(now)
    memory.keep_seen("app", seen)
    memory.keep_course("app", course)
    memory.keep_errands("app", errands)
    memory.keep_down_since("app", down)
    for each in (memory, LoopMemory(later(now))):
        assert (each.seen("app"), each.course("app")) == (seen, course)
        assert (each.errands("app"), each.down_since("app")) == (errands, down)
        assert (each.seen("other"), each.course("other"), each.errands("other")) == (None, PhaseProgress(), [])


@given(BOXES)
def test_a_box_is_read_back(box: Mailbox) -> None:
    assert Mailbox.read(json.loads(json.dumps(box.document()))) == box


def test_an_empty_box_is_nothing() -> None:
    assert Mailbox(reason="x", tries=3).document() is None
    assert Mailbox.read(None) == Mailbox()


def test_what_did_not_change_is_not_written_again() -> None:
    before = turn()
    memory = LoopMemory(before)
    course, errand = (
        PhaseProgress(2, "build", NOW, stale=("x",)),
        PhaseAction(ActionKind.STOP, "bob", (), 2, "build", NOW),
    )
    memory.keep_course("app", course)
    memory.keep_errands("app", [errand])
    now = later(before)
    LoopMemory(now).keep_course("app", course)
    LoopMemory(now).keep_errands("app", [errand])
    assert now.remembered == {}
    LoopMemory(now).keep_errands("app", [])
    assert now.remembered == {f"{ERRANDS}app": None}


LETTER = {"loop": "app", "text": "x", "at": 1.0, "when": "idle", "lasts": False}


@pytest.mark.parametrize(
    ("key", "kept"),
    [
        (SEEN, {"address": "a", "branch": "b", "told": [], "later": 1}),
        (COURSE, {"number": 1, "phase": "a", "stale": [], "later": 1}),
        (ERRANDS, [{"what": "stop", "agent": "a", "roles": [], "number": 1, "phase": "p", "since": 1.0, "later": 1}]),
        (BOX, {"letters": [LETTER], "later": 1}),
        (BOX, {"letters": [{**LETTER, "later": 1}]}),
    ],
)
def test_what_a_later_version_kept_besides_is_passed_over(key: str, kept: Any) -> None:
    memory = LoopMemory(turn({f"{key}app": kept}))
    read = {
        SEEN: lambda: memory.seen("app") is not None,
        COURSE: lambda: memory.course("app").number == 1,
        ERRANDS: lambda: memory.errands("app")[0].what is ActionKind.STOP,
        BOX: lambda: Mailbox.read(kept).letters[0].text == "x",
    }
    assert read[key]()


def test_of_what_was_told_the_newest_are_remembered() -> None:
    seen = BranchMemory("a", "b", told=tuple(f"k{number}" for number in range(TOLD_AT_MOST)))
    after = seen.with_told(("new",), {"k7", "other"})
    assert (len(after.told), after.told[0], after.told[-1]) == (TOLD_AT_MOST, "k1", "new")
    assert after.lost == ("k7", "other"), "what was dropped may come again, told or of the past"
    assert BranchMemory("a", "b").with_told((), ()) == BranchMemory("a", "b")
