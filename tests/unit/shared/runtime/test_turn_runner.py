"""The clock is set while a service runs, or while it is down: what it remembers, and what people are told."""

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from shared.errors import Retryable
from shared.messaging.inbox import LookRequest
from shared.runtime import turn_runner
from shared.runtime.memory import MemoryTable
from shared.runtime.moments import Moment
from shared.runtime.turn import Turn
from shared.system.clock import ClockReading, read_clock
from tests.fakes.clock import FakeClock
from tests.unit.shared.runtime.test_turn import Rig, command, connect, tells

HOUR = 3600.0


@dataclass(frozen=True)
class Death:
    at: Moment


DEATHS = MemoryTable("tests-death:", Death)


class SetClock:
    """The real clock, and what was done to it."""

    def __init__(self) -> None:
        self.ahead, self.boot = 0.0, "b1"

    def read(self) -> ClockReading:
        real = read_clock()
        return replace(real, boot=self.boot, wall=real.wall + self.ahead)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SetClock:
    clock = SetClock()
    monkeypatch.setattr(turn_runner, "read_clock", clock.read)
    return clock


@pytest.fixture
def rig(clock: SetClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    assert clock.ahead == 0.0
    fake = FakeClock()
    monkeypatch.setattr(time, "monotonic", fake.monotonic)
    made = Rig(tmp_path / "journal.db", fake)
    yield made
    made.journal.close()


def dies(turn: Turn) -> None:
    turn.memory.put(DEATHS, Death(turn.now.timestamp()), "builder")


def says_so(turn: Turn) -> None:
    assert turn.jumped_s
    turn.notice("the clock was set")


def ago_s(rig: Rig) -> float:
    turn = rig.service.turns[-1]
    death = turn.memory.find(DEATHS, "builder")
    assert death is not None
    return turn.now.timestamp() - death.at


def reason(rig: Rig) -> str:
    states = [json.loads(payload)["data"] for topic, payload in rig.bus.published if "/service/" in topic]
    return str(states[-1]["reason"])


def again(rig: Rig) -> None:
    """The service is killed and started again."""
    rig.journal.close()
    rig.start()
    rig.run()


@pytest.mark.parametrize("by", [-2 * HOUR, 30 * HOUR])
@pytest.mark.parametrize("is_down", [False, True])
def test_what_a_service_remembers_is_as_long_ago_as_it_was(rig: Rig, clock: SetClock, by: float, is_down: bool) -> None:
    connect(rig)
    rig.service.does = [dies]
    rig.run(LookRequest("x"))
    clock.ahead += by
    again(rig) if is_down else rig.run()
    assert rig.service.turns[-1].jumped_s == by
    assert ago_s(rig) == pytest.approx(0.0, abs=5.0)
    rig.run(LookRequest("x"))
    assert rig.service.turns[-1].jumped_s == 0.0
    again(rig)
    assert (rig.service.turns[-1].jumped_s, round(ago_s(rig) / 10)) == (0.0, 0)


def test_a_service_that_can_not_finish_its_turn_hears_of_the_jump_in_the_next(rig: Rig, clock: SetClock) -> None:
    def breaks(turn: Turn) -> None:
        assert turn.jumped_s
        raise Retryable("no luck")

    connect(rig)
    rig.service.does = [dies, breaks]
    rig.run(LookRequest("x"))
    clock.ahead -= HOUR
    rig.run()
    rig.recover()
    rig.run()
    assert rig.service.turns[-1].jumped_s == -HOUR
    assert ago_s(rig) == pytest.approx(0.0, abs=5.0), "it moved once"


def test_people_are_told_for_a_minute(rig: Rig, clock: SetClock) -> None:
    connect(rig)
    clock.ahead += HOUR
    rig.service.does = [says_so]
    rig.run()
    assert reason(rig) == "the clock was set"
    rig.run(LookRequest("x"))
    assert reason(rig) == "the clock was set"
    rig.clock.ahead += turn_runner.NOTICE_SHOWN_FOR_S
    rig.run()
    assert reason(rig) == ""


@pytest.mark.parametrize("by", [-2 * HOUR, 2 * HOUR])
def test_a_command_expires_after_the_time_that_it_had(rig: Rig, clock: SetClock, by: float) -> None:
    connect(rig)
    rig.run(command())
    (before,) = rig.journal.requests.open()
    clock.ahead += by
    rig.run()
    (after,) = rig.journal.requests.open()
    assert (after.asked, after.expires) == (before.asked + by, before.expires + by)
    assert [each.request.id for each in rig.service.turns[-1].commands] == ["c1"]


def test_the_times_in_the_journal_move_and_those_of_others_stay(rig: Rig, clock: SetClock) -> None:
    connect(rig)
    rig.service.does = [tells]
    rig.run(command())
    with closing(sqlite3.connect(rig.path)) as journal:
        journal.execute("INSERT INTO source (name, listened) VALUES ('monitor', 5)")
        journal.commit()
    query = "SELECT (SELECT at FROM event), (SELECT answered FROM request), (SELECT sum(listened) FROM source)"

    def times() -> tuple[float, ...]:
        with closing(sqlite3.connect(rig.path)) as journal:
            found: tuple[float, ...] = journal.execute(query).fetchone()
            return found

    before = times()
    clock.ahead -= 2 * HOUR
    rig.run()
    assert [after - then for after, then in zip(times(), before, strict=True)] == pytest.approx([-2 * HOUR] * 3, abs=5)


def test_after_a_restart_of_the_machine_nothing_is_later_than_now(rig: Rig, clock: SetClock) -> None:
    rig.service.does = [dies]
    rig.run()
    clock.ahead, clock.boot = -5 * HOUR, "b2"
    again(rig)
    assert ago_s(rig) == pytest.approx(0.0, abs=0.1)
    clock.ahead, clock.boot = 5 * HOUR, "b3"
    again(rig)
    assert rig.service.turns[-1].jumped_s == 0.0, "the time may have passed while it was off"
