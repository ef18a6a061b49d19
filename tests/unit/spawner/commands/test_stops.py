"""Ending all sessions: a few in each turn, over deaths of the spawner, and not for longer than its `down` lives."""

import os
from collections.abc import Callable

import pytest

from services.spawner.commands.stops import ENDED_IN_A_TURN
from shared.client.processes import down_lock
from shared.contract.commands import Spawn, SpawnAll, StopAll
from shared.contract.events.lifecycle import AgentStopped
from shared.contract.states import Desired
from shared.system.lock import hold
from tests.unit.spawner.conftest import MakeWorld
from tests.unit.spawner.world import SpawnerWorld

MANY: dict[str, dict[str, object]] = {f"agent-{number:03}": {} for number in range(2 * ENDED_IN_A_TURN + 4)}
ALL = len(MANY) + 1


def many_run(make: MakeWorld) -> SpawnerWorld:
    world = make(agents=MANY, start={"at_once": 10_000, "gap_s": 0})
    turns_until(world, lambda: len(world.tmux.panes) == ALL)
    return world


def turns_until(world: SpawnerWorld, done: Callable[[], bool]) -> None:
    for _ in range(ALL):
        if done():
            return
        world.turn()
    raise AssertionError("it never came to that")


def stopped(world: SpawnerWorld) -> list[str]:
    return sorted(event.agent for event in world.events if isinstance(event, AgentStopped))


def test_many_are_ended_over_several_turns_each_told_once(make: MakeWorld) -> None:
    world = many_run(make)
    world.turn(StopAll(id="c1"))
    assert len(world.tmux.panes) == ALL - ENDED_IN_A_TURN
    assert world.said["c1"] == f"ended {ENDED_IN_A_TURN} of {ALL} agents"
    world.turn()
    assert "c1" not in world.replies
    world.turn()
    assert world.replies["c1"].said == f"{ALL} agents were stopped"
    assert world.tmux.panes == {}
    world.turn()
    assert stopped(world) == ["agent-000", *sorted(MANY)[1:], "builder"]


def test_it_goes_on_after_a_death_of_the_spawner(make: MakeWorld) -> None:
    world = many_run(make)
    world.turn(StopAll(id="c1", for_now=True))
    world.turn(commits=False)  # it dies after it ended some, and before that is in the journal
    world.restarts()
    turns_until(world, lambda: "c1" in world.replies)
    assert world.tmux.panes == {}
    assert stopped(world) == sorted([*MANY, "builder"])


def test_it_is_finished_though_it_expired_meanwhile(make: MakeWorld) -> None:
    world = many_run(make)
    world.turn(StopAll(id="c1"))
    world.restarts()
    world.turn(after=3600.0)
    turns_until(world, lambda: "c1" in world.replies)
    assert world.replies["c1"].ok
    assert world.tmux.panes == {}


def test_who_is_asked_for_while_all_are_ended_runs_afterwards(make: MakeWorld) -> None:
    world = many_run(make)
    world.turn(StopAll(id="c1"))
    world.turn(Spawn(agent="agent-000", id="c2"), SpawnAll(id="c3"))
    assert not world.replies
    turns_until(world, lambda: "c3" in world.replies)
    assert world.known("agent-001").wish is Desired.RUNNING
    turns_until(world, lambda: len(world.tmux.panes) == ALL)


def test_nothing_starts_until_its_down_has_ended_and_then_everything_does(make: MakeWorld) -> None:
    world = make()
    world.turn()
    with hold(down_lock(world.written.file.fleet)):
        assert world.reply(StopAll(id="c1", for_now=True, down=os.getpid())).ok
        world.restarts()
        turn = world.turn()
        assert world.tmux.panes == {}
        assert turn.look_again is not None  # nobody tells when a process ends
    world.turn()
    assert set(world.tmux.panes) == {"builder"}


def test_a_down_that_ends_in_the_middle_ends_no_more_agents(make: MakeWorld) -> None:
    world = many_run(make)
    with hold(down_lock(world.written.file.fleet)):
        world.turn(StopAll(id="c1", for_now=True, down=os.getpid()))
    world.turn()
    assert world.replies["c1"].said.startswith("the `muster down` that asked for this has ended")
    turns_until(world, lambda: len(world.tmux.panes) == ALL)


def test_what_is_left_of_another_down_ends_nothing(make: MakeWorld) -> None:
    world = make()
    world.turn()
    with hold(down_lock(world.written.file.fleet)):
        assert world.reply(StopAll(id="c1", for_now=True, down=os.getpid() + 1)).code == "refused"
    assert set(world.tmux.panes) == {"builder"}


def test_programs_that_outlived_their_sessions_are_ended_together(
    make: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make(agents={"reviewer": {}})
    turns_until(world, lambda: len(world.tmux.panes) == 2)
    sessions = [world.known(agent).session for agent in ("builder", "reviewer")]
    asked: list[list[tuple[int, str]]] = []
    monkeypatch.setattr("services.spawner.commands.stops.end_left_over", asked.append)
    world.tmux.panes.clear()
    world.turn(StopAll(id="c1"))
    assert asked == [[(each.pid, each.spawn) for each in sessions]]
