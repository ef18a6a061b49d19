"""A record follows from the events about its agent, and an event that comes twice changes nothing twice."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from registry import AgentRecord, fold
from shared.events import (
    AgentExited,
    AgentGaveUp,
    AgentRestarted,
    AgentSpawned,
    AgentStopped,
    Envelope,
    Event,
    PaneDead,
    SessionMissing,
)
from shared.states import Desired, Status

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


def test_a_session_that_was_started_runs() -> None:
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
def test_an_agent_that_is_not_recorded_does_not_become_so_by_its_end(event: Event) -> None:
    assert after(event) is None


@pytest.mark.parametrize("drift", [missing(), dead()])
@pytest.mark.parametrize("end", [stopped(), exited(), GAVE_UP, missing(), dead()])
def test_a_drift_of_what_has_ended_already_is_no_news(drift: Event, end: Event) -> None:
    assert recorded(spawned(), end, drift) == recorded(spawned(), end)


def test_the_owners_word_goes_over_what_was_detected() -> None:
    assert recorded(spawned(), dead(), exited()).reason == "its program ended with status 3"
    assert recorded(spawned(), missing(), stopped()).status is Status.STOPPED
    assert recorded(spawned(), exited(), GAVE_UP).status is Status.GAVE_UP


def test_a_state_says_what_the_record_says() -> None:
    record = recorded(spawned(), missing())
    state = record.state("builder")
    assert state.agent == "builder"
    assert state.model_dump(exclude={"agent"}) == record.model_dump()


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


@given(histories, st.integers(0, 8), st.integers(0, 8))
@settings(max_examples=150)
def test_what_was_folded_before_a_crash_may_be_folded_again(
    history: list[Envelope[Any]], committed: int, written: int
) -> None:
    """A crash between the file and the cursor: the same events come again, from the last cursor on."""
    first = fold_all(history[: max(committed, written)])
    assert fold_all(history[committed:], first) == fold_all(history)


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
