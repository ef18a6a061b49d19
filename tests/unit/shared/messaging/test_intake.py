"""The intake survives any payload, exactly one service answers for each, and each command is filed once."""

import io
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from paho.mqtt.client import topic_matches_sub

from shared.contract.commands import COMMAND_EXPIRES_AFTER_S, MAX_PAYLOAD, VERBS, Reply, Spawn
from shared.contract.ids import is_id
from shared.contract.services import SERVICES
from shared.contract.states import AgentState, Desired, Presence, ServiceState, Status
from shared.contract.topics import AGENT_DRIFT, AGENT_STATE, DEFAULT_OWNER, SERVICE_STATE, Space
from shared.contract.writer import DocumentWriter
from shared.messaging.cursors import LocatedMessage
from shared.messaging.inbox import MessageArrived
from shared.messaging.intake import (
    CommandFault,
    CommandIntake,
    MessageIntake,
    RefusedCommand,
    read_command,
    request_of,
)
from shared.messaging.journal import Journal, Request
from shared.messaging.presence import OwnPresence, state_of
from shared.system.log import Log
from tests.fakes.bus import FakeBus

SPACE = Space("box")
NOW = datetime(2030, 1, 1, tzinfo=UTC)
INTAKES = {service: CommandIntake(SPACE, service) for service in SERVICES}


def command(
    payload: bytes | dict[str, Any],
    verb: str = "spawn",
    *,
    retained: bool = False,
    repeated: bool = False,
    mid: int = 1,
) -> MessageArrived:
    body = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return MessageArrived(f"muster/box/command/{verb}", body, retained, repeated, mid, qos=1, connection=1)


def take_all(message: MessageArrived, verb: str, waited_s: float = 0.0) -> dict[str, Request | RefusedCommand]:
    """What each service that hears the message makes of it."""
    return {
        service: taken
        for service, intake in INTAKES.items()
        if any(topic_matches_sub(name, message.topic) for name in intake.subscriptions)
        and (taken := intake.take(message, verb, now=NOW, waited_s=waited_s)) is not None
    }


def refused(message: MessageArrived, verb: str = "spawn") -> RefusedCommand:
    """The one refusal of a message."""
    (taken,) = take_all(message, verb).values()
    assert isinstance(taken, RefusedCommand)
    return taken


def accepted(message: MessageArrived, verb: str = "spawn", waited_s: float = 0.0) -> Request:
    (taken,) = take_all(message, verb, waited_s).values()
    assert isinstance(taken, Request)
    return taken


# --- what is taken ---


def test_a_command_becomes_a_request() -> None:
    body = b'{"agent": "builder", "id": "c1", "by": "Ann"}'
    assert accepted(command(body)) == Request(
        id="c1",
        verb="spawn",
        payload=body,
        reply_to="muster/box/reply/c1",
        asked=NOW.timestamp(),
        expires=NOW.timestamp() + COMMAND_EXPIRES_AFTER_S,
        agent="builder",
        delivery=None,
    )


def test_a_command_without_an_id_is_given_one_and_is_known_by_its_delivery() -> None:
    first, again = (accepted(command({"agent": "builder"}, mid=7, repeated=dup)) for dup in (False, True))
    other = accepted(command({"agent": "builder"}, mid=8))
    elsewhere = accepted(command({"agent": "builder"}, "stop", mid=7), "stop")
    assert is_id(first.id)
    assert first.reply_to == f"muster/box/reply/{first.id}"
    assert len({first.id, again.id, other.id}) == 3
    assert first.delivery is not None
    assert first.delivery == again.delivery
    assert len({first.delivery, other.delivery, elsewhere.delivery}) == 3


def test_a_reply_may_be_wanted_elsewhere_below_reply() -> None:
    assert accepted(command({"agent": "a", "reply_to": "muster/box/reply/mine"})).reply_to == "muster/box/reply/mine"


def test_the_time_it_waited_counts_towards_its_end() -> None:
    request = accepted(command({"agent": "a"}), waited_s=50.0)
    assert (request.asked, request.expires) == (NOW.timestamp() - 50, NOW.timestamp() + COMMAND_EXPIRES_AFTER_S - 50)


