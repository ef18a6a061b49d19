"""The card of an agent: what its record, the fleet file and the board's memory say, put together."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry import AgentRecord
from services.board.cards import CardContext, loop_of, update
from services.board.memory import CARDS, CardMemory
from shared.contract.states import Activity, CardColumn, CardQuestion, CardState, Desired, Status
from tests.fakes.records import START, make_record
from tests.unit.board.samples import NOW, RECORDS, after, doing, make_fleet

FLEET = make_fleet()
ASKS, WAITING, WORKING, LIMITED = Activity.NEEDS_APPROVAL, Activity.WAITING, Activity.WORKING, Activity.LIMITED


def context(records: dict[str, AgentRecord], **branches: str) -> CardContext:
    return CardContext.of(FLEET, records, branches)


class Shown:
    """The card of one agent, worked out again and again."""

    def __init__(self, agent: str = "builder", memory: CardMemory | None = None) -> None:
        self.agent, self.memory = agent, memory or CardMemory()

    def card(self, record: AgentRecord | None, at: float = 0.0, **others: AgentRecord) -> CardState:
        records = {**others, **({self.agent: record} if record is not None else {})}
        card, self.memory = update(context(records), self.agent, self.memory, after(at))
        return card


def question(since: float = 0.0, text: str = "Allow rm?", **more: Any) -> CardQuestion:
    return CardQuestion(since=after(since), reason="it asks for permission", dialog=text, **more)


# --- since when ---


def test_it_is_there_since_its_activity_began() -> None:
    assert Shown().card(doing(WORKING, -30)).since == after(-30)
    assert Shown().card(make_record(Status.STOPPED, since=after(-50))).since == after(-50)
    assert Shown().card(None, 7).since == after(7), "nothing tells"


def test_it_is_there_since_not_before_its_session() -> None:
    began = doing(WORKING, -300, started=after(-100))
    assert Shown().card(began).since == after(-100)


def test_it_stays_while_column_and_session_stay() -> None:
    shown = Shown()
    first = shown.card(doing(WORKING, -30))
    later = shown.card(doing(WORKING, -5, reason="it uses Bash"), 10)
    assert later.since == first.since
    assert later.headline != first.headline


def test_it_changes_with_the_column_and_does_not_jump_back() -> None:
    shown = Shown()
    shown.card(doing(WORKING, -30))
    assert shown.card(doing(WAITING, -10)).since == after(-10)
    assert shown.card(doing(WORKING, -60), 5).since == after(5), "an older fact does not explain a newer change"


def test_it_begins_anew_with_another_session() -> None:
    shown = Shown()
    shown.card(doing(WORKING, -30))
    anew = doing(WORKING, -3, spawn="s2", started=after(-4))
    assert shown.card(anew).since == after(-3)


def test_it_is_not_in_the_future() -> None:
    assert Shown().card(doing(WORKING, 500), 3).since == after(3)
    shown = Shown(memory=CardMemory(CardColumn.WAITING, "s1", NOW + 1000))
    assert shown.card(doing(WORKING, -30), 3).since == after(3), "the clock was set back"


def test_an_agent_that_a_limit_holds_is_limited_since_then() -> None:
    shown, other = Shown("reviewer"), doing(LIMITED, 50, limit="weekly", account="claude")
    assert shown.card(doing(WAITING, -500)).since == after(-500)
    held = shown.card(doing(WAITING, -500), 51, builder=other)
    assert (held.column, held.since) == (CardColumn.LIMITED, after(51))
    free = shown.card(doing(WAITING, -500), 99)
    assert (free.column, free.since) == (CardColumn.WAITING, after(99))


@settings(deadline=None)
@given(
    steps=st.lists(st.tuples(st.none() | RECORDS, st.floats(0, 10_000)), min_size=1, max_size=6),
    other=st.none() | RECORDS,
    agent=st.sampled_from(["builder", "sender", "proxy", "sleeper", "stranger"]),
)
def test_whatever_is_recorded_there_is_a_card(
    steps: list[tuple[AgentRecord | None, float]], other: AgentRecord | None, agent: str
) -> None:
    shown, at, last = Shown(agent), 0.0, None
    for record, passed in steps:
        at += passed
        card = shown.card(record, at, **({"reviewer": other} if other is not None else {}))
        assert card.headline
        assert card.since <= after(at)
        assert (card.question is not None) <= (card.column is CardColumn.NEEDS_YOU)
        assert (card.account is not None) <= (card.column is CardColumn.LIMITED)
        assert CARDS.load(CARDS.dump(shown.memory)) == shown.memory
        if last is not None and last.spawn == card.spawn and record is not None:
            assert card.since >= last.since
            assert card.since == last.since or card.column is not last.column
        assert shown.card(record, at, **({"reviewer": other} if other is not None else {})) == card, "nothing changed"
        last = card


# --- questions ---


def asking(text: str = "Allow rm?", by: str = "s1", since: float = 0.0, **more: Any) -> Shown:
    return Shown(memory=CardMemory(question=question(since, text, **more), asked_by=by))


def test_a_question_is_shown_while_it_asks() -> None:
    shown = asking(fingerprint="f1", can=["approve"])
    card = shown.card(doing(ASKS))
    assert card.column is CardColumn.NEEDS_YOU
    assert card.question == question(fingerprint="f1", can=["approve"])
    gone_on = shown.card(doing(WORKING, 5), 6)
    assert gone_on.question is None
    assert (shown.memory.question, shown.memory.asked_by) == (None, "")


def test_the_next_question_is_not_shown_with_the_last_dialog() -> None:
    shown = asking()
    shown.card(doing(ASKS))
    shown.card(doing(WORKING, 5), 6)
    card = shown.card(doing(ASKS, 9, reason="it asks a question"), 10)
    assert card.question == CardQuestion(since=after(9), reason="it asks a question"), "its dialog is not told yet"


def test_a_question_is_of_its_session() -> None:
    shown = asking(by="s0")
    card = shown.card(doing(ASKS, 3, reason="it asks for permission: Bash"), 4)
    assert card.question == CardQuestion(since=after(3), reason="it asks for permission: Bash")


def test_a_question_that_is_told_before_the_record_is_kept() -> None:
    shown = asking(since=10)
    assert shown.card(doing(WORKING, 5), 10).question is None
    assert shown.card(doing(ASKS, 10), 11).question == question(10)


def test_another_question_replaces_the_last() -> None:
    shown = asking("Allow rm?")
    shown.card(doing(ASKS))
    shown.memory = replace(shown.memory, question=question(4, "Allow push?"))
    card = shown.card(doing(ASKS), 5)
    assert card.question is not None
    assert card.question.dialog == "Allow push?"


def test_an_agent_that_ended_asks_nothing() -> None:
    shown = asking()
    ended = make_record(Status.TERMINATED, activity=Activity.FAILED, activity_since=after(5))
    assert shown.card(ended, 6).question is None
    assert shown.memory.question is None
    assert asking().card(None).question is None


# --- who it is ---


def test_a_card_says_what_is_known() -> None:
    record = doing(
        WORKING, -1, "it uses Bash: ls", workspace="/w", session="builder", drifts=["moved"], started=after(-9)
    )
    card, _ = update(context({"builder": record}, builder="topic/x"), "builder", CardMemory(), START)
    assert (card.card, card.agent, card.headline) == ("builder", "builder", "Uses Bash")
    assert (card.reason, card.workspace, card.session) == ("it uses Bash: ls", "/w", "builder")
    assert (card.backend, card.model, card.branch, card.drifts) == ("claude", "opus", "topic/x", ["moved"])
    assert (card.status, card.activity, card.desired) == ("running", WORKING, Desired.RUNNING)
    assert (card.spawn, card.started, card.loop) == ("s1", after(-9), "main")


def test_an_agent_that_never_ran_has_a_card() -> None:
    card = Shown("sleeper").card(None)
    assert (card.status, card.column, card.headline) == ("not_started", CardColumn.STOPPED, "Not started")
    assert (card.backend, card.spawn, card.session, card.desired) == ("demo", None, None, None)
    assert Shown("sender").card(None).column is CardColumn.STARTING


def test_an_agent_that_is_not_declared_has_a_card() -> None:
    card = Shown("stranger").card(doing(WORKING, backend="codex"))
    assert (card.backend, card.model, card.role, card.loop) == ("codex", None, "", None)


def test_what_ended_has_no_session_and_no_activity() -> None:
    card = Shown().card(make_record(Status.EXITED, session="builder", activity=Activity.FAILED, reason="it ended"))
    assert (card.session, card.activity, card.reason) == (None, None, "it ended")


@pytest.mark.parametrize(
    ("agent", "recorded", "role"),
    [
        ("reviewer", "from the record", "from the record"),
        ("reviewer", "", "reads"),
        ("builder", "", "build"),
        ("sender", "", ""),
    ],
)
def test_a_role_is_of_the_record_the_fleet_file_or_the_loop(agent: str, recorded: str, role: str) -> None:
    assert Shown(agent).card(doing(WORKING, role=recorded)).role == role


def test_the_loop_of_an_agent() -> None:
    assert loop_of(FLEET, "reviewer") == "main"
    assert loop_of(FLEET, "sender") is None


def test_the_agents_are_in_the_order_of_the_fleet_file() -> None:
    names = context({"zoe": doing(WORKING), "builder": doing(WORKING)}).agents
    assert names == ["builder", "reviewer", "sender", "mover", "sleeper", "proxy", "zoe"]


def test_a_side_service_that_runs_works() -> None:
    card = Shown("proxy").card(doing(None, backend="service"))
    assert (card.column, card.headline) == (CardColumn.WORKING, "Runs")


# --- limits ---

HIT = doing(
    LIMITED, limit="weekly", account="claude", limit_resets=after(3600), resumes=after(3700), reason="its limit is hit"
)


def test_an_agent_shows_its_own_limit() -> None:
    card = Shown().card(HIT)
    assert (card.column, card.headline, card.account, card.limit) == (
        CardColumn.LIMITED,
        "Weekly limit",
        "claude",
        "weekly",
    )
    assert (card.limit_resets, card.resumes) == (after(3600), after(3700))


def test_the_others_of_its_account_count_down_with_it() -> None:
    card = Shown("reviewer").card(doing(WAITING), builder=HIT)
    assert (card.column, card.headline) == (CardColumn.LIMITED, "Waits for the same account as builder")
    assert (card.account, card.limit, card.limit_resets, card.resumes) == ("claude", "weekly", after(3600), None)
    working = Shown("reviewer").card(doing(WORKING), builder=HIT)
    assert (working.column, working.limit_resets, working.account) == (CardColumn.WORKING, None, None)


def test_an_agent_that_is_to_start_waits_for_the_limit_too() -> None:
    card = Shown("reviewer").card(None, builder=HIT)
    assert card.column is CardColumn.STOPPED, "it is started when its phase begins"
    team = HIT.model_copy(update={"account": "team"})
    card = Shown("sender").card(None, builder=team)
    assert (card.column, card.headline, card.limit_resets) == (
        CardColumn.LIMITED,
        "Waits for the same account as builder",
        after(3600),
    )


def test_another_account_is_not_concerned() -> None:
    card = Shown("sender").card(doing(WAITING, backend="codex"), builder=HIT)
    assert (card.column, card.limit) == (CardColumn.WAITING, None)


def test_of_two_limits_an_agent_shows_its_own() -> None:
    other = HIT.model_copy(update={"limit": "session", "limit_resets": START + timedelta(hours=5)})
    for records in ({"builder": HIT, "reviewer": other}, {"reviewer": other, "builder": HIT}):
        card, _ = update(context(records), "builder", CardMemory(), START)
        assert (card.limit, card.limit_resets, card.headline) == ("weekly", after(3600), "Weekly limit")


# --- monitoring ---


def test_a_card_says_whether_it_is_monitored() -> None:
    card = Shown(memory=CardMemory(comments=4, notable=3)).card(doing(WORKING))
    assert (card.monitoring, card.stopped_by, card.stopped_at, card.missed) == (True, None, None, 0)
    assert (card.comments, card.notable) == (4, 3)
    stopped = CardMemory(stopped_by="ada", stopped_at=NOW - 60, missed={"drift.moved": 2, "activity.stalled": 1})
    card = Shown(memory=stopped).card(doing(WORKING))
    assert (card.monitoring, card.stopped_by, card.stopped_at, card.missed) == (False, "ada", after(-60), 3)
    assert card.sentence() == "Works; not monitored, stopped by ada"
