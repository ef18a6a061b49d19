"""The topic table: each row builds, subscribes and parses the same names, and no name means two rows."""

import re
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paho.mqtt.client import topic_matches_sub
from pydantic import BaseModel, ValidationError

from shared.contract.envelope import Data, Event
from shared.contract.events.drift import PaneDead, SessionMissing
from shared.contract.events.lifecycle import AgentGaveUp
from shared.contract.ids import ID_PATTERN
from shared.contract.services import MANIFEST, PEOPLE, SERVICES, ServiceEntry
from shared.contract.states import Presence, ServiceState
from shared.contract.topics import (
    AGENT_DRIFT,
    AGENT_LIFECYCLE,
    AGENT_STATE,
    COMMAND,
    DEFAULT_OWNER,
    EVENTS,
    EVERY_SERVICE,
    REPLY,
    SERVICE_STATE,
    STATES,
    TOPICS,
    MalformedDocument,
    Space,
    Topic,
    first_fault,
    locate,
    row_for,
)

ids = st.from_regex(ID_PATTERN.replace("$", r"\Z"))
spaces = st.builds(Space, host=ids, prefix=ids)
rows = st.sampled_from(TOPICS)


@given(rows, spaces, st.data())
def test_a_row_finds_its_own_names_and_its_own_ids(row: Topic, space: Space, data: st.DataObject) -> None:
    given_ids = {name: data.draw(ids) for name in row.ids}
    name = row.name(space, **given_ids)
    assert locate(name, space.prefix) == (space.host, row, given_ids)
    assert topic_matches_sub(row.filter(space), name)
    assert topic_matches_sub(row.filter(space, **given_ids), name)
    assert topic_matches_sub(space.everything, name)


@given(rows, rows, spaces, st.data())
def test_a_rows_subscription_brings_no_other_row(
    subscribed: Topic, named: Topic, space: Space, data: st.DataObject
) -> None:
    name = named.name(space, **{each: data.draw(ids) for each in named.ids})
    assert topic_matches_sub(subscribed.filter(space), name) == (subscribed is named)


def test_a_subscription_is_for_one_host() -> None:
    assert not topic_matches_sub(AGENT_STATE.filter(Space("box")), AGENT_STATE.name(Space("far"), agent="a"))


@pytest.mark.parametrize(
    "topic",
    [
        "",
        "muster",
        "muster/",
        "muster/box",
        "muster/box/",
        "muster/box/agent",
        "muster/box/agent/a",
        "muster/box/agent//state",
        "muster/box/agent/a/state/",
        "muster/box/agent/a/b/state",
        "muster/box/agent/a/states",
        "muster/box/command/",
        "muster/box/command/a/b",
        "/muster/box/agent/a/state",
        "muster2/box/agent/a/state",
        "box/agent/a/state",
        "$SYS/broker/uptime",
    ],
)
def test_what_is_not_in_the_table_is_not_ours(topic: str) -> None:
    assert locate(topic, "muster") is None


def test_a_dot_in_a_prefix_stands_for_itself() -> None:
    assert locate("musterXbox/command/spawn", "muster.box") is None


@given(st.text(max_size=60), st.text(max_size=8))
def test_any_topic_can_be_looked_up(topic: str, prefix: str) -> None:
    for name in (topic, f"{prefix}/{topic}"):
        if found := locate(name, prefix):
            host, row, ids = found
            assert row.name(Space(host, prefix), **ids) == name
        else:
            assert found is None


def test_each_document_has_one_row() -> None:
    assert row_for(AgentGaveUp(agent="a", reason="")) is AGENT_LIFECYCLE
    assert row_for(SessionMissing(agent="a", spawn="s", session="a")) is AGENT_DRIFT
    assert row_for(PaneDead(agent="a", spawn="s", session="a", exit_status=1)) is AGENT_DRIFT
    state = ServiceState(service="spawner", status=Presence.ONLINE, connection=1, pid=1, version="1")
    assert row_for(state) is SERVICE_STATE


