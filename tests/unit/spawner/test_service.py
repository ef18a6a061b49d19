"""What one turn of the spawner has time for, and what it leaves to the next one."""

import pytest

from services.spawner import view
from shared.contract.commands import Command, Spawn, Stop, StopAll
from tests.unit.spawner.conftest import MakeWorld

OTHERS: dict[str, dict[str, object]] = {"reviewer": {}, "tester": {}}
AT_ONCE = {"at_once": 10, "gap_s": 0}


def has_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(view, "WORKS_FOR_S", -1.0)


def test_agents_that_a_turn_has_no_time_for_are_kept_by_the_next_one(
    make: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_no_time(monkeypatch)
    world = make(agents=OTHERS, start=AT_ONCE)
    for started in ({"builder"}, {"builder", "reviewer"}, {"builder", "reviewer", "tester"}):
        turn = world.turn()
        assert set(world.tmux.panes) == started
        assert turn.look_again == turn.now


def test_commands_that_a_turn_has_no_time_for_are_carried_out_in_order_by_the_next_ones(
    make: MakeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make(agents=OTHERS, start=AT_ONCE)
    world.turn()
    has_no_time(monkeypatch)
    commands: list[Command] = [
        Stop(agent="builder", id="c1"),
        Stop(agent="reviewer", id="c2"),
        StopAll(id="c3"),
        Spawn(agent="tester", id="c4"),
    ]
    world.turn(*commands)
    assert list(world.replies) == ["c1"]
    world.turns_for(2.0)
    assert list(world.replies) == ["c1", "c2", "c3", "c4"]
    assert set(world.tmux.panes) == {"tester"}, "what was asked after all were stopped"
