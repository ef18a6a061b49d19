"""The outbox and a publisher written by hand: whatever happens, everything is published in order, and noted late."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.messaging import outbox as outbox_module
from shared.messaging.journal import Journal
from shared.messaging.outbox import (
    PROGRESS_SAVED_EVERY_S,
    RESENT_BEFORE_LOSS_S,
    WINDOW,
    Outbox,
)
from shared.messaging.silence import GAP_S, LONGEST_PAUSE_S, PROBED_EVERY_S, SUBSCRIBERS_RETURN_WITHIN_S


@dataclass
class Broker:
    """Takes what is published while there is a connection, and leaves the acknowledging to the test."""

    up: bool = False
    takes: int | None = None
    """How many more messages it takes before the connection breaks; None: any number."""
    connections: list[list[int]] = field(default_factory=list)
    """What was published on each connection, as the numbers of the events."""
    unacknowledged: dict[int, int] = field(default_factory=dict)
    acknowledged: set[int] = field(default_factory=set)
    mid: int = 0

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> int | None:
        assert not retain
        if self.takes == 0:
            self.up = False
        if not self.up:
            return None
        if self.takes is not None:
            self.takes -= 1
        self.mid += 1
        assert topic == "topic"
        self.connections[-1].append(int(payload))
        self.unacknowledged[self.mid] = int(payload)
        return self.mid

    def connect(self) -> None:
        self.up, self.mid, self.takes = True, 0, None
        self.unacknowledged.clear()
        self.connections.append([])

    @property
    def here(self) -> list[int]:
        """What was published on the newest connection."""
        return self.connections[-1]


@dataclass
class Rig:
    """A journal, an outbox and a broker, with one clock for all."""

    path: Path
    now: float = 1_000.0
    lost_at: float | None = None
    heard_before: float = math.inf
    """When an earlier process heard of a broker: so late that it lost nothing, but for tests that say otherwise."""
    first: bool = True
    broker: Broker = field(default_factory=Broker)
    ats: list[float] = field(default_factory=list)
    rewinds: int = 0
    unnoticed: bool = False
    """Whether the connection was lost and made again while the service was busy, and it does not know yet."""

    def __post_init__(self) -> None:
        self.journal = Journal(self.path, "spawner")
        self.outbox = Outbox(self.journal, self.broker)

    def tell(self, count: int) -> None:
        with self.journal.transaction() as transaction:
            entries = transaction.append([lambda seq: ("topic", str(seq).encode())] * count, self.now)
        self.ats += [self.now] * count
        self.outbox.appended(entries)

    def swap(self) -> None:
        """The connection is lost and made again; the service publishes on it before it learns of that."""
        self.broker.connect()
        self.unnoticed = True

    def connect(self) -> None:
        if self.unnoticed:
            self.unnoticed = False
            self.outbox.disconnected(self.now)
            self.lost_at = self.lost_at or self.now
        else:
            self.broker.connect()
        self.outbox.connected(self.now, self.lost_at, self.heard_before, first=self.first)
        self.lost_at = None

    def lose(self) -> None:
        self.broker.up = self.unnoticed = False
        self.broker.unacknowledged.clear()
        self.outbox.disconnected(self.now)
        self.lost_at = self.lost_at or self.now

    def acknowledge(self, *numbers: int) -> None:
        """Let the broker acknowledge messages, by their numbers on this connection; all without any."""
        for number in numbers or list(self.broker.unacknowledged):
            if number in self.broker.unacknowledged:
                self.broker.acknowledged.add(self.broker.unacknowledged.pop(number))
            if not self.unnoticed:  # the bus keeps back what belongs to a connection that is not greeted yet
                self.outbox.acknowledged(number, self.now, self.now)

    def restart(self) -> None:
        """The service is killed and started again: only the journal stays."""
        self.broker.up = self.unnoticed = False
        self.broker.unacknowledged.clear()
        self.lost_at = None
        self.outbox = Outbox(self.journal, self.broker)

    def answer_for_a_while(self) -> None:
        """The broker acknowledges the probes of a service that waits for subscribers."""
        end = self.now + SUBSCRIBERS_RETURN_WITHIN_S
        self.outbox.acknowledged(0, self.now, self.now)
        while self.now < end:
            self.now += PROBED_EVERY_S
            self.outbox.acknowledged(0, self.now, self.now)

    def drain(self) -> None:
        """A connection that lasts."""
        self.broker.takes = None
        if not self.broker.up or self.unnoticed:
            self.connect()
        self.answer_for_a_while()
        for _ in range(100):
            self.outbox.pump(self.now)
            self.acknowledge(*self.broker.unacknowledged)
            if not self.broker.unacknowledged and self.outbox.due(self.now) is None:
                break
        self.outbox.save_progress(self.now, at_once=True)


@contextmanager
def rigged(path: Path) -> Iterator[Rig]:
    rig = Rig(path / "journal.db")
    yield rig
    rig.journal.close()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with rigged(tmp_path) as made:
        yield made


def test_events_are_published_in_order(rig: Rig) -> None:
    rig.connect()
    rig.tell(3)
    rig.outbox.pump(rig.now)
    rig.tell(2)
    rig.outbox.pump(rig.now)
    assert rig.broker.here == [1, 2, 3, 4, 5]
    assert rig.outbox.waiting == 5
    rig.acknowledge()
    assert rig.outbox.waiting == 0


def test_nothing_is_published_before_there_is_a_connection(rig: Rig) -> None:
    rig.tell(3)
    rig.outbox.pump(rig.now)
    assert rig.outbox.due(rig.now) is None
    rig.connect()
    rig.outbox.pump(rig.now)
    assert rig.broker.connections == [[1, 2, 3]]


def test_no_more_than_a_window_is_under_way(rig: Rig) -> None:
    rig.connect()
    rig.tell(WINDOW + 10)
    rig.outbox.pump(rig.now)
    assert len(rig.broker.here) == WINDOW
    assert rig.outbox.due(rig.now) is None
    rig.outbox.pump(rig.now)
    assert len(rig.broker.here) == WINDOW
    rig.acknowledge(1, 2, 3)
    assert rig.outbox.due(rig.now) == rig.now
    rig.outbox.pump(rig.now)
    assert rig.broker.here == list(range(1, WINDOW + 4))


def test_the_window_counts_what_is_unacknowledged_not_what_came_out_of_order(rig: Rig) -> None:
    rig.connect()
    rig.tell(WINDOW + 10)
    rig.outbox.pump(rig.now)
    rig.acknowledge(WINDOW)
    rig.outbox.pump(rig.now)
    assert rig.broker.here == list(range(1, WINDOW + 2))
    assert rig.outbox.waiting == WINDOW + 10


def test_an_acknowledgement_out_of_order_is_noted_when_those_before_it_have_come(rig: Rig) -> None:
    rig.connect()
    rig.tell(4)
    rig.outbox.pump(rig.now)
    noted = []
    for number in (3, 2, 4, 1):
        rig.acknowledge(number)
        rig.outbox.save_progress(rig.now, at_once=True)
        noted.append(rig.journal.published())
    assert noted == [0, 0, 0, 4]


def test_acknowledgements_of_other_messages_mean_nothing(rig: Rig) -> None:
    rig.connect()
    rig.tell(2)
    rig.outbox.pump(rig.now)
    rig.acknowledge(1)
    for number in (1, 0, 77):  # again, of a state, of nobody
        rig.outbox.acknowledged(number, rig.now, rig.now)
    assert rig.outbox.waiting == 1


def test_after_a_restart_it_goes_on_behind_what_was_noted(rig: Rig) -> None:
    rig.connect()
    rig.tell(5)
    rig.outbox.pump(rig.now)
    rig.acknowledge(1, 2, 3)
    rig.outbox.save_progress(rig.now, at_once=True)
    rig.acknowledge(4)
    rig.restart()
    assert rig.outbox.waiting == 2
    rig.connect()
    rig.outbox.pump(rig.now)
    assert rig.broker.here == [], "there may have been no broker: who listens takes a moment to return"
    rig.answer_for_a_while()
    rig.outbox.pump(rig.now)
    assert rig.broker.here == [4, 5]


def test_what_a_broker_forgot_that_died_with_the_service_is_sent_again(rig: Rig) -> None:
    for _ in range(4):
        rig.now += RESENT_BEFORE_LOSS_S / 2
        rig.tell(1)
    rig.heard_before = rig.now
    rig.drain()
    rig.restart()
    rig.first = False
    rig.connect()
    rig.outbox.pump(rig.now)
    assert rig.broker.here == [], "the broker may have come back with this service: subscribers are still to return"
    rig.answer_for_a_while()
    rig.outbox.pump(rig.now)
    assert rig.broker.here == [2, 3, 4]


def test_what_is_published_is_written_down_seldom(rig: Rig) -> None:
    rig.connect()
    rig.tell(3)
    rig.outbox.pump(rig.now)
    noted = []
    for number, passed in ((1, 0.0), (2, PROGRESS_SAVED_EVERY_S / 2), (3, PROGRESS_SAVED_EVERY_S)):
        rig.acknowledge(number)
        rig.outbox.save_progress(rig.now + passed)
        noted.append(rig.journal.published())
    assert noted == [1, 1, 3]


def test_on_the_first_connection_events_are_published_at_once(rig: Rig) -> None:
    rig.tell(1)
    rig.connect()
    assert rig.outbox.due(rig.now) == rig.now
    rig.outbox.pump(rig.now)
    assert rig.broker.here == [1]


def test_after_a_loss_subscribers_get_time_to_return(rig: Rig) -> None:
    rig.connect()
    rig.lose()
    rig.tell(1)
    rig.connect()
    rig.outbox.acknowledged(0, rig.now, rig.now)
    rig.outbox.pump(rig.now + SUBSCRIBERS_RETURN_WITHIN_S)
    assert rig.broker.here == [], "time in which the broker answers nothing does not count"
    rig.answer_for_a_while()
    rig.outbox.pump(rig.now)
    assert rig.broker.here == [1]


def test_a_service_that_is_busy_with_long_turns_does_not_wait_for_ever(rig: Rig) -> None:
    """It probes seldom then, and what it probes with is acknowledged at once."""
    lose_and_return(rig)
    rig.tell(1)
    for _ in range(3):
        rig.now += 2 * GAP_S
        rig.outbox.acknowledged(0, rig.now, rig.now)
        rig.outbox.pump(rig.now)
    assert rig.broker.here == [1]


def test_a_broker_that_is_always_slow_gets_its_events(rig: Rig) -> None:
    lose_and_return(rig)
    rig.tell(1)
    for _ in range(5):
        rig.now += PROBED_EVERY_S
        rig.outbox.acknowledged(0, rig.now - 2.1, rig.now)
    rig.outbox.pump(rig.now)
    assert rig.broker.here == [1]


def test_a_broker_that_froze_while_it_was_waited_for_is_waited_for_anew(rig: Rig) -> None:
    lose_and_return(rig)
    rig.tell(1)
    for passed in (0.0, 1.0, 3.0, 0.4):
        rig.now += passed
        rig.outbox.acknowledged(0, rig.now - min(passed, 3.0), rig.now)
        rig.outbox.pump(rig.now)
    assert rig.broker.here == []
    rig.answer_for_a_while()
    rig.outbox.pump(rig.now)
    assert rig.broker.here == [1]


def test_after_a_silence_what_was_acknowledged_before_it_is_sent_again(rig: Rig) -> None:
    """Also what was told long before, and acknowledged late; and however late it is sent again."""
    rig.connect()
    rig.tell(6)
    rig.outbox.pump(rig.now)
    for _ in range(6):
        rig.now += 2.0
        rig.acknowledge(min(rig.broker.unacknowledged))
    silence = rig.now
    for _ in range(int(LONGEST_PAUSE_S)):
        rig.now += 1.0
        rig.tell(1)
        rig.outbox.pump(rig.now)
        rig.acknowledge()
    after = rig.outbox.acknowledged_before(silence - RESENT_BEFORE_LOSS_S)
    assert after in (2, 3)
    rig.outbox.send_again(rig.now, silence, after)
    rig.answer_for_a_while()
    rig.outbox.pump(rig.now)
    assert rig.broker.here[-300 - 6 + after :] == list(range(after + 1, 307))


def test_after_a_loss_what_the_broker_may_have_forgotten_is_sent_again(rig: Rig) -> None:
    rig.connect()
    for _ in range(4):
        rig.now += RESENT_BEFORE_LOSS_S / 2
        rig.tell(1)
        rig.outbox.pump(rig.now)
        rig.acknowledge()
    rig.outbox.save_progress(rig.now, at_once=True)
    rig.lose()
    rig.now += 3600.0
    rig.connect()
    rig.answer_for_a_while()
    rig.outbox.pump(rig.now)
    assert rig.broker.here == [2, 3, 4]  # the second was told just so long before the loss
    assert rig.outbox.waiting == 3


def test_a_connection_that_breaks_in_the_middle_of_a_page_is_taken_up_where_it_broke(rig: Rig) -> None:
    rig.connect()
    rig.tell(5)
    rig.broker.takes = 2
    rig.outbox.pump(rig.now)
    assert rig.broker.here == [1, 2]
    assert rig.outbox.due(rig.now) is None
    rig.lose()
    rig.drain()
    assert rig.broker.here == [1, 2, 3, 4, 5]
    assert rig.outbox.waiting == 0


def test_acknowledgements_that_come_after_a_loss_do_not_count(rig: Rig) -> None:
    rig.connect()
    rig.tell(2)
    rig.outbox.pump(rig.now)
    rig.lose()
    rig.connect()
    rig.outbox.acknowledged(1, rig.now, rig.now)
    rig.outbox.acknowledged(2, rig.now, rig.now)
    assert rig.outbox.waiting == 2


def test_a_connection_that_was_replaced_unnoticed_does_not_hide_what_was_never_acknowledged(rig: Rig) -> None:
    """The new connection counts its messages from one again, while those of the old one are still under way."""
    rig.connect()
    rig.tell(3)
    rig.outbox.pump(rig.now)
    rig.now += 10 * RESENT_BEFORE_LOSS_S
    rig.swap()
    rig.tell(1)
    rig.outbox.pump(rig.now)
    rig.outbox.save_progress(rig.now, at_once=True)
    assert rig.journal.published() == 0
    rig.drain()
    assert set(rig.broker.here) == {1, 2, 3, 4}


def test_a_rewind_sends_again_what_comes_after_a_number(rig: Rig) -> None:
    rig.connect()
    rig.tell(4)
    rig.drain()
    rig.outbox.rewind(2)
    assert rig.outbox.waiting == 2
    rig.drain()
    assert rig.broker.here == [1, 2, 3, 4, 3, 4]
    assert rig.outbox.waiting == 0


@pytest.mark.parametrize("after", [4, 5, 2**70])
def test_a_rewind_to_the_future_changes_nothing(rig: Rig, after: int) -> None:
    rig.connect()
    rig.tell(4)
    rig.outbox.pump(rig.now)
    rig.acknowledge()
    rig.outbox.rewind(after)
    rig.tell(1)
    rig.drain()
    assert rig.broker.here == [1, 2, 3, 4, 5]


def test_what_was_pruned_is_passed_over(rig: Rig) -> None:
    rig.connect()
    rig.tell(3)
    rig.drain()
    rig.now += 100
    rig.journal.prune(before=rig.now)
    rig.tell(2)
    rig.outbox.rewind(0)
    rig.drain()
    assert rig.broker.here == [1, 2, 3, 4, 5]
    assert rig.outbox.waiting == 0
    assert rig.journal.published() == 5


def lose_and_return(rig: Rig) -> None:
    rig.lose()
    rig.connect()


@pytest.mark.parametrize("again", [lambda rig: rig.outbox.rewind(0), lose_and_return], ids=["replay", "reconnect"])
def test_a_quiet_service_whose_events_were_all_pruned_has_nothing_to_do(rig: Rig, again: Callable[[Rig], None]) -> None:
    """It must neither say that events wait, nor be woken again and again for them."""
    rig.connect()
    rig.tell(3)
    rig.drain()
    rig.now += 8 * 24 * 3600.0
    rig.journal.prune(before=rig.now - 1)
    again(rig)
    rig.answer_for_a_while()
    rig.outbox.pump(rig.now)
    rig.outbox.save_progress(rig.now, at_once=True)
    assert rig.outbox.due(rig.now) is None
    assert rig.outbox.waiting == 0
    assert rig.journal.published() == 3


def test_pruning_while_events_are_sent_again_leaves_nothing_waiting(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "WINDOW", 2)
    rig.connect()
    rig.tell(6)
    rig.drain()
    rig.outbox.rewind(0)
    rig.outbox.pump(rig.now)  # the first two are under way
    rig.now += 1
    rig.journal.prune(before=rig.now)  # before the rewind was noted
    rig.tell(1)
    rig.acknowledge(min(rig.broker.unacknowledged))
    rig.outbox.pump(rig.now)  # the seventh, while the second is still under way
    rig.drain()
    assert rig.broker.here[-1] == 7
    assert rig.outbox.waiting == 0


# --- any order of things ---

OPERATIONS = ("tell", "pump", "ack", "stray", "break", "lose", "connect", "swap", "rewind", "note", "restart", "pass")
operation = st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 9))


def runs(numbers: list[int]) -> list[list[int]]:
    """Cut into stretches without a step back."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number > found[-1][-1]:
            found[-1].append(number)
        else:
            found.append([number])
    return found


