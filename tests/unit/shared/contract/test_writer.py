"""What is told is a CloudEvents 1.0 document, and is read back as what it was."""

import json
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.contract.envelope import Data, Event
from shared.contract.events.drift import PaneDead, SessionMissing
from shared.contract.events.lifecycle import AgentExited, AgentGaveUp, AgentRestarted, AgentSpawned, AgentStopped
from shared.contract.ids import ID_PATTERN
from shared.contract.states import AgentState, Desired, Presence, ServiceState, Status
from shared.contract.topics import Space, locate, row_for
from shared.contract.writer import DocumentWriter

NOW = datetime(2030, 1, 1, 12, 30, 0, 123456, tzinfo=UTC)
WRITER = DocumentWriter(Space("box"), "spawner", "epoch1")
ATTRIBUTES = {"specversion", "id", "source", "type"}
"""What CloudEvents 1.0 requires."""

ids = st.from_regex(ID_PATTERN.replace("$", r"\Z"))
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
numbers = st.integers(-(2**31), 2**31)
times = st.datetimes(
    min_value=datetime(1970, 1, 2),  # noqa: DTZ001 - the zone is drawn apart
    max_value=datetime(2100, 1, 1),  # noqa: DTZ001
    timezones=st.just(UTC) | st.just(timezone(timedelta(hours=5.5))),
)
running: dict[str, st.SearchStrategy[Any]] = {
    "agent": ids,
    "spawn": ids,
    "backend": ids,
    "workspace": texts,
    "session": texts,
    "pane": texts,
    "pid": numbers,
}
events: st.SearchStrategy[Event] = st.one_of(
    st.builds(AgentSpawned, **running),
    st.builds(
        AgentRestarted,
        **running,
        replaces=st.none() | ids,
        reason=texts,
        attempt=st.integers(min_value=0, max_value=99),
    ),
    st.builds(AgentStopped, agent=ids, spawn=st.none() | ids, reason=texts),
    st.builds(AgentExited, agent=ids, spawn=ids, exit_status=st.none() | numbers),
    st.builds(AgentGaveUp, agent=ids, reason=texts),
    st.builds(SessionMissing, agent=ids, spawn=ids, session=texts),
    st.builds(PaneDead, agent=ids, spawn=ids, session=texts, exit_status=st.none() | numbers),
)
states: st.SearchStrategy[Data] = st.one_of(
    st.builds(
        AgentState,
        agent=ids,
        status=st.sampled_from(Status),
        since=times,
        reason=texts,
        desired=st.sampled_from(Desired),
        backend=ids,
        workspace=texts,
        session=st.none() | texts,
        pane=st.none() | texts,
        pid=st.none() | numbers,
        spawn=st.none() | ids,
        drifts=st.lists(texts, max_size=2),
    ),
    st.builds(
        ServiceState,
        service=ids,
        status=st.sampled_from(Presence),
        connection=numbers,
        pid=numbers,
        version=texts,
        reason=texts,
        health=st.dictionaries(texts, numbers | texts, max_size=3),
    ),
)


@given(events, st.integers(0, 2**62), times, st.none() | texts)
@settings(max_examples=100)
def test_an_event_is_read_back_as_it_was_written(event: Event, seq: int, time: datetime, cause: str | None) -> None:
    topic, payload = WRITER.event(event, seq=seq, time=time, cause=cause)
    located = locate(topic, "muster")
    assert located is not None
    assert located[:2] == ("box", row_for(event))
    read = located[1].read(payload)
    assert read.data == event
    assert type(read.data) is type(event)
    assert (read.seq, read.time, read.cause) == (seq, time, cause)
    assert (read.source, read.epoch, read.subject) == ("/box/spawner", "epoch1", located[2]["agent"])


@given(states, st.integers(0, 2**62), times)
@settings(max_examples=100)
def test_a_state_is_read_back_as_it_was_shown(state: Data, seq: int, time: datetime) -> None:
    topic, payload = WRITER.state(state, seq=seq, time=time)
    located = locate(topic, "muster")
    assert located is not None
    read = located[1].read(payload)
    assert (read.data, read.seq, read.time) == (state, seq, time)


@given(events)
def test_an_event_has_the_attributes_of_cloudevents(event: Event) -> None:
    _, payload = WRITER.event(event, seq=1, time=NOW, cause=None)
    document = json.loads(payload)
    assert document.keys() >= ATTRIBUTES
    assert document["specversion"] == "1.0"
    assert document["type"] == f"muster.{row_for(event).family}.{event.kind}"
    assert all(isinstance(document[name], str) and document[name] for name in ATTRIBUTES)
    assert datetime.fromisoformat(document["time"]) == NOW
    assert "cause" not in document
    assert None not in document["data"].values()


def test_a_states_type_says_state() -> None:
    state = ServiceState(service="spawner", status=Presence.ONLINE, connection=1, pid=1, version="1")
    topic, payload = WRITER.state(state, seq=4, time=NOW)
    assert topic == "muster/box/service/spawner/state"
    assert json.loads(payload)["type"] == "muster.service.state"


def test_what_led_to_an_event_goes_with_it() -> None:
    _, payload = WRITER.event(AgentGaveUp(agent="a", reason=""), seq=1, time=NOW, cause='c"1')
    assert json.loads(payload)["cause"] == 'c"1'


def test_an_event_written_again_has_the_same_id_and_another_event_has_another() -> None:
    """CloudEvents: `source` and `id` together name one event."""

    def told(seq: int, writer: DocumentWriter = WRITER) -> tuple[str, str]:
        document = json.loads(writer.event(AgentGaveUp(agent="a", reason=""), seq=seq, time=NOW, cause=None)[1])
        return document["source"], document["id"]

    assert told(1) == told(1)
    others = {
        told(1),
        told(2),
        told(1, DocumentWriter(Space("box"), "spawner", "epoch2")),
        told(1, DocumentWriter(Space("far"), "spawner", "epoch1")),
    }
    assert len(others | {told(1, DocumentWriter(Space("box"), "reconciler", "epoch1"))}) == 5
