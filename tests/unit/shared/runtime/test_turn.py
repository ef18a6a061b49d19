"""Turns: what is said is durable before it leaves, a turn that fails leaves no trace, and the loop survives it."""

import io
import json
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest

from shared.contract.commands import Spawn
from shared.contract.envelope import Data
from shared.contract.events.lifecycle import AgentGaveUp
from shared.contract.services import ServiceEntry
from shared.contract.states import AgentState, Desired, Status
from shared.contract.topics import AGENT_STATE, COMMAND, SERVICE_STATE, Space
from shared.errors import Retryable
from shared.messaging.inbox import (
    Connected,
    Disconnected,
    Item,
    LookRequest,
    MessageAcknowledged,
    MessageArrived,
    QuitSignal,
)
from shared.messaging.intake import request_of
from shared.messaging.journal import Journal, JournalLost, JournalUnavailable, Request
from shared.messaging.silence import PROBED_EVERY_S
from shared.runtime.loop import ServiceLoop
from shared.runtime.memory import Memory, MemoryTable
from shared.runtime.poll_timer import PollIntervals
from shared.runtime.turn import PendingCommand, Turn
from shared.system.log import Log
from tests.fakes.bus import FakeBus, FakeInbox
from tests.fakes.clock import FakeClock

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SPACE = Space("box")
KEPT, COUNT, STAGE = MemoryTable("kept", int), MemoryTable("key", int), MemoryTable("stage", str)


# --- a turn by itself ---


def turn(**memory: Any) -> Turn:
    return Turn("spawner", NOW, poll=False, events=[], commands=[], memory=Memory(memory))


def pending(id_: str = "c1") -> PendingCommand:
    return PendingCommand(Request(id_, "spawn", b"{}", f"reply/{id_}", 1.0, 2.0), Spawn(agent="builder"))


def test_the_soonest_wish_for_another_turn_counts() -> None:
    taken = turn()
    for seconds in (5, 3, 9):
        taken.look_again_at(NOW + timedelta(seconds=seconds))
    assert taken.look_again == NOW + timedelta(seconds=3)


@pytest.mark.parametrize(("code", "ok"), [("ok", True), ("refused", False), ("expired", False)])
def test_an_answer_is_ok_or_says_why_not(code: str, ok: bool) -> None:
    taken = turn()
    taken.reply(pending(), "well", code=code, agent="builder")
    request, reply = taken.replies["c1"]
    assert (reply.id, reply.verb, reply.ok, reply.code, reply.by) == ("c1", "spawn", ok, code, "spawner")
    assert (reply.said, reply.result, reply.time, request.reply_to) == ("well", {"agent": "builder"}, NOW, "reply/c1")


# --- turns in the loop ---


ENTRY = ServiceEntry("spawner", "does what a test says", writes=(AGENT_STATE.pattern,))


class FakeService:
    """Does in each turn what the test says."""

    name: ClassVar[str] = "spawner"

    def __init__(self) -> None:
        self.turns: list[Turn] = []
        self.does: list[Callable[[Turn], None]] = []
        self.shows: list[Callable[[], Iterable[Data]]] = []

    def step(self, turn: Turn) -> None:
        self.turns.append(turn)
        if self.does:
            self.does.pop(0)(turn)

    def states(self) -> Iterable[Data]:
        return self.shows.pop(0)() if self.shows else [STATE]


STATE = AgentState(
    agent="builder",
    status=Status.RUNNING,
    since=NOW,
    reason="",
    desired=Desired.RUNNING,
    backend="demo",
    workspace="/",
)
STATE_TOPIC = "muster/box/agent/builder/state"


class Rig:
    def __init__(self, path: Path, clock: FakeClock) -> None:
        self.path, self.clock = path, clock
        self.service, self.bus, self.inbox = FakeService(), FakeBus(), FakeInbox()
        self.log = io.StringIO()
        self.start()

    def start(self) -> None:
        self.journal = Journal(self.path, "spawner")
        polls = PollIntervals(connected_s=1_000.0, alone_s=500.0)
        self.loop = ServiceLoop(
            self.service, ENTRY, self.journal, self.bus, self.inbox, SPACE, polls, Log("spawner", self.log)
        )

    def run(self, *items: Item) -> None:
        for item in items:
            self.inbox.put(item)
        self.loop.once()

    def recover(self) -> None:
        """Let the time pass that the loop waits after a failure."""
        self.clock.ahead += 60.0

    def topics(self) -> list[str]:
        return [topic for topic, _ in self.bus.published]

    def codes(self) -> dict[str, str]:
        return {
            topic.rpartition("/")[2]: json.loads(payload)["code"]
            for topic, payload in self.bus.published
            if "/reply/" in topic
        }


