"""What an event is worth on a card: every drift, what is worth telling, and nothing that is only for the record."""

import pytest

from services.board.news import LONGEST_TEXT, CardNews, news_in
from shared.contract.asyncapi_examples import fill
from shared.contract.envelope import AgentEvent, Event, Tone, Urgency
from shared.contract.events.activity import AgentFatal, StatusChanged
from shared.contract.events.drift import DriftEvent, DriftResolved, Moved, SessionMissing, StaleId, WrongBackend
from shared.contract.events.lifecycle import AgentDeleted, AgentExited, AgentGaveUp, AgentSpawned
from shared.contract.events.loops import LoopEvent, MessageDropped, MessageWaits, PhaseAdvanced, PhaseDone
from shared.contract.topics import row_for
from tests.unit.board.samples import make_fleet

FLEET = make_fleet()
FOLLOWED = [kind for kind in Event.kinds() if issubclass(kind, AgentEvent | LoopEvent)]
DRIFTS = list(DriftEvent.kinds())


def named(kind: type[Event]) -> str:
    return kind.__name__


def found(event: Event) -> list[CardNews]:
    return list(news_in(event, FLEET))


def only(event: Event) -> CardNews:
    (news,) = found(event)
    return news


@pytest.mark.parametrize("kind", FOLLOWED, ids=named)
def test_each_kind_of_event_is_worth_what_its_urgency_says(kind: type[Event]) -> None:
    event = fill(kind)
    told = found(event)
    is_told = issubclass(kind, DriftEvent) or event.urgency in (Urgency.NEWS, Urgency.ACTION)
    assert bool(told) is is_told
    for each in told:
        assert each.about == f"{row_for(event).family}.{event.kind}"
        assert (each.tone, each.urgency) == (event.tone, event.urgency)
        assert 0 < len(each.text) <= LONGEST_TEXT
    assert {each.card for each in told} <= {"builder", "reviewer"}


def test_there_are_events_of_both_sorts() -> None:
    assert len(DRIFTS) >= 8
    assert len(FOLLOWED) > 20
    assert any(found(fill(kind)) for kind in FOLLOWED)
    assert not found(fill(StatusChanged))


@pytest.mark.parametrize("kind", DRIFTS, ids=named)
def test_each_kind_of_drift_is_one_comment_with_what_was_recorded_and_found(kind: type[DriftEvent]) -> None:
    event = fill(kind)
    news = only(event)
    assert (news.card, news.recorded, news.found) == ("builder", *event.difference())
    assert news.found
    assert news.text == f"{event.kind.replace('_', ' ')}: {event.sentence()}"
    assert news.same
    assert bool(news.recorded) is (kind is not DriftResolved)


def missing(spawn: str = "s1") -> SessionMissing:
    return SessionMissing(agent="builder", spawn=spawn, session="builder")


def moved(to: str) -> Moved:
    return Moved(agent="builder", spawn="s1", session="b", workspace=to, was_session="b", was_workspace="/work")


def test_the_same_drift_is_told_from_another_one() -> None:
    assert only(missing()).same == only(missing()).same
    assert only(missing()).same != only(missing("s2")).same, "of another session"
    assert only(moved("/a")).same != only(moved("/b")).same


def test_the_end_of_a_drift_names_what_it_ends() -> None:
    begun = StaleId(agent="builder", conversation="c1", transcript="/t")
    ended = DriftResolved(agent="builder", drift="stale_id", reason="its conversation is on disk")
    assert only(ended).ends == only(begun).about
    assert only(begun).ends == ""


def test_a_text_is_bounded() -> None:
    event = WrongBackend(agent="builder", spawn="s1", expected="claude", command="x" * 5000)
    assert len(only(event).text) == LONGEST_TEXT
    assert len(only(event).found) <= LONGEST_TEXT
    assert len(only(event).same) <= 4 * LONGEST_TEXT
    assert len(only(AgentGaveUp(agent="builder", reason="y" * 5000)).text) == LONGEST_TEXT


def test_a_task_that_ended_well_has_finished() -> None:
    news = only(AgentExited(agent="mover", spawn="s1", exit_status=0))
    assert (news.tone, news.urgency, news.about) == (Tone.GOOD, Urgency.NEWS, "lifecycle.exited")
    assert "finished" in news.text
    assert found(AgentExited(agent="mover", spawn="s1", exit_status=1)) == [], "the record says so"
    assert found(AgentExited(agent="builder", spawn="s1", exit_status=0)) == []
    assert found(AgentExited(agent="stranger", spawn="s1", exit_status=0)) == []


@pytest.mark.parametrize("kind", [AgentSpawned, AgentDeleted, StatusChanged, MessageWaits])
def test_what_is_only_for_the_record_is_no_comment(kind: type[Event]) -> None:
    assert found(fill(kind)) == []


def test_what_a_person_must_act_on_says_so() -> None:
    assert only(fill(AgentFatal)).urgency is Urgency.ACTION


# --- loops ---


def advanced(loop: str = "main") -> PhaseAdvanced:
    return PhaseAdvanced(loop=loop, number=1, phase="draft", phases=1, reason="asked for")


def test_what_happens_in_a_loop_concerns_all_that_play_in_it() -> None:
    told = found(advanced())
    assert [each.card for each in told] == ["builder", "reviewer"]
    assert all(": loop main: " in each.text for each in told)
    assert [each.card for each in found(fill(PhaseDone))] == ["builder", "reviewer"]


def test_an_event_of_a_loop_that_names_an_agent_concerns_only_that_one() -> None:
    dropped = MessageDropped(loop="main", agent="reviewer", text="hello", reason="it does not run")
    assert only(dropped).card == "reviewer"


def test_a_loop_that_is_not_declared_any_more_has_no_cards() -> None:
    assert found(advanced("gone")) == []


def test_an_agent_with_two_roles_gets_one_comment() -> None:
    fleet = make_fleet(loops={"main": {"remote": "x.git", "roles": {"build": "builder", "review": "builder"}}})
    assert [each.card for each in news_in(advanced(), fleet)] == ["builder"]
