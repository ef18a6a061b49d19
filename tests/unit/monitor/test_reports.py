"""What is reported of an agent: each change once, each question once, and how it ended."""

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from registry import AgentRecord
from services.monitor.reports import (
    DIALOG_WITHIN_S,
    RECORDED_WITHIN_S,
    REPORTS,
    ApprovalQuestion,
    question_in,
    report,
    report_end,
)
from services.monitor.verdict import Verdict
from shared.agents.evidence import EvidenceSource
from shared.contract.envelope import Event
from shared.contract.events.activity import ApprovalNeeded, StatusChanged
from shared.contract.states import Activity, AnswerOption, Status
from shared.fleet.backend import Backend, Dialog, ScreenRules
from shared.runtime.turn import Turn
from tests.fakes.records import START
from tests.unit.monitor.samples import NOW, record, turn, verdict

WORKING, WAITING, ASKS = Activity.WORKING, Activity.WAITING, Activity.NEEDS_APPROVAL
DIALOG = ApprovalQuestion(NOW, "it asks", dialog="Do you allow this?", fingerprint="f1", shown_since=NOW)
BARE = ApprovalQuestion(NOW, "it asks", hook_at=7.0)


class ReportedAgent:
    """One agent, reported turn after turn. What is remembered goes through JSON, as it does in the journal."""

    def __init__(self) -> None:
        self.memory: dict[str, Any] = {}

    def report(
        self,
        says: Verdict,
        question: ApprovalQuestion | None = None,
        *,
        now: float = NOW,
        spawn: str = "s1",
        commits: bool = True,
        record: AgentRecord | None = None,
    ) -> Turn:
        taken = turn(self.memory, now)
        report(taken, "builder", spawn, says, question, {}, record)
        if commits:
            self.memory |= json.loads(json.dumps(taken.memory.changes))
        return taken

    def ends(self, *found: Any) -> list[Event]:
        taken = turn(self.memory, NOW)
        report_end(taken, "builder", *found)
        self.memory = {key: kept for key, kept in {**self.memory, **taken.memory.changes}.items() if kept is not None}
        return told(taken)


def told(taken: Turn) -> list[Event]:
    return [event for event, _ in taken.emitted]


def statuses(taken: Turn) -> list[tuple[Activity, Activity | None]]:
    return [(event.status, event.was) for event in told(taken) if isinstance(event, StatusChanged)]


def questions(taken: Turn) -> list[str]:
    return [event.dialog for event in told(taken) if isinstance(event, ApprovalNeeded)]


@pytest.fixture
def agent() -> ReportedAgent:
    return ReportedAgent()


# --- changes ---


def test_a_change_is_told_once_with_all_that_decided_it(agent: ReportedAgent) -> None:
    says = verdict(WORKING, NOW - 3, EvidenceSource.HOOKS, rule="r1")
    taken = turn()
    report(taken, "builder", "s1", says, None, {"a1": WAITING})
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
    agent.memory = dict(taken.memory.changes)
    assert told(agent.report(verdict(WORKING, NOW - 1))) == [], "why it is believed may change"
    assert statuses(agent.report(verdict(WAITING))) == [(WAITING, WORKING)]


def test_unknown_is_told_too(agent: ReportedAgent) -> None:
    taken = agent.report(Verdict(Activity.UNKNOWN, None, ()))
    assert statuses(taken) == [(Activity.UNKNOWN, None)]
    (event,) = told(taken)
    assert isinstance(event, StatusChanged)
    assert (event.since, event.decided_by) == (START, "")


def test_nothing_is_remembered_where_nothing_is_new(agent: ReportedAgent) -> None:
    agent.report(verdict(WORKING))
    assert agent.report(verdict(WORKING)).memory.changes == {}


def test_a_change_is_reported_again_if_its_turn_was_not_committed(agent: ReportedAgent) -> None:
    assert statuses(agent.report(verdict(WORKING), commits=False)) == [(WORKING, None)]
    assert statuses(agent.report(verdict(WORKING))) == [(WORKING, None)]


def test_another_session_begins_anew(agent: ReportedAgent) -> None:
    agent.report(verdict(WORKING))
    assert statuses(agent.report(verdict(WORKING), spawn="s2")) == [(WORKING, None)]


def since(taken: Turn) -> float:
    (event,) = [event for event in told(taken) if isinstance(event, StatusChanged)]
    return event.since.timestamp()


def test_since_is_never_before_the_last_reported_time(agent: ReportedAgent) -> None:
    assert since(agent.report(verdict(WORKING, NOW - 5))) == NOW - 5
    assert since(agent.report(verdict(WAITING, NOW - 9), now=NOW + 1)) == NOW + 1, "it waits again"
    assert since(agent.report(verdict(WORKING, NOW + 2), now=NOW + 3)) == NOW + 2


def test_since_is_never_later_than_now(agent: ReportedAgent) -> None:
    assert since(agent.report(verdict(WORKING, NOW + 60))) == NOW