@pytest.mark.parametrize(
    ("made", "asked"),
    [(-30.0, -30.0), (-50.0, -50.0), (-9_000.0, -50.0), (0.0, 0.0), (9_000.0, 0.0)],
    ids=["as its sender says", "long ago", "not before it can have been sent", "now", "never later than now"],
)
def test_the_sender_may_say_when_it_was_made(made: float, asked: float) -> None:
    said = (NOW + timedelta(seconds=made)).isoformat()
    assert accepted(command({"agent": "a", "made": said}), waited_s=50.0).asked == NOW.timestamp() + asked


@pytest.mark.parametrize(("made", "asked"), [(-30.0, -30.0), (9_000.0, 0.0), (None, 0.0)])
def test_a_command_on_its_way_through_the_journal_was_made_when_it_says(made: float | None, asked: float) -> None:
    said = None if made is None else NOW + timedelta(seconds=made)
    request = request_of(SPACE, Spawn(agent="a", id="c1", made=said), NOW.timestamp())
    assert request.asked == NOW.timestamp() + asked


@pytest.mark.parametrize("away", [timedelta(days=-1), timedelta(seconds=1), timedelta(days=9)])
def test_the_sender_may_say_when_it_is_too_late(away: timedelta) -> None:
    request = accepted(command({"agent": "a", "expires": (NOW + away).isoformat()}), waited_s=50.0)
    assert request.expires == (NOW + away).timestamp()


@pytest.mark.parametrize("service", SERVICES)
def test_a_replay_is_for_the_service_it_names(service: str) -> None:
    taken = take_all(command({"service": service, "after": 0}, "replay"), "replay")
    assert list(taken) == [service]
    assert isinstance(taken[service], Request)


def test_every_verb_reaches_its_owner() -> None:
    for verb, kind in VERBS.items():
        owners = SERVICES if kind.owner == "*" else (kind.owner,)
        topic = f"muster/box/command/{verb}"
        subscribers = {
            s for s, intake in INTAKES.items() if any(topic_matches_sub(name, topic) for name in intake.subscriptions)
        }
        assert subscribers == {*owners, DEFAULT_OWNER}


@pytest.mark.parametrize(("verb", "payload"), [("phase_next", {}), ("replay", {"service": "handoff", "after": 0})])
def test_a_command_to_a_service_that_is_switched_off_is_refused_once_and_in_words(verb: str, payload: Any) -> None:
    running = [name for name in SERVICES if name != "handoff"]
    message = command({"id": "c1", **payload}, verb)
    taken = [CommandIntake(SPACE, name, running).take(message, verb, now=NOW) for name in running]
    (refusal,) = [each for each in taken if each is not None]
    assert isinstance(refusal, RefusedCommand)
    assert (refusal.reply.id, refusal.reply.code) == ("c1", "unknown_service")
    assert "set `handoff: {enabled: true}` there" in refusal.reply.said


def test_the_trace_of_a_cleared_message_is_nothing() -> None:
    for retained in (False, True):
        assert take_all(command(b"", retained=retained), "spawn") == {}


# --- what is refused ---

DEEP = b'{"agent": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"


