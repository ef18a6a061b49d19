"""A wish that arrives after a later one was carried out: it is answered in words and changes nothing."""

from datetime import timedelta
from typing import Any

import pytest

from services.spawner.commands.wishes import is_wish
from shared.contract.commands import (
    VERBS,
    Adopt,
    AgentCommand,
    Command,
    Delete,
    Forget,
    Restart,
    Resume,
    Send,
    Spawn,
    SpawnAll,
    Stop,
    StopAll,
)
from tests.fakes.records import START
from tests.unit.spawner.conftest import MakeWorld
from tests.unit.spawner.world import SpawnerWorld


def made(after_s: float) -> Any:
    return START + timedelta(seconds=after_s)


def stopped(make: MakeWorld, **settings: Any) -> SpawnerWorld:
    """The builder ran, and was stopped by a wish of the tenth second; now it is the twentieth."""
    world = make(**settings)
    world.turn()
    world.turn(Stop(agent="builder", id="stop", made=made(10)), after=20)
    assert world.replies["stop"].ok
    return world


OLDER: list[Command] = [
    Spawn(agent="builder", id="c1", made=made(9)),
    Restart(agent="builder", id="c1", made=made(9)),
    Resume(agent="builder", id="c1", made=made(9), conversation="x"),
    SpawnAll(id="c1", made=made(9)),
    Delete(agent="builder", id="c1", made=made(9)),
]


@pytest.mark.parametrize("older", OLDER, ids=lambda each: each.verb)
def test_a_wish_that_was_made_before_one_that_was_carried_out_changes_nothing(make: MakeWorld, older: Command) -> None:
    world = stopped(make)
    known = world.known()
    reply = world.reply(older)
    assert (reply.ok, reply.code) == (False, "outdated")
    assert reply.said.startswith("a later `stop` ")
    assert reply.said.endswith("stands: say it again if it is still wanted")
    world.turn()
    assert world.known() == known
    assert world.tmux.panes == {}


@pytest.mark.parametrize("made_at", [10.0, 11.0, None])
def test_a_wish_that_was_made_later_is_carried_out(make: MakeWorld, made_at: float | None) -> None:
    world = stopped(make)
    assert world.reply(Spawn(agent="builder", id="c1", made=None if made_at is None else made(made_at))).ok
    assert "builder" in world.tmux.panes


def test_a_stop_of_all_that_is_older_than_a_start_changes_nothing(make: MakeWorld) -> None:
    world = make({"enabled": False})
    world.turn(Spawn(agent="builder", id="c1", made=made(10)), after=20)
    reply = world.reply(StopAll(id="c2", made=made(9)))
    assert (reply.code, reply.said[:28]) == ("outdated", "a later `spawn` of builder (")
    assert "builder" in world.tmux.panes


def test_a_stop_of_all_outlasts_an_older_start(make: MakeWorld) -> None:
    world = make()
    world.turn()
    world.turn(StopAll(id="c1", made=made(10)), after=20)
    assert world.reply(Spawn(agent="builder", id="c2", made=made(9))).code == "outdated"


def test_what_became_of_another_agent_does_not_matter(make: MakeWorld) -> None:
    world = stopped(make, agents={"other": {"enabled": False}})
    assert world.reply(Spawn(agent="other", id="c1", made=made(9))).ok


def test_a_later_wish_that_was_refused_does_not_stand(make: MakeWorld) -> None:
    world = make({"enabled": False})
    world.turn(Adopt(agent="builder", session="nowhere", id="c1", made=made(10)), after=20)
    assert not world.replies["c1"].ok
    assert world.reply(Spawn(agent="builder", id="c2", made=made(9))).ok


def test_an_answered_command_that_can_not_be_read_is_passed_over(make: MakeWorld) -> None:
    world = stopped(make)
    with world.journal.database.writing() as connection:
        connection.execute("UPDATE request SET verb = 'dance' WHERE id = 'stop'")
    assert world.reply(Spawn(agent="builder", id="c1", made=made(9))).ok


def test_a_wish_survives_the_spawner(make: MakeWorld) -> None:
    world = stopped(make)
    world.restarts()
    assert world.reply(Spawn(agent="builder", id="c1", made=made(9))).code == "outdated"


def test_a_clock_that_was_set_back_locks_nobody_out(make: MakeWorld) -> None:
    world = stopped(make)
    world.turns.now -= timedelta(hours=2)
    world.turn(Spawn(agent="builder", id="c1", made=world.turns.now))
    world.turns_for(5)
    assert world.replies["c1"].ok


def test_what_had_begun_is_finished(make: MakeWorld) -> None:
    """The spawner was killed after it had started the session; the later wish comes after it."""
    world = make({"enabled": False})
    world.turn(Spawn(agent="builder", id="c1", made=made(0)), commits=False)
    assert "builder" in world.tmux.panes
    world.restarts()
    world.turn(Stop(agent="builder", id="c2", made=made(1)), after=2)
    world.turn()
    assert (world.replies["c1"].ok, world.replies["c2"].ok) == (True, True)
    assert world.tmux.panes == {}


def test_only_what_is_wanted_from_now_on_is_a_wish() -> None:
    session: Command
    for session in (
        Stop(agent="a", spawn="s1"),
        Stop(agent="a", for_now=True),
        StopAll(for_now=True),
        Restart(agent="a", spawn="s1"),
        Restart(agent="a", counts=True),
        Forget(agent="a", spawn="s1"),
        Adopt(agent="a", session="a", found=True),
        Send(agent="a", text="go"),
    ):
        assert not is_wish(session)


def test_every_verb_about_a_session_is_a_wish() -> None:
    for kind in VERBS.values():
        about = kind.owner == "spawner" and (
            kind in (SpawnAll, StopAll) or (issubclass(kind, AgentCommand) and kind.changes_session)
        )
        arguments = {name: "a" for name, field in kind.model_fields.items() if field.is_required()}
        if about:
            assert is_wish(kind.model_validate(arguments)), kind.verb