# --- questions ---


def test_a_question_is_told_once_with_its_dialog(agent: ReportedAgent) -> None:
    taken = agent.report(verdict(ASKS), DIALOG)
    assert [event.kind for event in told(taken)] == ["status_changed", "approval_needed"]
    (_, asked) = told(taken)
    assert isinstance(asked, ApprovalNeeded)
    assert (asked.spawn, asked.reason, asked.dialog, asked.fingerprint) == ("s1", "it asks", "Do you allow this?", "f1")
    assert asked.since == START
    assert told(agent.report(verdict(ASKS), DIALOG, now=NOW + 60)) == []


def test_a_question_waits_a_while_for_its_dialog(agent: ReportedAgent) -> None:
    taken = agent.report(verdict(ASKS), BARE)
    assert statuses(taken) == [(ASKS, None)]
    assert questions(taken) == []
    assert taken.look_again == datetime.fromtimestamp(NOW + DIALOG_WITHIN_S, UTC)
    assert questions(agent.report(verdict(ASKS), BARE, now=NOW + DIALOG_WITHIN_S)) == [""]
    assert told(agent.report(verdict(ASKS), BARE, now=NOW + 60)) == []


def again(question: ApprovalQuestion, **changes: Any) -> ApprovalQuestion:
    return replace(question, **changes)


def test_the_next_question_is_told_again(agent: ReportedAgent) -> None:
    agent.report(verdict(ASKS), DIALOG)
    following = again(DIALOG, dialog="Do you allow that?", fingerprint="f2")
    assert questions(agent.report(verdict(ASKS), following, now=NOW + 9)) == ["Do you allow that?"]


def test_the_next_question_of_a_hook_is_reported_even_with_the_same_dialog(agent: ReportedAgent) -> None:
    agent.report(verdict(ASKS), again(DIALOG, hook_at=NOW - 1))
    assert told(agent.report(verdict(ASKS), again(DIALOG, hook_at=NOW - 1), now=NOW + 1)) == []
    assert len(questions(agent.report(verdict(ASKS), again(DIALOG, hook_at=NOW + 2), now=NOW + 2))) == 1


def test_another_dialog_is_reported_even_if_the_hook_is_of_the_first(agent: ReportedAgent) -> None:
    agent.report(verdict(ASKS), again(DIALOG, hook_at=NOW - 1))
    other = again(DIALOG, hook_at=NOW - 1, fingerprint="f2")
    assert len(questions(agent.report(verdict(ASKS), other, now=NOW + 9))) == 1


def test_the_same_dialog_after_an_answer_is_another_question(agent: ReportedAgent) -> None:
    agent.report(verdict(ASKS), DIALOG)
    agent.report(verdict(WORKING, NOW + 1), now=NOW + 1)
    once_more = again(DIALOG, shown_since=NOW + 2)
    assert questions(agent.report(verdict(ASKS, NOW + 2), once_more, now=NOW + 2)) == ["Do you allow this?"]


def test_a_dialog_that_stays_is_the_same_question_whenever_it_is_seen(agent: ReportedAgent) -> None:
    agent.report(verdict(ASKS), DIALOG)
    assert told(agent.report(verdict(ASKS), again(DIALOG, shown_since=NOW + 30), now=NOW + 31)) == []


def test_a_dialog_that_never_went_away_is_the_same_question(agent: ReportedAgent) -> None:
    """Another tool may end meanwhile, and the agent seem to go on."""
    agent.report(verdict(ASKS), again(DIALOG, hook_at=NOW - 1))
    agent.report(verdict(WORKING, NOW + 1), now=NOW + 1)
    assert questions(agent.report(verdict(ASKS, NOW + 2), DIALOG, now=NOW + 4)) == []


def test_a_question_without_a_dialog_is_told_again_when_it_is_another(agent: ReportedAgent) -> None:
    bare = ApprovalQuestion(NOW, "its live file says so")
    agent.report(verdict(ASKS), bare, now=NOW + DIALOG_WITHIN_S)
    assert told(agent.report(verdict(ASKS), bare, now=NOW + 9)) == []
    assert questions(agent.report(verdict(ASKS), again(bare, since=NOW + 20), now=NOW + 30)) == [""]


def test_a_clock_that_was_set_back_hides_no_question(agent: ReportedAgent) -> None:
    agent.report(verdict(ASKS), DIALOG)
    earlier = again(DIALOG, since=NOW - 3600, shown_since=NOW - 3600)
    assert len(questions(agent.report(verdict(ASKS), earlier, now=NOW - 3600))) == 1


# --- the record ---


