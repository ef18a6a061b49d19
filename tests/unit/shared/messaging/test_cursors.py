"""Each event once and in order, however brokers lose, double and shuffle them, and however often the reader dies."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.contract.envelope import Event
from shared.contract.events.drift import SessionMissing
from shared.contract.events.lifecycle import AgentGaveUp
from shared.contract.topics import AGENT_DRIFT, AGENT_LIFECYCLE, AGENT_STATE, Space, Topic, locate
from shared.contract.writer import DocumentWriter
from shared.messaging.cursors import (
    MOST_REPLAYS,
    REPLAY_REPEATED_AFTER_S,
    EventReader,
    LocatedMessage,
    NewEvents,
    ReplayRequest,
)
from shared.messaging.inbox import MessageArrived
from shared.messaging.journal import Journal
from shared.system.log import Log

HERE, FAR = Space("box"), Space("far")
NOW = datetime(2030, 1, 1, tzinfo=UTC)
ROWS = (AGENT_LIFECYCLE, AGENT_DRIFT)


def arrived(topic: str, payload: bytes) -> MessageArrived:
    return MessageArrived(topic, payload, retained=False, repeated=False, mid=1, qos=1, connection=1)


def event_of(service: str, seq: int) -> Event:
    if service == "spawner":
        return AgentGaveUp(agent="builder", reason=str(seq))
    return SessionMissing(agent="builder", spawn="s1", session=str(seq))


def message(seq: int, *, space: Space = FAR, service: str = "spawner", epoch: str = "e1") -> MessageArrived:
    writer = DocumentWriter(space, service, epoch)
    return arrived(*writer.event(event_of(service, seq), seq=seq, time=NOW, cause=None))


def altered(original: MessageArrived, **fields: Any) -> MessageArrived:
    """The same document with other fields; None takes one out."""
    document = {key: value for key, value in {**json.loads(original.payload), **fields}.items() if value is not None}
    return arrived(original.topic, json.dumps(document).encode())


def _located(message: MessageArrived) -> Iterator[LocatedMessage]:
    found = locate(message.topic, "muster")
    if found is not None:
        yield LocatedMessage(*found[:2], message.topic, message.payload)


@dataclass
class Rig:
    """A reader, and two services of its host that tell events into the same journal."""

    path: Path
    rows: tuple[Topic, ...] = ROWS
    heard: list[tuple[str, int]] = field(default_factory=list)
    asks: list[ReplayRequest] = field(default_factory=list)
    wire: list[MessageArrived] = field(default_factory=list)
    """All that was ever published on this host."""
    log: io.StringIO = field(default_factory=io.StringIO)

    def __post_init__(self) -> None:
        self.journal = Journal(self.path, "registrar")
        self.others = {name: Journal(self.path, name) for name in ("spawner", "reconciler")}
        self.start()

    def start(self) -> None:
        self.follower = EventReader(self.journal, HERE, self.rows, Log("registrar", self.log))

    def tell(self, service: str, payload: bytes | None = None, topic: str | None = None) -> None:
        def build(seq: int) -> tuple[str, bytes]:
            made = DocumentWriter(HERE, service, self.journal.epoch).event(
                event_of(service, seq), seq=seq, time=NOW, cause=None
            )
            return topic or made[0], made[1] if payload is None else payload

        journal = self.others[service]
        with journal.transaction() as transaction:
            transaction.append([build], 1.0)
        entry = journal.entries(service, journal.last_seq() - 1)[0]
        self.wire.append(arrived(entry.topic, entry.payload))

    def hear(
        self, *messages: MessageArrived, catch_up: bool = False, now: float = 0.0, fails: bool = False
    ) -> list[int]:
        """Take a turn; answers the numbers of the events it was about. A turn that fails leaves no trace."""
        sifted = self.follower.read(
            [each for message in messages for each in _located(message)], catch_up=catch_up, now=now
        )
        if fails:
            return []
        self.commit(sifted)
        new = [(each.envelope.source, each.envelope.seq) for each in sifted.received]
        self.heard += new
        self.asks += sifted.replays
        return [seq for _, seq in new]

    def commit(self, sifted: NewEvents) -> None:
        with self.journal.transaction() as transaction:
            for (source, epoch), seq in sifted.moved.items():
                transaction.move_cursor(source, epoch, seq)
        self.follower.commit(sifted)

    def of(self, service: str) -> list[int]:
        return [seq for source, seq in self.heard if source == f"/box/{service}"]

    def close(self) -> None:
        for journal in (self.journal, *self.others.values()):
            journal.close()


@contextmanager
def rigged(path: Path, rows: tuple[Topic, ...] = ROWS) -> Iterator[Rig]:
    made = Rig(path / "journal.db", rows)
    yield made
    made.close()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with rigged(tmp_path) as made:
        yield made


# --- this host ---


def test_the_next_event_is_received(rig: Rig) -> None:
    for _ in range(3):
        rig.tell("spawner")
        assert rig.hear(rig.wire[-1]) == [len(rig.wire)]


def test_what_the_broker_brings_again_is_dropped(rig: Rig) -> None:
    rig.tell("spawner")
    rig.tell("spawner")
    assert rig.hear(rig.wire[0], rig.wire[0], rig.wire[1]) == [1, 2]
    assert rig.hear(*rig.wire) == []


def test_a_gap_is_closed_from_the_journal(rig: Rig) -> None:
    for _ in range(4):
        rig.tell("spawner")
    assert rig.hear(rig.wire[0]) == [1]
    assert rig.hear(rig.wire[3]) == [2, 3, 4]


def test_events_in_the_wrong_order_are_received_in_the_right_one(rig: Rig) -> None:
    for _ in range(5):
        rig.tell("spawner")
    assert rig.hear(*(rig.wire[place] for place in (3, 0, 2, 1))) == [1, 2, 3, 4, 5]


def test_without_a_broker_the_journal_is_read(rig: Rig) -> None:
    for service in ("spawner", "reconciler", "spawner"):
        rig.tell(service)
    rig.hear(catch_up=True)
    assert (rig.of("spawner"), rig.of("reconciler")) == ([1, 2], [1])
    assert rig.hear(catch_up=True) == []


def test_a_journal_of_many_pages_is_read_to_its_end(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = rig.journal.entries
    monkeypatch.setattr(rig.journal, "entries", lambda source, after: entries(source, after, limit=3))
    for _ in range(10):
        rig.tell("spawner")
    assert rig.hear(catch_up=True) == list(range(1, 11))


def test_a_reader_that_was_away_for_long_takes_several_turns(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    entries = rig.journal.entries
    monkeypatch.setattr(rig.journal, "entries", lambda source, after: entries(source, after, limit=2))
    monkeypatch.setattr("shared.messaging.cursors.EVENTS_PER_TURN", 3)
    for service in ("spawner", "reconciler") * 5:
        rig.tell(service)
    turns = 1
    while rig.follower.read((), catch_up=True, now=0.0).more:
        rig.hear(catch_up=True)
        turns += 1
    rig.hear(catch_up=True)
    assert turns > 2
    assert (rig.of("spawner"), rig.of("reconciler")) == ([1, 2, 3, 4, 5], [1, 2, 3, 4, 5])


def test_a_turn_that_failed_is_made_up_for_from_the_journal(rig: Rig) -> None:
    rig.tell("spawner")
    rig.hear(rig.wire[0], fails=True)
    rig.tell("spawner")
    assert rig.hear(rig.wire[1]) == [1, 2]


def test_places_are_kept_over_a_restart(rig: Rig) -> None:
    rig.tell("spawner")
    rig.hear(rig.wire[0])
    rig.tell("spawner")
    rig.start()
    assert rig.hear(*rig.wire, catch_up=True) == [2]


def test_a_reader_that_was_away_while_events_were_pruned_goes_on_with_what_is_left(rig: Rig) -> None:
    for _ in range(3):
        rig.tell("spawner")
    spawner = rig.others["spawner"]
    spawner.note_published(2)
    spawner.prune(before=100.0)
    assert rig.hear(rig.wire[2]) == [3]


def test_its_own_events_are_not_news(rig: Rig) -> None:
    own = message(1, space=HERE, service="registrar", epoch=rig.journal.epoch)
    assert rig.hear(own) == []
    with rig.journal.transaction() as transaction:
        transaction.append([lambda _: (own.topic, own.payload)], 1.0)
    assert rig.hear(own, catch_up=True) == []


def test_an_event_of_an_earlier_journal_is_no_news_and_moves_nothing(rig: Rig) -> None:
    rig.tell("spawner")
    assert rig.hear(rig.wire[0]) == [1]
    assert rig.hear(message(1, space=HERE, epoch="before"), message(2, space=HERE, epoch="before")) == []
    rig.tell("spawner")
    assert rig.hear(rig.wire[1]) == [2]


def malformed(rig: Rig) -> Iterator[MessageArrived]:
    good = message(1, space=HERE, epoch=rig.journal.epoch)
    yield from (arrived(good.topic, payload) for payload in (b"", b"\xff", b"null", b"[]", b"{}", b"[" * 5_000))
    yield from (altered(good, **{key: None}) for key in ("source", "seq", "epoch", "data", "time", "type", "id"))
    yield altered(good, seq="one")
    yield altered(good, seq=-1)
    yield altered(good, seq=1.5)
    yield altered(good, source="spawner")
    yield altered(good, source="/box/spawner/x")
    yield altered(good, specversion="2.0")
    yield altered(good, time="2030-01-01T00:00:00")
    yield altered(good, data={"kind": "unheard_of", "agent": "builder"})
    yield altered(good, data={"kind": "gave_up", "agent": "Not An Id", "reason": ""})
    yield arrived("muster/box/agent/builder/drift", good.payload)
    yield arrived("muster/box/agent/builder/elsewhere", good.payload)
    yield arrived("other/box/agent/builder/lifecycle", good.payload)
    yield arrived("muster", good.payload)


def test_malformed_events_are_passed_over(rig: Rig) -> None:
    for each in malformed(rig):
        assert rig.hear(each) == [], each
    rig.tell("spawner")
    assert rig.hear(rig.wire[0]) == [1]


def test_a_malformed_event_in_the_journal_does_not_hold_up_those_behind_it(rig: Rig) -> None:
    rig.tell("spawner")
    rig.tell("spawner", payload=b"{")
    rig.tell("spawner", topic="muster/box/elsewhere")
    rig.tell("spawner")
    assert rig.hear(*rig.wire) == [1, 4]
    assert "malformed" in rig.log.getvalue()
    assert rig.hear(*rig.wire, catch_up=True) == []


def test_rows_that_are_not_followed_are_passed_over(tmp_path: Path) -> None:
    with rigged(tmp_path, rows=(AGENT_DRIFT,)) as rig:
        rig.tell("spawner")
        rig.tell("reconciler")
        rig.hear(*rig.wire)
        rig.hear(catch_up=True)
        assert rig.heard == [("/box/reconciler", 1)]


step = st.one_of(
    st.tuples(st.just("tell"), st.sampled_from(("spawner", "reconciler"))),
    st.tuples(st.just("garble"), st.sampled_from(("spawner", "reconciler"))),
    st.tuples(st.sampled_from(("hear", "hear", "hear", "fail", "poll")), st.lists(st.integers(0, 50), max_size=6)),
    st.tuples(st.just("restart"), st.none()),
)


@given(st.lists(step, max_size=40))
@settings(max_examples=40, deadline=None)
def test_each_event_is_received_once_and_in_order_whatever_the_broker_does(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, Any]]
) -> None:
    with rigged(tmp_path_factory.mktemp("following")) as rig:
        expected: dict[str, list[int]] = {"spawner": [], "reconciler": []}
        for what, given_ in steps:
            if what in ("tell", "garble"):
                rig.tell(given_, payload=None if what == "tell" else b"{")
                if what == "tell":
                    expected[given_].append(rig.others[given_].last_seq())
            elif what == "restart":
                rig.start()
            else:
                # Any of what was ever published, in any order, any number of times: the rest is lost.
                brought = [rig.wire[place % len(rig.wire)] for place in given_ if rig.wire]
                rig.hear(*brought, catch_up=what == "poll", fails=what == "fail")
            for service, seqs in expected.items():
                assert rig.of(service) == seqs[: len(rig.of(service))]
        rig.hear(catch_up=True)
        assert {service: rig.of(service) for service in expected} == expected


# --- other hosts: no journal to fall back to ---


def far(rig: Rig) -> list[int]:
    return [seq for source, seq in rig.heard if source.startswith("/far/")]


def test_another_host_is_followed_from_its_first_event_here(rig: Rig) -> None:
    rig.hear(message(41), message(42), message(42), message(41))
    assert far(rig) == [41, 42]
    assert rig.asks == []


def test_a_gap_of_another_host_is_asked_for(rig: Rig) -> None:
    rig.hear(message(1), message(4), message(5))
    assert far(rig) == [1]
    assert rig.asks == [ReplayRequest("far", "spawner", "e1", 1)]
    rig.hear(*map(message, range(2, 7)), now=1.0)
    assert far(rig) == [1, 2, 3, 4, 5, 6]
    assert len(rig.asks) == 1


def test_a_gap_is_not_asked_for_again_at_once(rig: Rig) -> None:
    rig.hear(message(1), message(3), now=10.0)
    rig.hear(message(4), now=10.0 + REPLAY_REPEATED_AFTER_S - 0.1)
    assert len(rig.asks) == 1
    rig.hear(message(5), now=10.0 + REPLAY_REPEATED_AFTER_S)
    assert rig.asks == [ReplayRequest("far", "spawner", "e1", 1)] * 2


def test_a_gap_that_no_replay_closes_is_given_up(rig: Rig) -> None:
    rig.hear(message(1))
    for attempt in range(MOST_REPLAYS):
        rig.hear(message(3), now=attempt * REPLAY_REPEATED_AFTER_S)
    assert (far(rig), len(rig.asks)) == ([1], MOST_REPLAYS)
    rig.hear(message(3), now=MOST_REPLAYS * REPLAY_REPEATED_AFTER_S)
    assert (far(rig), len(rig.asks)) == ([1, 3], MOST_REPLAYS)
    assert "lost" in rig.log.getvalue()
    rig.hear(message(4), message(6), now=MOST_REPLAYS * REPLAY_REPEATED_AFTER_S)
    assert far(rig) == [1, 3, 4]
    assert len(rig.asks) == MOST_REPLAYS + 1  # a new gap is asked for anew


def test_only_what_never_came_is_lost_when_a_gap_is_given_up(rig: Rig) -> None:
    """The second event is gone for good; what came behind it, and came again with every replay, is not."""
    rig.hear(message(1))
    for attempt in range(MOST_REPLAYS):
        rig.hear(*map(message, range(3, 4 + attempt)), now=attempt * REPLAY_REPEATED_AFTER_S)
    rig.hear(message(6), now=MOST_REPLAYS * REPLAY_REPEATED_AFTER_S)
    assert far(rig) == [1, 3, 4, 5, 6]


def test_an_event_of_an_unknown_kind_leaves_no_gap(rig: Rig) -> None:
    """Hosts may differ in version: what a newer one says is passed over, and was not lost."""
    unknown = altered(message(2), type="muster.lifecycle.hibernated", data={"kind": "hibernated", "agent": "builder"})
    rig.hear(message(1), unknown, message(3))
    assert far(rig) == [1, 3]
    assert rig.asks == []


def test_a_new_epoch_of_another_host_counts_anew(rig: Rig) -> None:
    rig.hear(message(7), message(1, epoch="e2"), message(2, epoch="e2"), message(8), message(2, epoch="e2"))
    assert far(rig) == [7, 1, 2, 8]
    assert rig.asks == []


def test_services_of_another_host_are_counted_each_for_itself(rig: Rig) -> None:
    rig.hear(message(1), message(5, service="reconciler"), message(2), message(6, service="reconciler"))
    assert far(rig) == [1, 5, 2, 6]


def test_another_hosts_place_is_kept_over_a_restart(rig: Rig) -> None:
    rig.hear(message(1))
    rig.start()
    rig.hear(message(1), message(3))
    assert far(rig) == [1]
    assert rig.asks == [ReplayRequest("far", "spawner", "e1", 1)]


def test_a_turn_that_failed_over_another_hosts_event_has_it_sent_again(rig: Rig) -> None:
    rig.hear(message(1))
    rig.hear(message(2), fails=True)
    rig.hear(message(3))
    assert far(rig) == [1]
    assert rig.asks == [ReplayRequest("far", "spawner", "e1", 1)]


def test_another_host_can_not_speak_for_a_service_of_this_one(rig: Rig) -> None:
    spoken = message(1, space=HERE, epoch=rig.journal.epoch)
    assert rig.hear(arrived(spoken.topic.replace("/box/", "/far/"), spoken.payload)) == []
    rig.tell("spawner")
    assert rig.hear(rig.wire[0]) == [1]


@given(st.lists(st.lists(st.integers(1, 12), max_size=6), max_size=12), st.lists(st.booleans(), min_size=12))
@settings(max_examples=30, deadline=None)
def test_another_hosts_events_are_received_once_and_in_order(
    tmp_path_factory: pytest.TempPathFactory, batches: list[list[int]], fails: list[bool]
) -> None:
    """Messages lost, doubled and shuffled; the other host answers what it is asked for at last."""
    with rigged(tmp_path_factory.mktemp("following")) as rig:
        rig.hear(message(1))
        for place, batch in enumerate(batches):
            rig.hear(*map(message, batch), now=0.1 * place, fails=fails[place])
            assert far(rig) == list(range(1, len(far(rig)) + 1))
        after = far(rig)[-1]
        rig.hear(*map(message, range(after + 1, 14)), now=2.0)
        assert far(rig) == list(range(1, 14))


# --- hints ---


def test_what_a_service_does_not_follow_reaches_it_as_a_hint(rig: Rig) -> None:
    state = LocatedMessage("box", AGENT_STATE, "muster/box/agent/builder/state", b"any bytes")
    rig.tell("spawner")
    (event,) = _located(rig.wire[0])
    assert rig.follower.hints([event, state]) == [state]
    assert rig.follower.hints([state, state]) == [state, state], "as it came"
    read = rig.follower.read([event, state], catch_up=False, now=0.0)
    assert [each.envelope.seq for each in read.received] == [1], "a hint is no event"