def apply(rig: Rig, what: str, number: int) -> None:  # noqa: PLR0912 - one case for each thing that may happen
    match what:
        case "tell":
            rig.tell(number)
        case "pump":
            rig.outbox.pump(rig.now)
        case "ack":
            under_way = list(rig.broker.unacknowledged)
            if under_way:
                rig.acknowledge(under_way[number % len(under_way)])
        case "stray":
            rig.outbox.acknowledged(1_000_000 + number, rig.now, rig.now)
        case "break":
            rig.broker.takes = number
        case "lose":
            rig.lose()
        case "connect":
            rig.connect()
        case "swap" if rig.broker.up:
            rig.swap()
        case "rewind":
            rig.rewinds += 1
            rig.outbox.rewind(number)
        case "note":
            rig.outbox.save_progress(rig.now, at_once=number % 2 == 0)
        case "restart":
            rig.restart()
        case "drain":
            rig.drain()
        case "prune":
            rig.journal.prune(before=rig.now - number)
        case _:
            rig.now += number / 2


@given(st.lists(operation, max_size=30), st.integers(1, 5))
@settings(max_examples=80, deadline=None)
def test_whatever_happens_everything_is_published_in_order_and_noted_only_when_it_is(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, int]], window: int
) -> None:
    with rigged(tmp_path_factory.mktemp("outbox")) as rig, pytest.MonkeyPatch.context() as patch:
        patch.setattr(outbox_module, "WINDOW", window)
        for what, number in operations:
            apply(rig, what, number)
            assert set(range(1, rig.journal.published() + 1)) <= rig.broker.acknowledged
            if rig.rewinds == 0:
                assert len(rig.broker.unacknowledged) <= window
        lost_at = rig.lost_at
        rig.drain()
        last = len(rig.ats)
        everything = set(range(1, last + 1))
        assert {seq for connection in rig.broker.connections for seq in connection} == everything
        assert rig.broker.acknowledged == everything
        assert (rig.outbox.waiting, rig.journal.published(), rig.outbox.due(rig.now)) == (0, last, None)
        for connection in rig.broker.connections:
            stretches = runs(connection)
            assert len(stretches) <= 1 + rig.rewinds + sum(what == "swap" for what, _ in operations)
            assert all(stretch == list(range(stretch[0], stretch[-1] + 1)) for stretch in stretches)
        if lost_at is not None:
            again = {seq for seq, at in enumerate(rig.ats, start=1) if at >= lost_at - RESENT_BEFORE_LOSS_S}
            assert again <= set(rig.broker.here)


with_pruning = st.tuples(
    st.sampled_from(("tell", "pump", "ack", "lose", "connect", "rewind", "prune", "drain")), st.integers(0, 4)
)


@given(st.lists(with_pruning, max_size=15), st.integers(1, 5))
@settings(max_examples=80, deadline=None)
def test_whatever_is_pruned_in_between_nothing_waits_for_ever(
    tmp_path_factory: pytest.TempPathFactory, operations: list[tuple[str, int]], window: int
) -> None:
    with rigged(tmp_path_factory.mktemp("outbox")) as rig, pytest.MonkeyPatch.context() as patch:
        patch.setattr(outbox_module, "WINDOW", window)
        for what, number in (("tell", 5), ("drain", 0), ("pass", 9), *operations):
            apply(rig, what, number)
            assert set(range(1, rig.journal.published() + 1)) <= rig.broker.acknowledged
        rig.drain()
        last = len(rig.ats)
        assert rig.broker.acknowledged == set(range(1, last + 1))
        assert (rig.outbox.waiting, rig.journal.published(), rig.outbox.due(rig.now)) == (0, last, None)
