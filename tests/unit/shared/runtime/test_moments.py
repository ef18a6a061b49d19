"""What a service remembers moves with the clock: moments of the past, and nothing else."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import Field

from shared.runtime.memory import Memory, MemoryTable
from shared.runtime.moments import Moment, Move, moved, mover


@dataclass(frozen=True)
class Pause:
    since: Moment
    until: float
    """By the clock on the wall."""
    name: Literal["pause"] = "pause"


@dataclass(frozen=True)
class Work:
    name: Literal["work"] = "work"


@dataclass(frozen=True)
class Wait:
    due: float
    is_promise: bool = False

    def with_moments(self, move: Move) -> "Wait":
        return self if self.is_promise else Wait(move(self.due))


@dataclass(frozen=True)
class Life:
    born: Moment = 0.0
    weight: float = 0.0
    deaths: tuple[Moment, ...] = ()
    seen: Moment | None = None
    phase: Annotated[Pause | Work, Field(discriminator="name")] = field(default_factory=Work)
    waits: Mapping[str, Wait] = field(default_factory=dict)


LIVES = MemoryTable("tests-life:", Life)
STAMPS = MemoryTable("tests-stamp:", float, is_moment=True)
FIGURES = MemoryTable("tests-figure:", float)

LIFE = Life(100.0, 70.0, (110.0, 120.0), 130.0, Pause(140.0, 150.0), {"a": Wait(160.0), "b": Wait(170.0, True)})
LATER = Life(107.0, 70.0, (117.0, 127.0), 137.0, Pause(147.0, 150.0), {"a": Wait(167.0), "b": Wait(170.0, True)})


def test_every_moment_moves_wherever_it_is_and_promises_stay() -> None:
    assert moved(Life, LIFE, mover(7)) == LATER


def test_what_never_was_stays_so() -> None:
    assert moved(Life, Life(), mover(7)) == Life()


def test_all_records_of_a_service_move_and_are_written() -> None:
    memory = Memory({"tests-life:x": LIVES.dump(LIFE), "tests-stamp:x": 5.0, "tests-figure:x": 5.0, "unknown": 1})
    assert memory.find(LIVES, "x") == LIFE
    memory.move(mover(7))
    assert (memory.find(LIVES, "x"), memory.find(STAMPS, "x"), memory.find(FIGURES, "x")) == (LATER, 12.0, 5.0)
    assert memory.changes.keys() == {"tests-life:x", "tests-stamp:x"}
    assert Memory({**memory.changes}).find(LIVES, "x") == LATER


def test_a_record_that_can_not_be_read_stops_nothing() -> None:
    memory = Memory({"tests-life:x": {"born": "never"}, "tests-stamp:x": 5.0})
    memory.move(mover(7))
    assert memory.changes == {"tests-stamp:x": 12.0}


def test_the_newest_moment_is_known() -> None:
    memory = Memory({"tests-life:x": LIVES.dump(LIFE), "tests-figure:x": 999.0})
    assert memory.newest_moment() == 160.0
    assert memory.changes == {}