@pytest.mark.parametrize(
    ("payload", "verb", "code", "says"),
    [
        (b"\xff\xfe", "spawn", "malformed", "not UTF-8 (byte 0)"),
        (b'{"agent": "b\xe9"}', "spawn", "malformed", "not UTF-8 (byte 12)"),
        (b"builder", "spawn", "malformed", "not JSON"),
        (b'{"agent": "builder"', "spawn", "malformed", "not JSON"),
        (b"{'agent': 'builder'}", "spawn", "malformed", "not JSON"),
        (b"\0", "spawn", "malformed", "not JSON"),
        (b" ", "spawn", "malformed", "not JSON"),
        (DEEP, "spawn", "malformed", "not JSON"),
        (b'{"after": ' + b"1" * 5_000 + b', "service": "spawner"}', "replay", "malformed", "not JSON"),
        (b'"builder"', "spawn", "malformed", 'not an object; send one such as {"agent": "builder"}'),
        (b'["builder"]', "spawn", "malformed", "not an object"),
        (b"null", "spawn", "malformed", "not an object"),
        (b"7", "spawn", "malformed", "not an object"),
        (b"{}", "spawn", "malformed", "agent: Field required"),
        (b'{"agent": 7}', "spawn", "malformed", "agent: Input should be a valid string (got 7)"),
        (b'{"agent": null}', "spawn", "malformed", "agent: Input should be a valid string"),
        (b'{"agent": ["builder"]}', "spawn", "malformed", "agent: Input should be a valid string"),
        (b'{"agent": "../etc"}', "spawn", "malformed", "agent: String should match pattern"),
        (b'{"agent": ""}', "spawn", "malformed", "agent: String should match pattern"),
        (b'{"agent": "\\ud800"}', "spawn", "malformed", "Invalid JSON"),
        (b'{"agent": "a", "argv": ["sh"]}', "spawn", "malformed", "'argv'"),
        (b'{"agnet": "a"}', "spawn", "malformed", "'agnet'"),
        (b'{"agent": "a", "id": "A B"}', "spawn", "malformed", "id: String should match pattern"),
        (b'{"agent": "a", "id": 5}', "spawn", "malformed", "id: Input should be a valid string"),
        (b'{"agent": "a", "for_now": "yes"}', "stop", "malformed", "for_now: Input should be a valid boolean"),
        (b'{"agent": "a", "expires": "soon"}', "spawn", "malformed", "expires:"),
        (b'{"agent": "a", "expires": "2030-01-01T00:00:00"}', "spawn", "malformed", "timezone"),
        (b'{"agent": "a", "by": "' + b"x" * 201 + b'"}', "spawn", "malformed", "by: String should have at most 200"),
        (
            b'{"agent": "a", "reply_to": "muster/box/reply/"}',
            "spawn",
            "malformed",
            "reply_to must be muster/box/reply/",
        ),
        (b'{"agent": "a", "reply_to": "muster/box/reply/a/b"}', "spawn", "malformed", "reply_to must be"),
        (b'{"agent": "a", "reply_to": "muster/box/reply/+"}', "spawn", "malformed", "reply_to must be"),
        (b'{"agent": "a", "reply_to": "muster/box/reply/x\\n"}', "spawn", "malformed", "reply_to must be"),
        (b'{"agent": "a", "reply_to": "muster/far/reply/x"}', "spawn", "malformed", "reply_to must be"),
        (b'{"agent": "a", "reply_to": "muster/box/command/stop"}', "spawn", "malformed", "reply_to must be"),
        (b'{"agent": "a", "reply_to": ""}', "spawn", "malformed", "reply_to must be"),
        (b'{"service": "spawner", "after": -1}', "replay", "malformed", "after: Input should be greater"),
        (b'{"service": "spawner", "after": "0"}', "replay", "malformed", "after: Input should be a valid integer"),
        (b'{"service": "spawner", "after": true}', "replay", "malformed", "after: Input should be a valid integer"),
        (b'{"service": "registrar"}', "replay", "malformed", "after: Field required"),
        (b'{"service": "nobody", "after": 0}', "replay", "unknown_service", f"there are: {', '.join(SERVICES)}"),
        (b'{"agent": "a"}', "spwan", "unknown_verb", f"there are: {', '.join(sorted(VERBS))}"),
        (b"\xff", "Spawn", "unknown_verb", "there is no verb 'Spawn'"),
        (b'{"agent": "a"}', "\N{SNOWMAN}" * 200, "unknown_verb", "there is no verb"),
        (b"x" * (MAX_PAYLOAD + 1), "spawn", "malformed", f"{MAX_PAYLOAD + 1} bytes; at most {MAX_PAYLOAD}"),
        (b'{"agent": "' + b"x" * 1_000_000 + b'"}', "restart", "malformed", "at most"),
    ],
)
def test_one_service_says_what_is_wrong_with_a_payload(payload: bytes, verb: str, code: str, says: str) -> None:
    answer = refused(command(payload, verb), verb).reply
    assert (answer.ok, answer.code) == (False, code)
    assert says in answer.said
    assert len(answer.said) < 1_000
    assert "\n" not in answer.said


def test_a_payload_of_just_the_largest_size_is_read() -> None:
    body = b'{"agent": "a"' + b" " * (MAX_PAYLOAD - 14) + b"}"
    assert len(body) == MAX_PAYLOAD
    assert accepted(command(body)).agent == "a"