@pytest.mark.parametrize(
    ("found", "told_again"),
    [
        pytest.param(record(), True, id="it knows nothing"),
        pytest.param(record(activity=WAITING), True, id="it says something else"),
        pytest.param(record(activity=WORKING), False, id="it has it"),
        pytest.param(record(spawn="s2"), False, id="it is of another session"),
        pytest.param(record(Status.EXITED), False, id="it is over"),
        pytest.param(None, False, id="there is none"),
    ],
)
def test_a_status_that_the_record_lost_is_reported_once_more(
    agent: ReportedAgent, found: Any, told_again: bool
) -> None:
    agent.report(verdict(WORKING, NOW - 5))
    assert told(agent.report(verdict(WORKING), now=NOW + RECORDED_WITHIN_S - 1, record=found)) == []
    taken = agent.report(verdict(WORKING), now=NOW + RECORDED_WITHIN_S, record=found)
    assert statuses(taken) == ([(WORKING, WORKING)] if told_again else [])
    assert not told_again or since(taken) == NOW - 5
    assert told(agent.report(verdict(WORKING), now=NOW + 3600, record=found)) == [], "nobody may be there to record it"


def test_a_question_of_an_earlier_session_says_nothing_of_the_next(agent: ReportedAgent) -> None:
    agent.report(verdict(ASKS), DIALOG)
    assert questions(agent.report(verdict(ASKS), DIALOG, spawn="s2")) == ["Do you allow this?"]


# --- the end ---


@pytest.mark.parametrize("activity", [Activity.DONE, Activity.FAILED])
def test_an_end_that_only_the_record_knows_is_told_once(agent: ReportedAgent, activity: Activity) -> None:
    agent.report(verdict(WORKING))
    over = record(Status.EXITED, activity=activity, ended=START, reason="its program ended")
    (event,) = agent.ends(over)
    assert isinstance(event, StatusChanged)
    assert (event.status, event.was, event.since, event.reason) == (activity, WORKING, START, "its program ended")
    assert agent.memory == {}
    assert agent.ends(over) == []


def test_no_end_is_reported_while_the_record_says_running(agent: ReportedAgent) -> None:
    agent.report(verdict(WORKING))
    assert agent.ends(record()) == []
    assert REPORTS.key("builder") in agent.memory


@pytest.mark.parametrize(
    "found",
    [
        pytest.param(None, id="no record"),
        pytest.param(record(Status.STOPPED), id="stopped"),
        pytest.param(record(Status.EXITED, spawn="s2", activity=Activity.FAILED), id="another session ended"),
        pytest.param(record(spawn="s2", activity=Activity.WORKING), id="another session runs"),
    ],
)
def test_an_end_without_news_is_only_forgotten(agent: ReportedAgent, found: Any) -> None:
    agent.report(verdict(WORKING))
    assert agent.ends(found) == []
    assert agent.memory == {}


def test_an_end_that_was_seen_is_not_told_again(agent: ReportedAgent) -> None:
    agent.report(verdict(Activity.FAILED, source=EvidenceSource.PROCESSES))
    assert agent.ends(record(Status.EXITED, activity=Activity.FAILED)) == []
    assert agent.memory == {}


def test_no_end_is_reported_of_an_agent_that_was_never_reported(agent: ReportedAgent) -> None:
    assert agent.ends(record(Status.EXITED, activity=Activity.FAILED)) == []


# --- how a question is answered ---

SEEN_BY = {
    "both": Dialog(id="d", match="^Allow", says="a dialog", approve=["1"], deny=["2"]),
    "deny": Dialog(id="d", match="^Allow", says="a dialog", deny=["Escape"]),
    "rows": Dialog(id="d", match="^Allow", says="a question", numbered=True),
}


@pytest.mark.parametrize(
    ("dialog", "can", "options"),
    [
        ("both", ["approve", "deny"], []),
        ("deny", ["deny"], []),
        ("rows", [], [AnswerOption(key="1", text="Yes"), AnswerOption(key="2", text="No")]),
    ],
)
def test_a_question_says_how_it_can_be_answered(
    agent: ReportedAgent, dialog: str, can: list[str], options: list[AnswerOption]
) -> None:
    backend = Backend(screen=ScreenRules(box=None, dialogs=[SEEN_BY[dialog]]))
    question = question_in(verdict(ASKS), backend, "Allow this?\n❯ 1. Yes\n  2. No")
    (asked,) = [event for event in told(agent.report(verdict(ASKS), question)) if isinstance(event, ApprovalNeeded)]
    assert (asked.can, asked.options) == (can, options)
    assert asked.fingerprint


def test_a_question_that_is_not_on_the_screen_can_not_be_answered_from_afar(agent: ReportedAgent) -> None:
    question = question_in(verdict(ASKS), Backend(), "nothing")
    assert question is not None
    assert (question.can, question.options, question.fingerprint) == ((), (), "")
    assert question_in(verdict(WORKING), Backend(), "nothing") is None
    later = agent.report(verdict(ASKS), question, now=NOW + DIALOG_WITHIN_S)
    (asked,) = [event for event in told(later) if isinstance(event, ApprovalNeeded)]
    assert (asked.can, asked.options) == ([], [])