@pytest.fixture
def rig(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    clock = FakeClock()
    monkeypatch.setattr(time, "monotonic", clock.monotonic)
    made = Rig(tmp_path / "journal.db", clock)
    yield made
    made.journal.close()


def command(id_: str = "c1", verb: str = "spawn") -> MessageArrived:
    payload = json.dumps({"agent": "builder", "id": id_}).encode()
    return MessageArrived(
        f"muster/box/command/{verb}", payload, retained=False, repeated=False, mid=9, qos=1, connection=1
    )


def fails(*_: object) -> None:
    raise Retryable("no luck")


def breaks(*_: object) -> None:
    raise ZeroDivisionError("a bug")


def states_fail() -> Iterable[Data]:
    raise Retryable("no states")


def tells(turn: Turn) -> None:
    turn.emit(AgentGaveUp(agent="builder", reason="x"), cause="c1")
    turn.memory.put(COUNT, len(turn.commands))
    for each in turn.commands:
        turn.reply(each, "done")
    turn.publish_state(STATE)


def connect(rig: Rig, *more: Item, number: int = 1, kept: bool = False) -> None:
    rig.bus.up = True
    rig.run(Connected(number, kept), *more)


def test_a_command_is_carried_out_answered_and_acknowledged(rig: Rig) -> None:
    connect(rig)
    rig.service.does = [tells]
    rig.run(command())
    assert rig.codes() == {"c1": "ok"}
    assert rig.bus.acknowledged == [command()]
    assert rig.journal.last_seq() == 1
    assert "muster/box/agent/builder/lifecycle" in rig.topics()
    rig.run(LookRequest("again"))
    assert rig.service.turns[-1].commands == []


@pytest.mark.parametrize("trouble", [fails, breaks])
def test_a_turn_that_fails_leaves_no_trace_and_comes_again(rig: Rig, trouble: Callable[[Turn], None]) -> None:
    connect(rig)
    before = len(rig.bus.published)

    def half(turn: Turn) -> None:
        tells(turn)
        trouble(turn)

    rig.service.does = [half, tells]
    rig.run(command())
    assert rig.journal.last_seq() == 0
    assert rig.journal.memory().keys() == {"clock"}
    assert [topic for topic in rig.topics()[before:] if "/service/" not in topic] == []
    assert [each.id for each in rig.journal.requests.open()] == ["c1"]
    rig.recover()
    rig.run()
    assert rig.codes() == {"c1": "ok"}
    assert (rig.journal.last_seq(), rig.journal.memory()["key"]) == (1, 1)


def test_a_failing_service_is_given_time(rig: Rig) -> None:
    """Longer each time, though it is nudged, up to a bound."""
    rig.service.does = [fails] * 30
    tries = []
    for _ in range(600):
        rig.run(LookRequest("x"))
        tries.append(len(rig.service.turns))
        rig.clock.ahead += 0.1
    within_ten_s, within_a_minute = tries[100], tries[-1]
    assert 2 <= within_ten_s <= 10
    assert within_ten_s < within_a_minute <= 20


def test_the_turn_after_a_failed_one_is_a_poll(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The hints of the failed one are lost: only a poll finds what they told."""
    connect(rig)
    with monkeypatch.context() as patch:
        patch.setattr(rig.journal.requests, "open", disk_is_full)  # before the service has seen any of it
        rig.run(LookRequest("x"))
    rig.recover()
    rig.run()
    rig.run(LookRequest("x"))
    assert [turn.poll for turn in rig.service.turns[-2:]] == [True, False]


def test_a_command_that_comes_while_it_is_given_time_is_carried_out_afterwards(rig: Rig) -> None:
    connect(rig)
    rig.service.does = [fails, tells]
    rig.run(LookRequest("x"))
    turns = len(rig.service.turns)
    rig.run(command())
    assert len(rig.service.turns) == turns
    rig.recover()
    rig.run()
    assert rig.codes() == {"c1": "ok"}
    assert rig.bus.acknowledged == [command()]


def test_a_command_is_in_the_journal_before_it_is_acknowledged(rig: Rig) -> None:
    connect(rig)
    in_journal: list[bool] = []
    acknowledge = rig.bus.acknowledge

    def note_and_acknowledge(messages: Sequence[MessageArrived]) -> None:
        in_journal.extend(rig.journal.requests.waiting() for _ in messages)
        acknowledge(messages)

    rig.bus.acknowledge = note_and_acknowledge  # type: ignore[method-assign]
    rig.service.does = [lambda _: None]
    rig.run(command())
    assert in_journal == [True]


def test_a_state_is_published_after_its_turn_failed_to_commit(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A service says what is new to it; a turn that failed must not be the only one in which it said so."""
    connect(rig)
    rig.bus.published.clear()
    rig.service.does = [tells]
    with monkeypatch.context() as patch:
        patch.setattr(rig.journal, "transaction", disk_is_full)
        rig.run(LookRequest("x"))
    rig.recover()
    rig.run()
    assert STATE_TOPIC in rig.topics()


def test_a_command_is_carried_out_by_the_next_process_when_this_one_dies(rig: Rig) -> None:
    rig.service.does = [fails]
    rig.run(command())
    rig.journal.close()
    rig.start()
    rig.service.does = [tells]
    rig.run()
    assert rig.journal.requests.answer_to("c1") is not None


def test_a_command_that_waited_too_long_is_answered_and_not_carried_out(rig: Rig) -> None:
    connect(rig)
    rig.journal.requests.accept([Request("c1", "spawn", b'{"agent": "a"}', "muster/box/reply/c1", 1.0, 2.0, "a")])
    rig.run(LookRequest("x"))
    assert rig.codes() == {"c1": "expired"}
    assert rig.service.turns[-1].commands == []


@pytest.mark.parametrize(("verb", "payload"), [("spawn", b"{"), ("unheard_of", b"{}")])
def test_a_command_in_the_journal_that_can_not_be_read_is_answered(rig: Rig, verb: str, payload: bytes) -> None:
    connect(rig)
    rig.journal.requests.accept([Request("c1", verb, payload, "muster/box/reply/c1", 1.0, 2e9, None)])
    rig.run(LookRequest("x"))
    assert rig.codes() == {"c1": "malformed"}


def test_a_replay_sends_the_events_again(rig: Rig) -> None:
    connect(rig)
    rig.service.does = [tells, tells]
    rig.run(LookRequest("x"))
    rig.run(LookRequest("x"))
    rig.run(*(MessageAcknowledged(mid, 1) for mid in range(1, len(rig.bus.published) + 1)))
    payload = json.dumps({"service": "spawner", "after": 1, "id": "r1"}).encode()
    rig.run(MessageArrived("muster/box/command/replay", payload, False, False, 9, 1, 1))
    assert rig.codes() == {"r1": "ok"}
    events = [json.loads(payload)["seq"] for topic, payload in rig.bus.published if topic.endswith("/lifecycle")]
    assert events == [1, 2, 2]


def test_a_replay_of_another_epoch_is_refused(rig: Rig) -> None:
    connect(rig)
    payload = json.dumps({"service": "spawner", "after": 0, "epoch": "other", "id": "r1"}).encode()
    rig.run(MessageArrived("muster/box/command/replay", payload, False, False, 9, 1, 1))
    assert rig.codes() == {"r1": "refused"}


def test_every_state_is_published_on_a_new_connection(rig: Rig) -> None:
    connect(rig)
    assert set(rig.bus.retained) == {STATE_TOPIC, "muster/box/service/spawner/state"}


def test_a_failed_start_of_a_connection_is_repeated(rig: Rig) -> None:
    rig.service.shows = [states_fail]
    connect(rig)
    assert STATE_TOPIC not in rig.topics()
    rig.recover()
    rig.run()
    assert STATE_TOPIC in rig.topics()


def test_messages_during_a_failed_start_of_a_connection_are_not_lost(rig: Rig) -> None:
    """The broker brings a message once a connection: nobody else would remember it."""
    rig.service.shows = [states_fail]
    connect(rig, command())
    rig.recover()
    rig.service.does = [tells]
    rig.run()
    assert rig.journal.requests.answer_to("c1") is not None


def test_a_repeated_start_of_a_connection_knows_how_long_the_service_was_away(rig: Rig) -> None:
    rig.journal.note_listened(time.time() - 1_000.0)
    rig.service.shows = [states_fail]
    connect(rig, kept=True)
    rig.recover()
    rig.service.does = [tells, tells]
    rig.run(command())
    assert rig.codes() == {"c1": "expired"}


def test_a_service_that_ends_notes_how_long_it_was_at_the_broker(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes while it is away counts as sent later than what it has answered."""
    monkeypatch.setattr("signal.signal", lambda *_: None)
    connect(rig)
    rig.service.does = [tells]
    rig.run(command())
    rig.journal.note_listened(1.0)
    answered = time.time()
    rig.inbox.put(QuitSignal(15))
    rig.loop.run()
    with closing(Journal(rig.path, "spawner")) as journal:
        assert journal.listened() >= answered


def acknowledged(number: int) -> MessageAcknowledged:
    return MessageAcknowledged(number, 1, at=time.monotonic())


def answer_for_a_while(rig: Rig) -> None:
    """The broker acknowledges at once, until subscribers have had time to return."""
    for _ in range(5):
        rig.clock.ahead += PROBED_EVERY_S
        rig.run(acknowledged(len(rig.bus.published)))


def test_what_the_broker_acknowledged_during_a_long_turn_counts_before_it_is_judged(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(rig)
    order: list[str] = []

    def long_turn(_: Turn) -> None:
        order.append("turn")
        rig.inbox.put(MessageAcknowledged(1, 1))

    def noted(_: MessageAcknowledged) -> bool:
        order.append("acknowledgement")
        return True

    monkeypatch.setattr(rig.bus, "note_acknowledged", noted)
    monkeypatch.setattr(rig.bus, "leave_if_silent", lambda: order.append("judgement"))
    rig.service.does = [long_turn]
    rig.run(LookRequest("x"))
    rig.run()
    assert order[order.index("turn") :] == ["turn", "acknowledgement", "judgement"]


def test_replies_that_a_broker_may_have_lost_are_published_again(rig: Rig) -> None:
    connect(rig)
    rig.service.does = [tells]
    rig.run(command())
    rig.bus.up = False
    rig.run(Disconnected(1, "killed"))
    rig.bus.published.clear()
    connect(rig, number=2)
    assert rig.codes() == {}, "subscribers have not returned"
    answer_for_a_while(rig)
    assert rig.codes() == {"c1": "ok"}


def test_replies_outlive_a_connection_that_is_lost_at_once(rig: Rig) -> None:
    connect(rig)
    rig.service.does = [tells]
    rig.run(command())
    rig.run(Disconnected(1, "killed"))
    connect(rig, number=2)
    rig.clock.ahead += 60.0
    rig.bus.up = False
    rig.run(Disconnected(2, "killed again"))
    rig.bus.published.clear()
    connect(rig, number=3)
    answer_for_a_while(rig)
    assert rig.codes() == {"c1": "ok"}


def test_a_loss_that_is_taken_late_counts_from_when_it_was(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn may take longer than what is sent again from."""
    wall = time.time
    monkeypatch.setattr(time, "time", lambda: wall() + rig.clock.ahead)
    connect(rig)
    rig.service.does = [tells]
    rig.run(command())
    rig.run(*map(acknowledged, range(1, len(rig.bus.published) + 1)))
    lost_at = time.monotonic()
    rig.clock.ahead += 100.0
    rig.bus.published.clear()
    connect(rig, Disconnected(1, "killed", at=lost_at))
    connect(rig, number=2)
    answer_for_a_while(rig)
    assert set(rig.topics()) >= SAID_AGAIN


SAID_AGAIN = {"muster/box/agent/builder/lifecycle", "muster/box/reply/c1", STATE_TOPIC}


def silence(rig: Rig) -> None:
    """An event, a reply and a state are acknowledged; then a silence of the broker ends."""
    connect(rig)
    rig.service.does = [tells]
    rig.run(command())
    rig.run(*map(acknowledged, range(1, len(rig.bus.published) + 1)))
    rig.bus.published.clear()
    rig.bus.silent_since = time.monotonic()


def test_after_a_silence_all_is_published_again(rig: Rig) -> None:
    silence(rig)
    rig.run()
    assert SAID_AGAIN & set(rig.topics()) == {STATE_TOPIC}, "events and replies wait for subscribers"
    answer_for_a_while(rig)
    assert set(rig.topics()) >= SAID_AGAIN
    rig.bus.published.clear()
    answer_for_a_while(rig)
    assert SAID_AGAIN & set(rig.topics()) == set(), "once"


def test_what_follows_a_silence_is_tried_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    silence(rig)
    with monkeypatch.context() as patch:
        patch.setattr(rig.journal, "seq_before", disk_is_full)
        rig.run()
    rig.recover()
    rig.run()
    answer_for_a_while(rig)
    assert set(rig.topics()) >= SAID_AGAIN


def test_a_journal_that_was_removed_ends_the_service(rig: Rig) -> None:
    rig.path.unlink()
    with pytest.raises(JournalLost, match="was removed or replaced"):
        rig.run(LookRequest("x"))


def disk_is_full(*_: object, **__: object) -> None:
    raise JournalUnavailable(Path("journal.db"), OSError("database or disk is full"))


def spins(rig: Rig) -> bool:
    """Whether the loop goes round and round without a pause."""
    rig.inbox.waits.clear()
    for _ in range(10):
        rig.loop.once()
    return sum(wait > 0.1 for wait in rig.inbox.waits) < 5


def test_a_loop_with_nothing_to_do_waits(rig: Rig) -> None:
    connect(rig)
    rig.run()
    assert not spins(rig)


def test_a_full_disk_while_noting_what_was_published_does_not_make_the_loop_spin(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    connect(rig)
    rig.service.does = [tells]
    rig.run(LookRequest("x"))
    (mid,) = [n for n, topic in enumerate(rig.topics(), start=1) if topic.endswith("/lifecycle")]
    monkeypatch.setattr(rig.journal, "note_published", disk_is_full)
    rig.run(MessageAcknowledged(mid, 1))
    assert not spins(rig)


@pytest.mark.parametrize("what", ["note_listened", "listened"])
def test_a_full_disk_at_the_start_of_a_connection_does_not_make_the_loop_spin(
    rig: Rig, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    monkeypatch.setattr(rig.journal, what, disk_is_full)
    connect(rig)
    assert not spins(rig)


def test_a_full_disk_in_every_step_does_not_make_the_loop_spin(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    connect(rig)
    monkeypatch.setattr(rig.journal, "transaction", disk_is_full)
    rig.service.does = [tells] * 20
    rig.run(command())
    assert not spins(rig)


# --- one subject's fault, and commits in between ---


def test_a_fault_about_one_subject_takes_back_what_was_said_about_it() -> None:
    taken = turn()
    taken.emit(AgentGaveUp(agent="a", reason="before"))
    taken.memory.put(KEPT, 1)
    with taken.isolated("b"):
        taken.emit(AgentGaveUp(agent="b", reason="odd"))
        taken.memory.put(KEPT, 2)
        taken.reply(pending(), "done")
        raise ValueError("odd")
    assert [event.agent for event, _ in taken.emitted if isinstance(event, AgentGaveUp)] == ["a"]
    assert taken.memory.find(KEPT) == 1
    assert taken.replies == {}
    assert taken.trouble == "b: ValueError: odd"


def test_what_may_pass_by_itself_ends_the_turn() -> None:
    taken = turn()
    with pytest.raises(Retryable), taken.isolated("b"):
        raise Retryable("tmux is away")


def test_a_command_that_fails_is_answered() -> None:
    taken = turn()
    with taken.answering(pending()):
        raise ValueError("odd")
    assert (taken.replies["c1"][1].said, taken.replies["c1"][1].code) == ("ValueError: odd", "refused")


def test_a_checkpoint_is_durable_whatever_comes_after(rig: Rig) -> None:
    def step(taken: Turn) -> None:
        taken.emit(AgentGaveUp(agent="a", reason="first"))
        taken.memory.put(STAGE, "begun")
        taken.checkpoint()
        taken.emit(AgentGaveUp(agent="a", reason="second"))
        taken.memory.put(STAGE, "done")
        with taken.isolated("a"):
            taken.memory.put(STAGE, "odd")
            raise ValueError("odd")
        raise Retryable("not now")

    rig.service.does = [step]
    rig.run(LookRequest("now"))
    assert rig.journal.memory()["stage"] == "begun"
    assert [b"first" in each.payload for each in rig.journal.entries("spawner", 0)] == [True]


def test_the_journal_decides_what_an_id_means(rig: Rig) -> None:
    """A sender that uses one id for two commands: the first one counts, though the second was read last."""
    rig.bus.up = True
    rig.run(Connected(1, kept=False))
    first = Spawn(agent="first", id="c9")
    rig.journal.requests.accept([request_of(SPACE, first, time.time())])
    payload = Spawn(agent="second", id="c9").model_dump_json(exclude_none=True).encode()
    rig.run(MessageArrived(COMMAND.name(SPACE, verb="spawn"), payload, False, False, 1, 1, 1))
    assert [each.command for each in rig.service.turns[-1].commands] == [first]


# --- hints ---


def test_hints_reach_one_turn_and_tell_whether_a_broker_answers(rig: Rig) -> None:
    """A service that takes hints gets them as they came, beside its events, in the turn for which they came."""
    topic = "muster/box/service/monitor/state"
    came = MessageArrived(topic, b"any bytes", retained=True, repeated=False, mid=9, qos=1, connection=1)
    rig.run(LookRequest("alone"))
    assert not rig.service.turns[-1].broker_answers
    connect(rig, came)
    turn = rig.service.turns[-1]
    assert turn.broker_answers
    assert [(hint.row, hint.topic, hint.payload) for hint in turn.hints] == [(SERVICE_STATE, topic, b"any bytes")]
    rig.run(LookRequest("again"))
    assert list(rig.service.turns[-1].hints) == []
