"""What is told of an agent: each change once, each question once, and how it ended."""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from services.monitor.evidence import Source
from services.monitor.fusion import Verdict
from services.monitor.told import BY_LOOKS, SHOWS_WITHIN_S, TOLD, Question, tell, tell_end
from shared.events import ApprovalNeeded, Event, StatusChanged
from shared.states import Activity, Status
from shared.turn import Turn
from tests.unit.monitor.seeing import NOW, START, record, turn, verdict

WORKING, WAITING, ASKS = Activity.WORKING, Activity.WAITING, Activity.NEEDS_APPROVAL
DIALOG = Question(f"{BY_LOOKS}f1", NOW, "it asks", "Do you allow this?", "f1")
BARE = Question("hook 7.0", NOW, "it asks")


class Teller:
    """An agent of which is told, turn after turn. What is remembered goes through JSON, as it does in the journal."""

    def __init__(self) -> None:
        self.memory: dict[str, Any] = {}

    def tell(
        self,
        says: Verdict,
        question: Question | None = None,
        *,
        now: float = NOW,
        spawn: str = "s1",
        commits: bool = True,
    ) -> Turn:
        taken = turn(self.memory, now)
        tell(taken, "builder", spawn, says, question, {})
        if commits:
            self.memory |= json.loads(json.dumps(taken.kept))
        return taken

    def ends(self, *found: Any) -> list[Event]:
        taken = turn(self.memory, NOW)
        tell_end(taken, "builder", *found)
        self.memory = {key: kept for key, kept in (self.memory | taken.kept).items() if kept is not None}
        return told(taken)


def told(taken: Turn) -> list[Event]:
    return [event for event, _ in taken.told]


def statuses(taken: Turn) -> list[tuple[Activity, Activity | None]]:
    return [(event.status, event.was) for event in told(taken) if isinstance(event, StatusChanged)]


def questions(taken: Turn) -> list[str]:
    return [event.dialog for event in told(taken) if isinstance(event, ApprovalNeeded)]


@pytest.fixture
def teller() -> Teller:
    return Teller()


# --- changes ---


def test_a_change_is_told_once_with_all_that_decided_it(teller: Teller) -> None:
    says = verdict(WORKING, NOW - 3, Source.HOOKS, rule="r1")
    taken = turn()
    tell(taken, "builder", "s1", says, None, {"a1": WAITING})
    (event,) = told(taken)
    assert event == StatusChanged(
        agent="builder",
        spawn="s1",
        status=WORKING,
        since=datetime.fromtimestamp(NOW - 3, UTC),
        reason="it shows working",
        decided_by="hooks",
        rule="r1",
        subagents={"a1": WAITING},
    )
    teller.memory = taken.kept
    assert told(teller.tell(verdict(WORKING, NOW - 1))) == [], "why it is believed may change"
    assert statuses(teller.tell(verdict(WAITING))) == [(WAITING, WORKING)]


def test_unknown_is_told_too(teller: Teller) -> None:
    taken = teller.tell(Verdict(Activity.UNKNOWN, None, ()))
    assert statuses(taken) == [(Activity.UNKNOWN, None)]
    (event,) = told(taken)
    assert isinstance(event, StatusChanged)
    assert (event.since, event.decided_by) == (START, "")


def test_nothing_is_remembered_where_nothing_is_new(teller: Teller) -> None:
    teller.tell(verdict(WORKING))
    assert teller.tell(verdict(WORKING)).kept == {}


def test_what_did_not_come_to_be_remembered_is_told_again(teller: Teller) -> None:
    assert statuses(teller.tell(verdict(WORKING), commits=False)) == [(WORKING, None)]
    assert statuses(teller.tell(verdict(WORKING))) == [(WORKING, None)]


def test_another_session_begins_anew(teller: Teller) -> None:
    teller.tell(verdict(WORKING))
    assert statuses(teller.tell(verdict(WORKING), spawn="s2")) == [(WORKING, None)]


def since(taken: Turn) -> float:
    (event,) = [event for event in told(taken) if isinstance(event, StatusChanged)]
    return event.since.timestamp()


def test_since_is_never_before_what_was_told_before(teller: Teller) -> None:
    assert since(teller.tell(verdict(WORKING, NOW - 5))) == NOW - 5
    assert since(teller.tell(verdict(WAITING, NOW - 9), now=NOW + 1)) == NOW + 1, "it waits again"
    assert since(teller.tell(verdict(WORKING, NOW + 2), now=NOW + 3)) == NOW + 2


def test_since_is_never_later_than_now(teller: Teller) -> None:
    assert since(teller.tell(verdict(WORKING, NOW + 60))) == NOW


# --- questions ---