def test_the_sentence_about_a_key_of_any_length_stays_short() -> None:
    said = refused(command(b'{"' + b"k" * 100_000 + b'": 1}')).reply.said
    assert len(said) < 1_000


@pytest.mark.parametrize("verb", [*VERBS, "unheard_of"])
def test_a_retained_command_is_refused_and_cleared(verb: str) -> None:
    message = command({"agent": "a", "id": "c1"}, verb, retained=True)
    taken = refused(message, verb)
    assert taken.reply.code == "retained"
    assert taken.clear == message.topic
    assert taken.topic == "muster/box/reply/c1"


def test_what_is_refused_is_not_cleared_unless_it_was_retained() -> None:
    assert refused(command(b"{")).clear is None


@pytest.mark.parametrize(
    ("payload", "reply_id"),
    [
        (b'{"id": "c1", "agnet": "a"}', "c1"),
        (b'{"agent": 5, "id" :"c_2-"', "c_2-"),
        (b'\xff{"id":"c3"}', "c3"),
    ],
)
def test_a_refusal_reaches_the_sender_if_there_is_any_id(payload: bytes, reply_id: str) -> None:
    taken = refused(command(payload))
    assert taken.topic == f"muster/box/reply/{reply_id}"
    assert taken.reply.id == reply_id


def test_a_refusal_without_an_id_goes_to_a_new_one() -> None:
    taken = refused(command(b"{"))
    assert is_id(taken.reply.id)
    assert taken.topic == f"muster/box/reply/{taken.reply.id}"


@pytest.mark.parametrize("depth", [*range(150, 260, 10), 900, 950, 990, 1_000, 5_000])
def test_nesting_of_any_depth_is_refused_and_not_fallen_over(depth: int) -> None:
    assert refused(command(b'{"agent": ' + b"[" * depth + b"]" * depth + b"}")).reply.code == "malformed"


@pytest.mark.parametrize(
    "expires", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "1969-12-31T23:59:59Z", "0001-01-01T00:00Z"]
)
def test_a_time_at_the_end_of_all_times_is_a_time(expires: str) -> None:
    accepted(command({"agent": "a", "expires": expires}))


# --- anything at all ---

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
keys = st.sampled_from(["agent", "id", "reply_to", "expires", "by", "for_now", "service", "epoch", "after", "x"])
likely = st.sampled_from(["builder", "c1", "muster/box/reply/x", "2030-01-01T00:00:00Z", "spawner", 0, 2**80, True, ""])
documents = st.dictionaries(keys, likely | values, max_size=6).map(json.dumps).map(str.encode)
verbs = st.sampled_from([*VERBS, "unheard_of"]) | st.text(
    st.characters(exclude_characters="/+#\0", exclude_categories=["Cs"]), min_size=1, max_size=70
)


@given(st.binary(max_size=60) | values.map(json.dumps).map(str.encode) | documents, verbs, st.booleans())
@example(DEEP, "spawn", False)
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_answered_by_at_most_one_service_and_never_raise(
    payload: bytes, verb: str, retained: bool
) -> None:
    taken = take_all(command(payload, verb, retained=retained), verb)
    assert len(taken) == (1 if payload else 0)
    for service, each in taken.items():
        if isinstance(each, RefusedCommand):
            assert each.reply.by == service
            assert not each.reply.ok
            assert each.topic == f"muster/box/reply/{each.reply.id}"
            assert is_id(each.reply.id)
            Reply.model_validate_json(each.reply.model_dump_json())
        else:
            assert not retained
            assert is_id(each.id)
            read_command(VERBS[verb], each.payload)


def test_a_command_in_the_journal_that_can_not_be_read_is_a_fault() -> None:
    with pytest.raises(CommandFault, match="not JSON"):
        read_command(VERBS["spawn"], b"{")


# --- reception: what becomes of what the intake takes ---


