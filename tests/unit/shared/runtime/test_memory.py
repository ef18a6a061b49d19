"""Typed records in memory: decoded once, written when they change, and gone back to when a turn fails."""

from dataclasses import dataclass, field, replace
from typing import Any

from shared.contract.states import Desired
from shared.runtime.memory import Memory, MemoryTable


@dataclass(frozen=True)
class Kept:
    wish: Desired | None = None
    deaths: tuple[float, ...] = ()
    order: dict[str, str] = field(default_factory=dict)


AGENTS = MemoryTable("agent:", Kept)
SEED = MemoryTable("seed", str)
FULL = Kept(Desired.RUNNING, (1.0, 2.5), {"model": "opus"})


def test_a_record_comes_back_as_it_was() -> None:
    memory = Memory({})
    memory.put(AGENTS, FULL, "builder")
    memory.put(SEED, "s-1")
    stored = dict(memory.changes)
    assert stored == {
        "agent:builder": {"wish": "running", "deaths": [1.0, 2.5], "order": {"model": "opus"}},
        "seed": "s-1",
    }
    again = Memory(stored)
    assert again.find(AGENTS, "builder") == FULL
    assert again.find(SEED) == "s-1"
    assert again.find(AGENTS, "nobody") is None
    assert again.all(AGENTS) == {"builder": FULL}


def test_a_record_is_the_same_object_for_as_long_as_it_says_the_same() -> None:
    memory = Memory({"agent:builder": AGENTS.dump(FULL)})
    first = memory.find(AGENTS, "builder")
    memory.put(AGENTS, replace(FULL), "builder")
    assert memory.find(AGENTS, "builder") is first
    assert memory.changes == {}
    memory.put(AGENTS, Kept(), "builder")
    memory.committed()
    assert memory.find(AGENTS, "builder") == Kept()
    assert memory.changes == {}


def test_what_is_forgotten_is_gone() -> None:
    memory = Memory({"agent:a": {}, "agent:b": {}})
    memory.put(AGENTS, None, "a")
    assert memory.find(AGENTS, "a") is None
    assert list(memory.all(AGENTS)) == ["b"]
    assert memory.changes == {"agent:a": None}
    memory.committed()
    assert list(memory.all(AGENTS)) == ["b"]


def test_a_record_that_cannot_be_read_counts_as_absent_and_is_reported() -> None:
    reported: list[tuple[str, str]] = []
    memory = Memory({"agent:a": {"wish": "flying"}, "agent:b": {}}, lambda key, why: reported.append((key, why)))
    assert memory.all(AGENTS) == {"b": Kept()}
    assert [key for key, _ in reported] == ["agent:a"]


def test_changes_are_taken_back() -> None:
    memory = Memory({"agent:a": AGENTS.dump(FULL)})
    memory.put(SEED, "s-1")
    before: dict[str, Any] = dict(memory.changes)
    memory.put(AGENTS, Kept(), "a")
    memory.put(SEED, None)
    memory.restore(before)
    assert memory.find(AGENTS, "a") == FULL
    assert memory.find(SEED) == "s-1"
    memory.restore({})
    assert memory.find(SEED) is None