def test_a_question_is_told_once_with_its_dialog(teller: Teller) -> None:
    taken = teller.tell(verdict(ASKS), DIALOG)
    assert [event.kind for event in told(taken)] == ["status_changed", "approval_needed"]
    (_, asked) = told(taken)
    assert isinstance(asked, ApprovalNeeded)
    assert (asked.spawn, asked.reason, asked.dialog, asked.fingerprint) == ("s1", "it asks", "Do you allow this?", "f1")
    assert asked.since == START
    assert told(teller.tell(verdict(ASKS), DIALOG, now=NOW + 60)) == []


def test_a_question_waits_for_its_dialog_but_not_for_ever(teller: Teller) -> None:
    taken = teller.tell(verdict(ASKS), BARE)
    assert statuses(taken) == [(ASKS, None)]
    assert questions(taken) == []
    assert taken.look_again == datetime.fromtimestamp(NOW + SHOWS_WITHIN_S, UTC)
    assert questions(teller.tell(verdict(ASKS), BARE, now=NOW + SHOWS_WITHIN_S)) == [""]
    assert told(teller.tell(verdict(ASKS), BARE, now=NOW + 60)) == []


def test_the_next_question_is_told_again(teller: Teller) -> None:
    teller.tell(verdict(ASKS), DIALOG)
    following = Question(f"{BY_LOOKS}f2", NOW + 9, "it asks", "Do you allow that?", "f2")
    assert questions(teller.tell(verdict(ASKS), following, now=NOW + 9)) == ["Do you allow that?"]


def test_a_dialog_that_is_only_painted_anew_is_the_same_question(teller: Teller) -> None:
    first = Question("hook 7.0", NOW, "it asks", "> 1. Yes", "f1")
    teller.tell(verdict(ASKS), first)
    moved = Question("hook 7.0", NOW, "it asks", "> 2. No", "f2")
    assert told(teller.tell(verdict(ASKS), moved, now=NOW + 1)) == []


def test_the_same_dialog_after_an_answer_is_another_question(teller: Teller) -> None:
    teller.tell(verdict(ASKS), DIALOG)
    teller.tell(verdict(WORKING, NOW + 1), now=NOW + 1)
    assert questions(teller.tell(verdict(ASKS, NOW + 2), DIALOG, now=NOW + 2)) == ["Do you allow this?"]


def test_a_question_of_a_hook_is_the_same_though_the_agent_seemed_to_go_on(teller: Teller) -> None:
    told_of = Question("hook 7.0", NOW, "it asks", "Do you allow this?", "f1")
    teller.tell(verdict(ASKS), told_of)
    teller.tell(verdict(WORKING, NOW + 1), now=NOW + 1)
    assert questions(teller.tell(verdict(ASKS, NOW + 2), told_of, now=NOW + 2)) == []


def test_a_question_of_an_earlier_session_says_nothing_of_the_next(teller: Teller) -> None:
    teller.tell(verdict(ASKS), DIALOG)
    assert questions(teller.tell(verdict(ASKS), DIALOG, spawn="s2")) == ["Do you allow this?"]


# --- the end ---


@pytest.mark.parametrize("activity", [Activity.DONE, Activity.FAILED])
def test_an_end_that_only_the_record_knows_is_told_once(teller: Teller, activity: Activity) -> None:
    teller.tell(verdict(WORKING))
    over = record(Status.EXITED, activity=activity, ended=START, reason="its program ended")
    (event,) = teller.ends(over)
    assert isinstance(event, StatusChanged)
    assert (event.status, event.was, event.since, event.reason) == (activity, WORKING, START, "its program ended")
    assert teller.memory == {}
    assert teller.ends(over) == []


def test_as_long_as_the_record_has_it_running_it_is_waited_for(teller: Teller) -> None:
    teller.tell(verdict(WORKING))
    assert teller.ends(record()) == []
    assert f"{TOLD}builder" in teller.memory


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(None, id="no record"),
        pytest.param(record(Status.STOPPED), id="stopped"),
        pytest.param(record(Status.EXITED, spawn="s2", activity=Activity.FAILED), id="another session ended"),
        pytest.param(record(spawn="s2", activity=Activity.WORKING), id="another session runs"),
    ],
)
def test_where_nothing_is_to_be_told_of_an_end_it_is_only_forgotten(teller: Teller, found: Any) -> None:
    teller.tell(verdict(WORKING))
    assert teller.ends(found) == []
    assert teller.memory == {}


def test_an_end_that_was_seen_is_not_told_again(teller: Teller) -> None:
    teller.tell(verdict(Activity.FAILED, source=Source.PROCESSES))
    assert teller.ends(record(Status.EXITED, activity=Activity.FAILED)) == []
    assert teller.memory == {}


def test_of_who_was_never_told_of_no_end_is_told(teller: Teller) -> None:
    assert teller.ends(record(Status.EXITED, activity=Activity.FAILED)) == []