class Rig:
    def __init__(self, path: Path) -> None:
        self.journal = Journal(path, "spawner")
        self.bus = FakeBus(up=True)
        self.writer = DocumentWriter(SPACE, "spawner", self.journal.epoch)
        self.own = OwnPresence(self.writer, self.bus)
        self.states = {"muster/box/agent/builder/state"}
        self.start()

    def start(self) -> None:
        self.reception = MessageIntake(
            self.journal,
            self.bus,
            SPACE,
            self.own,
            (AGENT_STATE,),
            lambda: self.states,
            {},
            Log("spawner", io.StringIO()),
        )

    def sort(self, *messages: MessageArrived) -> tuple[Sequence[LocatedMessage], bool]:
        return self.reception.sort(messages)

    def ids(self) -> list[str]:
        return [request.id for request in self.journal.requests.open()]

    def answer(self, request_id: str, said: bytes) -> None:
        with self.journal.transaction() as transaction:
            transaction.answer(request_id, said, 1.0)

    def state(self, status: Presence, connection: int) -> MessageArrived:
        state: ServiceState = state_of(self.writer, status, connection)
        topic, payload = self.writer.state(state, seq=0, time=NOW)
        return MessageArrived(topic, payload, retained=False, repeated=False, mid=1, qos=1, connection=1)


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path / "journal.db")
    yield made
    made.journal.close()


def test_a_command_is_durable_when_it_was_sorted(rig: Rig) -> None:
    assert rig.sort(command({"agent": "a", "id": "c1"})) == ([], True)
    assert rig.ids() == ["c1"]


def test_the_same_id_is_filed_once_and_answered_again(rig: Rig) -> None:
    rig.sort(command({"agent": "a", "id": "c1"}), command({"agent": "a", "id": "c1"}))
    assert rig.ids() == ["c1"]
    assert rig.bus.published == []
    rig.answer("c1", b"done")
    rig.sort(command({"agent": "a", "id": "c1", "reply_to": "muster/box/reply/mine"}))
    assert rig.ids() == []
    assert rig.bus.published == [("muster/box/reply/mine", b"done")]
    assert rig.bus.retained == {}


def test_a_command_without_an_id_that_is_sent_twice_is_two(rig: Rig) -> None:
    rig.sort(command({"agent": "a"}, mid=1))
    rig.sort(command({"agent": "a"}, mid=1), command({"agent": "a"}, mid=2))
    assert len(rig.ids()) == 3


def test_a_command_without_an_id_that_the_broker_brings_again_is_one(rig: Rig) -> None:
    rig.sort(command({"agent": "a"}, mid=5))
    rig.sort(command({"agent": "a"}, mid=5, repeated=True))
    rig.start()
    rig.sort(command({"agent": "a"}, mid=5, repeated=True))
    assert len(rig.ids()) == 1


def test_a_command_that_comes_and_comes_again_in_one_batch_is_one(rig: Rig) -> None:
    """The loop was busy while the connection broke, so it finds both deliveries at once."""
    rig.sort(command({"agent": "a"}, mid=5), command({"agent": "a"}, mid=5, repeated=True))
    assert len(rig.ids()) == 1


def test_a_command_marked_as_repeated_that_never_came_is_taken(rig: Rig) -> None:
    rig.sort(command({"agent": "a"}, mid=5, repeated=True))
    assert len(rig.ids()) == 1


@pytest.mark.parametrize("fails_in", ["accept", "answer_to"])
def test_a_journal_that_could_not_be_used_is_tried_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, fails_in: str
) -> None:
    """The loop sorts the same messages again. Those without an id must not have become two on the way."""

    def fails(*_: object) -> None:
        raise OSError("disk full")

    messages = command({"agent": "a", "id": "c1"}), command({"agent": "a"}, mid=5)
    with monkeypatch.context() as patch:
        patch.setattr(rig.journal.requests, fails_in, fails)
        with pytest.raises(OSError, match="disk full"):
            rig.sort(*messages)
    assert rig.sort(*messages) == ([], True)
    assert len(rig.ids()) == 2
    assert "c1" in rig.ids()
    assert rig.sort() == ([], False)


def test_a_refused_command_is_answered_and_not_filed(rig: Rig) -> None:
    rig.sort(command({"agnet": "a", "id": "c1"}))
    assert rig.bus.replies() == [("muster/box/reply/c1", "malformed")]
    assert rig.ids() == []


def test_a_retained_command_is_cleared_from_the_broker(rig: Rig) -> None:
    rig.sort(command({"agent": "a", "id": "c1"}, retained=True))
    assert rig.bus.replies() == [("muster/box/reply/c1", "retained")]
    assert rig.bus.retained == {"muster/box/command/spawn": b""}
    assert rig.ids() == []


