"""A record follows from the events about its agent, and an event that comes twice changes nothing twice."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry import AgentRecord, EndedSession
from services.registrar.fold import endings, fold
from shared.contract.envelope import Envelope, Event
from shared.contract.events.drift import (
    DriftEvent,
    DriftResolved,
    DuplicateId,
    Identified,
    Moved,
    PaneDead,
    SessionMissing,
    StaleId,
    Unregistered,
    WrongBackend,
)
from shared.contract.events.lifecycle import (
    AgentAdopted,
    AgentDeleted,
    AgentExited,
    AgentGaveUp,
    AgentRestarted,
    AgentSpawned,
    AgentStopped,
)
from shared.contract.states import Desired, Status

START = datetime(2030, 1, 1, tzinfo=UTC)


def at(event: Event, second: int = 0) -> Envelope[Any]:
    return Envelope[Any](
        type="muster.test",
        subject="builder",
        time=START + timedelta(seconds=second),
        data=event,
        source="/box/spawner",
        seq=second,
        epoch="e",
        id=f"e-{second}",
    )


def facts(spawn: str) -> dict[str, Any]:
    return {
        "agent": "builder",
        "spawn": spawn,
        "backend": "demo",
        "workspace": f"/work/{spawn}",
        "session": "builder",
        "pane": f"%{spawn}",
        "pid": 7,
    }


def spawned(spawn: str = "s1") -> AgentSpawned:
    return AgentSpawned(**facts(spawn))


def restarted(spawn: str = "s2") -> AgentRestarted:
    return AgentRestarted(**facts(spawn), replaces="s1", reason="its session had ended", attempt=1)


def stopped(spawn: str | None = "s1") -> AgentStopped:
    return AgentStopped(agent="builder", spawn=spawn, reason="asked for")


def exited(spawn: str = "s1", status: int | None = 3) -> AgentExited:
    return AgentExited(agent="builder", spawn=spawn, exit_status=status)


def missing(spawn: str = "s1") -> SessionMissing:
    return SessionMissing(agent="builder", spawn=spawn, session="builder")


def dead(spawn: str = "s1") -> PaneDead:
    return PaneDead(agent="builder", spawn=spawn, session="builder", exit_status=3)


GAVE_UP = AgentGaveUp(agent="builder", reason="it died 6 times")


def after(*events: Event, record: AgentRecord | None = None) -> AgentRecord | None:
    for second, event in enumerate(events):
        record = fold(record, at(event, second))
    return record


def recorded(*events: Event) -> AgentRecord:
    record = after(*events)
    assert record is not None
    return record


def test_a_started_session_is_recorded_as_running() -> None:
    record = recorded(spawned())
    assert record == AgentRecord(
        status=Status.RUNNING,
        since=START,
        reason="spawned",
        desired=Desired.RUNNING,
        backend="demo",
        workspace="/work/s1",
        session="builder",
        pane="%s1",
        pid=7,
        spawn="s1",
        started=START,
    )


def test_a_restarted_session_takes_the_place_of_the_old_one() -> None:
    record = recorded(spawned(), missing(), restarted())
    assert (record.status, record.spawn, record.pane, record.drifts) == (Status.RUNNING, "s2", "%s2", [])
    assert record.reason == "its session had ended"


@pytest.mark.parametrize(
    ("event", "status", "desired", "drifts", "reason"),
    [
        (stopped(), Status.STOPPED, Desired.STOPPED, [], "asked for"),
        (stopped(None), Status.STOPPED, Desired.STOPPED, [], "asked for"),
        (exited(), Status.EXITED, Desired.RUNNING, [], "its program ended with status 3"),
        (GAVE_UP, Status.GAVE_UP, Desired.RUNNING, [], "it died 6 times"),
        (missing(), Status.TERMINATED, Desired.RUNNING, ["missing"], "auto-detected: its tmux session is gone"),
        (dead(), Status.EXITED, Desired.RUNNING, ["pane_dead"], "auto-detected: its program ended with status 3"),
    ],
)
def test_a_running_session_ends(event: Event, status: Status, desired: Desired, drifts: list[str], reason: str) -> None:
    record = recorded(spawned(), event)
    assert (record.status, record.desired, record.drifts, record.reason) == (status, desired, drifts, reason)
    assert record.since == START + timedelta(seconds=1)
    assert (record.pane, record.pid) == (None, None)
    assert (record.spawn, record.session, record.backend) == ("s1", "builder", "demo")


@pytest.mark.parametrize("event", [stopped("s0"), exited("s0"), missing("s0"), dead("s0")])
@pytest.mark.parametrize("before", [(spawned(),), (spawned(), stopped()), (spawned(), exited()), (spawned(), GAVE_UP)])
def test_an_event_about_another_session_changes_nothing(event: Event, before: tuple[Event, ...]) -> None:
    assert recorded(*before, event) == recorded(*before)


@pytest.mark.parametrize("event", [stopped(), stopped(None), exited(), missing(), dead(), GAVE_UP])
def test_an_end_of_an_unrecorded_agent_makes_no_record(event: Event) -> None:
    assert after(event) is None


@pytest.mark.parametrize("drift", [missing(), dead()])
@pytest.mark.parametrize("end", [stopped(), exited(), GAVE_UP, missing(), dead()])
def test_a_drift_of_an_ended_session_changes_nothing(drift: Event, end: Event) -> None:
    assert recorded(spawned(), end, drift) == recorded(spawned(), end)


def test_the_spawners_event_replaces_what_the_reconciler_detected() -> None:
    assert recorded(spawned(), dead(), exited()).reason == "its program ended with status 3"
    assert recorded(spawned(), missing(), stopped()).status is Status.STOPPED
    assert recorded(spawned(), exited(), GAVE_UP).status is Status.GAVE_UP


def test_a_state_says_what_the_record_says() -> None:
    record = recorded(spawned(), missing())
    state = record.state("builder")
    assert state.agent == "builder"
    assert state.model_dump(exclude={"agent"}) == record.model_dump()


def test_a_record_has_what_the_start_said_and_when() -> None:
    facts_ = {**facts("s1"), "role": "builds", "command": "claude", "parent": "boss", "level": 2, "job": "j1"}
    record = recorded(AgentSpawned(**facts_))
    assert (record.role, record.command, record.parent, record.level, record.job) == (
        "builds",
        "claude",
        "boss",
        2,
        "j1",
    )
    assert (record.started, record.ended) == (START, None)
    over = recorded(AgentSpawned(**facts_), exited(status=-9), GAVE_UP)
    assert (over.ended, over.exit_status) == (START + timedelta(seconds=1), -9), "it ended once"


# --- drifts that end nothing ---


def identified(conversation: str, transcript: str | None = None, spawn: str = "s1") -> Identified:
    return Identified(agent="builder", spawn=spawn, conversation=conversation, transcript=transcript)


WRONG = WrongBackend(agent="builder", spawn="s1", expected="claude", found=None, command="bash")
STALE = StaleId(agent="builder", spawn="s1", conversation="c1", transcript="/t")
DUPLICATE = DuplicateId(agent="builder", spawn="s1", conversation="c1", others=["other"])


def resolved(kind: str) -> DriftResolved:
    return DriftResolved(agent="builder", spawn="s1", drift=kind, reason="it is so no longer")


def test_a_conversation_that_appears_is_recorded_and_those_before_it_are_kept() -> None:
    record = recorded(spawned(), identified("c1"), identified("c1", "/t/c1"), identified("c2", "/t/c2"))
    assert (record.conversation, record.transcript, record.earlier) == ("c2", "/t/c2", ["c1"])
    back = recorded(spawned(), identified("c1"), identified("c2"), identified("c1"))
    assert (back.conversation, back.earlier) == ("c1", ["c2"])
    assert len(recorded(spawned(), *(identified(f"c{n}") for n in range(100))).earlier) == 20


def test_a_resumed_conversation_keeps_its_transcript() -> None:
    resumed = restarted("s2").model_copy(update={"conversation": "c1"})
    record = recorded(spawned(), identified("c1", "/t/c1"), missing(), resumed)
    assert (record.conversation, record.transcript) == ("c1", "/t/c1")
    fresh = recorded(spawned(), identified("c1", "/t/c1"), missing(), restarted("s2"))
    assert (fresh.conversation, fresh.transcript) == (None, None)


def test_open_drifts_stay_until_they_are_resolved() -> None:
    assert recorded(spawned(), WRONG, DUPLICATE, WRONG).drifts == ["duplicate_id", "wrong_backend"]
    assert recorded(spawned(), WRONG, DUPLICATE, resolved("wrong_backend")).drifts == ["duplicate_id"]
    assert recorded(spawned(), STALE, identified("c2")).drifts == []


@pytest.mark.parametrize(
    "drift", [each for each in DriftEvent.kinds() if each.resolved_because], ids=lambda each: each.name()
)
def test_every_drift_that_can_be_resolved_is_open_until_then(drift: type[DriftEvent]) -> None:
    event = drift.model_construct(kind=drift.name(), agent="builder", spawn="s1")
    assert recorded(spawned(), event).drifts == [event.kind]
    assert recorded(spawned(), event, DriftResolved(agent="builder", drift=event.kind, reason="over")).drifts == []


def test_an_event_without_a_spawn_id_is_about_the_agent() -> None:
    assert recorded(spawned(), stopped(None)).status is Status.STOPPED
    assert recorded(spawned(), GAVE_UP).status is Status.GAVE_UP


def test_an_end_closes_the_drifts_about_a_running_program() -> None:
    assert recorded(spawned(), WRONG, DUPLICATE, STALE, stopped()).drifts == ["stale_id"]
    assert recorded(spawned(), WRONG, missing()).drifts == ["missing"]


def test_a_move_is_recorded() -> None:
    moved = Moved(
        agent="builder", spawn="s1", session="new", workspace="/w", was_session="builder", was_workspace="/work/s1"
    )
    record = recorded(spawned(), moved)
    assert (record.session, record.workspace, record.status) == ("new", "/w", Status.RUNNING)


def found(spawn: str | None) -> Unregistered:
    return Unregistered(**{**facts(spawn or "s"), "spawn": spawn, "command": "claude"})


def test_a_session_of_this_fleet_that_was_found_is_recorded_as_running() -> None:
    record = recorded(found("s1"))
    assert (record.status, record.spawn, record.desired) == (Status.RUNNING, "s1", Desired.RUNNING)
    again = recorded(spawned(), identified("c1", "/t/c1"), missing(), found("s1"))
    assert (again.status, again.conversation, again.drifts) == (Status.RUNNING, "c1", [])
    assert recorded(spawned(), found("s2")).spawn == "s2"


def test_a_session_that_is_recorded_as_running_is_no_news_when_it_is_found() -> None:
    """The reconciler had looked at an older file, or at none."""
    known = (spawned(), identified("c1", "/t/c1"))
    assert recorded(*known, found("s1")) == recorded(*known)


def test_a_session_that_a_person_started_is_recorded_when_it_is_adopted() -> None:
    assert after(found(None)) is None
    assert recorded(spawned(), found(None)) == recorded(spawned())
    assert recorded(found(None), AgentAdopted(**facts("s1"))).status is Status.RUNNING


# --- how sessions ended ---


def ended(*told: Event) -> dict[str, EndedSession]:
    record: AgentRecord | None = None
    history: dict[str, EndedSession] = {}
    for second, event in enumerate(told):
        envelope = at(event, second)
        now = fold(record, envelope)
        history |= endings("builder", record, now, envelope.time)
        record = now
    return history


@pytest.mark.parametrize(
    ("event", "status"),
    [
        (stopped(), Status.STOPPED),
        (exited(), Status.EXITED),
        (missing(), Status.TERMINATED),
        (dead(), Status.EXITED),
        (restarted(), Status.TERMINATED),
        (AgentDeleted(agent="builder", spawn="s1", reason="asked for"), Status.TERMINATED),
    ],
)
def test_each_session_has_one_end(event: Event, status: Status) -> None:
    history = ended(spawned(), event)
    assert {spawn: (each.agent, each.status) for spawn, each in history.items()} == {"s1": ("builder", status)}
    assert history["s1"].started == START
    assert history["s1"].ended == START + timedelta(seconds=1)


def test_a_later_event_about_an_end_replaces_the_earlier_one() -> None:
    assert ended(spawned(), missing(), exited(status=1))["s1"].exit_status == 1
    assert ended(spawned(), exited(), GAVE_UP)["s1"].status is Status.GAVE_UP
    assert ended(spawned(), stopped(), restarted())["s1"].status is Status.STOPPED


def test_what_runs_has_no_end() -> None:
    assert ended(spawned(), identified("c1"), WRONG) == {}


# --- any sequence ---

spawns = st.sampled_from(["s1", "s2", "s3"])
events: st.SearchStrategy[Event] = st.one_of(
    st.builds(spawned, spawns),
    st.builds(restarted, spawns),
    st.builds(stopped, spawns | st.none()),
    st.builds(exited, spawns),
    st.builds(missing, spawns),
    st.builds(dead, spawns),
    st.just(GAVE_UP),
    st.sampled_from([WRONG, STALE, DUPLICATE, resolved("wrong_backend")]),
    st.builds(found, spawns),
)
histories = st.lists(events, max_size=8).map(lambda told: [at(event, second) for second, event in enumerate(told)])


def fold_all(envelopes: list[Envelope[Any]], record: AgentRecord | None = None) -> AgentRecord | None:
    for envelope in envelopes:
        record = fold(record, envelope)
    return record


@given(histories)
@settings(max_examples=100)
def test_each_event_may_come_twice_in_a_row(history: list[Envelope[Any]]) -> None:
    assert fold_all([each for each in history for _ in range(2)]) == fold_all(history)


@given(histories, st.lists(st.tuples(st.integers(0, 8), events), max_size=5))
@settings(max_examples=100)
def test_events_about_a_session_that_is_not_recorded_change_nothing_anywhere(
    history: list[Envelope[Any]], strays: list[tuple[int, Event]]
) -> None:
    mixed = list(history)
    for place, event in strays:
        if isinstance(event, AgentStopped | AgentExited | SessionMissing | PaneDead):
            mixed.insert(place, at(event.model_copy(update={"spawn": "another"}), 99))
    assert fold_all(mixed) == fold_all(history)


@given(histories)
@settings(max_examples=100)
def test_only_what_runs_has_a_pane(history: list[Envelope[Any]]) -> None:
    record = fold_all(history)
    if record is not None:
        assert (record.status is Status.RUNNING) == (record.pane is not None) == (record.pid is not None)
        assert record.spawn is not None