def _leaves(kind: type[BaseModel]) -> set[type[BaseModel]]:
    below = [each for each in kind.__subclasses__() if each.__module__.startswith("shared.contract.")]
    return set().union(*(_leaves(each) for each in below)) if below else {kind}


def test_every_document_is_carried_by_a_row() -> None:
    carried: set[Any] = set()
    for row in (*EVENTS, *STATES):
        carried |= set(row.documents)
    assert carried == _leaves(Data)


def test_every_event_has_one_writer_that_runs() -> None:
    assert all(len(row.writers) == 1 and row.writers[0] in SERVICES for row in EVENTS)


@pytest.mark.parametrize("entry", MANIFEST, ids=lambda entry: str(entry.name))
def test_who_follows_one_topic_of_a_service_follows_all_of_them(entry: ServiceEntry) -> None:
    """Numbers grow per service: a topic that is left out would look like a gap, for ever."""
    followed = {row for row in EVENTS if row.pattern in entry.follows}
    for service in {row.writers[0] for row in followed}:
        assert {row for row in EVENTS if row.writers == (service,)} <= followed


def test_states_are_retained_and_nothing_else_is() -> None:
    assert {row for row in TOPICS if row.retain} == set(STATES)


def test_every_writer_exists() -> None:
    for row in TOPICS:
        assert row.writers
        assert set(row.writers) <= {*SERVICES, *PEOPLE, EVERY_SERVICE}
    assert "viewer" not in {writer for row in TOPICS for writer in row.writers}
    assert "operator" in COMMAND.writers
    assert "operator" not in REPLY.writers
    assert DEFAULT_OWNER in SERVICES


def test_a_family_is_the_middle_of_a_type() -> None:
    assert [row.family for row in (AGENT_LIFECYCLE, AGENT_DRIFT, AGENT_STATE, SERVICE_STATE)] == [
        "lifecycle",
        "drift",
        "agent",
        "service",
    ]


def test_no_two_documents_share_a_type() -> None:
    """Readers tell documents apart by their type: a second retained state of one family needs a family of its own."""
    events = [(row, each) for row in EVENTS for each in row.documents if issubclass(each, Event)]
    kinds = [f"{row.family}.{event.name()}" for row, event in events]
    types = [*kinds, *(f"{row.family}.state" for row in STATES)]
    assert {each for each in types if types.count(each) > 1} == set()


@pytest.mark.parametrize("row", STATES, ids=lambda row: str(row.pattern))
def test_every_state_has_a_word_for_people(row: Topic) -> None:
    assert getattr(row.carries, "word", Data.word) is not Data.word, (
        f"{row.carries.__name__} needs a word(): `muster events` shows it"
    )


@pytest.mark.parametrize("row", [*EVENTS, *STATES], ids=lambda row: str(row.pattern))
@pytest.mark.parametrize("payload", [b"", b"{", b"null", b"[]", b"{}", b"\xff", b"[" * 100_000, b'{"data": {}}'])
def test_a_payload_that_is_no_document_is_malformed(row: Topic, payload: bytes) -> None:
    with pytest.raises(MalformedDocument, match=re.escape(f"not a document of '{row.pattern}'")):
        row.read(payload)


@given(st.binary(max_size=80), st.sampled_from((*EVENTS, *STATES)))
def test_reading_any_bytes_gives_a_document_or_says_malformed(payload: bytes, row: Topic) -> None:
    with pytest.raises(MalformedDocument):
        row.read(payload)


class Form(BaseModel, extra="forbid"):
    number: int
    name: str


@pytest.mark.parametrize(
    ("given_", "says"),
    [
        ({"number": "x", "name": "a"}, 'number: .+ \\(got "x"\\)'),
        ({"number": 1}, "name: Field required"),
        ({"number": 1, "nmae": "a"}, "'nmae' is not a key"),
        (7, "Input should be a valid dictionary"),
        ({"number": [1] * 1_000, "name": "a"}, r"number: .{1,150}$"),
    ],
)
def test_the_most_telling_fault_is_said_in_a_short_sentence(given_: Any, says: str) -> None:
    with pytest.raises(ValidationError) as caught:
        Form.model_validate(given_)
    assert re.match(says, first_fault(caught.value))