def test_events_are_handed_on_and_commands_of_other_hosts_are_not_ours(rig: Rig) -> None:
    drift = MessageArrived(AGENT_DRIFT.name(SPACE, agent="a"), b"x", False, False, 1, 1, 1)
    stray = MessageArrived("elsewhere/box/command/spawn", b"{}", False, False, 1, 1, 1)
    events, requested = rig.sort(drift, stray)
    assert [each.topic for each in events] == [drift.topic]
    assert not requested
    far = MessageArrived("muster/far/command/spawn", b'{"agent": "a"}', False, False, 1, 1, 1)
    assert not rig.sort(far)[1]


def test_commands_before_the_echo_of_the_own_state_may_have_waited(rig: Rig) -> None:
    rig.own.connection = 3
    rig.reception.connected(kept=True, away_s=1_000.0)
    rig.sort(
        command({"agent": "a", "id": "old"}), rig.state(Presence.OFFLINE, 2), command({"agent": "a", "id": "old2"})
    )
    rig.sort(rig.state(Presence.ONLINE, 3), command({"agent": "a", "id": "new"}))
    waits = {request.id: request.expires - request.asked for request in rig.journal.requests.open()}
    ages = {
        request.id: rig.journal.requests.open()[-1].asked - request.asked for request in rig.journal.requests.open()
    }
    assert list(waits.values()) == [COMMAND_EXPIRES_AFTER_S] * 3
    assert ages["old"] > 900
    assert ages["old2"] > 900
    assert ages["new"] == 0


def test_commands_that_may_be_equally_old_keep_their_order(rig: Rig) -> None:
    sent_after = time.monotonic() - 4.0
    ids = [f"c{number}" for number in reversed(range(20))]
    for id_ in ids:
        rig.sort(replace(command({"agent": "a", "id": id_}), sent_after=sent_after))
    assert rig.ids() == ids
    assert datetime.now(UTC).timestamp() - rig.journal.requests.open()[-1].asked > 3.9


def test_in_a_new_session_nothing_has_waited(rig: Rig) -> None:
    rig.reception.connected(kept=False, away_s=1_000.0)
    rig.sort(command({"agent": "a", "id": "c1"}))
    (request,) = rig.journal.requests.open()
    assert request.expires > datetime.now(UTC).timestamp()


@pytest.mark.parametrize(
    ("status", "connection", "contradicted"),
    [
        (Presence.OFFLINE, 2, True),  # the will of an earlier connection, come late
        (Presence.OFFLINE, 3, False),
        (Presence.ONLINE, 2, False),
        (Presence.ONLINE, 3, False),
        (Presence.DEGRADED, 3, False),
    ],
)
def test_a_late_will_is_contradicted(rig: Rig, status: Presence, connection: int, contradicted: bool) -> None:
    rig.own.connection = 3
    rig.sort(rig.state(status, connection))
    assert rig.reception.presence_is_wrong is contradicted


def test_a_late_will_is_contradicted_whatever_comes_behind_it(rig: Rig) -> None:
    rig.own.connection = 3
    cleared = MessageArrived(SERVICE_STATE.name(SPACE, service="spawner"), b"", False, False, 1, 1, 1)
    rig.sort(rig.state(Presence.OFFLINE, 2), cleared, rig.state(Presence.ONLINE, 2))
    assert rig.reception.presence_is_wrong


def test_retained_states_of_what_is_gone_are_cleared(rig: Rig) -> None:
    def state(agent: str, *, retained: bool = True, host: str = "box") -> MessageArrived:
        about = AgentState(
            agent=agent,
            status=Status.RUNNING,
            since=NOW,
            reason="",
            desired=Desired.RUNNING,
            backend="demo",
            workspace="/",
        )
        topic, payload = DocumentWriter(Space(host), "registrar", "e").state(about, seq=0, time=NOW)
        return MessageArrived(topic, payload, retained, False, 1, 1, 1)

    rig.sort(state("builder"), state("gone"), state("echo", retained=False), state("gone", host="far"))
    assert rig.bus.published == [("muster/box/agent/gone/state", b"")]
    assert rig.bus.retained == {"muster/box/agent/gone/state": b""}
