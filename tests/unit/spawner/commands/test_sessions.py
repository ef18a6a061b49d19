"""Commands about sessions: what each does, says and leaves alone, also over a crash."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from services.spawner.commands.replies import Refusal
from services.spawner.commands.sessions import must_have_ended
from services.spawner.sessions.memory import AgentMemory, Origin
from shared.contract.commands import (
    Adopt,
    Delete,
    Forget,
    Park,
    Restart,
    Resume,
    Send,
    Spawn,
    Stop,
    StopAll,
    Unpark,
)
from shared.contract.states import Desired
from tests.fakes.records import START
from tests.unit.spawner.conftest import MakeWorld
from tests.unit.spawner.samples import ended, pane, view
from tests.unit.spawner.world import box

OURS: dict[str, Any] = {"agent": "helper", "fleet": "f"}
# --- forgetting a session that has ended ---


@pytest.mark.parametrize(
    ("newest", "shown", "said"),
    [
        ("s1", "s1", "helper runs, and is not forgotten"),
        ("s1", "s2", "helper runs, and is not forgotten"),
        ("s2", None, "helper had another session since, s2"),
    ],
)
def test_what_was_not_meant_is_refused(tmp_path: Path, newest: str, shown: str | None, said: str) -> None:
    panes = {"helper": pane(spawn=shown, **OURS)} if shown else {}
    now = view(tmp_path, known={"helper": ended(newest, origin=Origin.ADOPTED)}, panes=panes)
    with pytest.raises(Refusal, match=said):
        must_have_ended(now, "helper", "s1")


def test_a_later_session_that_has_ended_was_not_meant(tmp_path: Path) -> None:
    panes = {"helper": pane(spawn="s2", dead=True, **OURS)}
    with pytest.raises(Refusal, match="another session since, s2"):
        must_have_ended(view(tmp_path, known={"helper": ended("s1")}, panes=panes), "helper", "s1")


@pytest.mark.parametrize("panes", [{}, {"helper": pane(spawn="s1", dead=True, **OURS)}], ids=["gone", "dead"])
def test_what_has_ended_is_forgotten(tmp_path: Path, panes: dict[str, Any]) -> None:
    now = view(tmp_path, known={"helper": ended("s1")}, panes=panes)
    must_have_ended(now, "helper", "s1")
    with pytest.raises(Refusal, match="another session since, s1"):
        must_have_ended(now, "helper", "s0")


# --- carried out, turn by turn ---


def test_a_spawn_of_what_runs_already_says_so(make: MakeWorld) -> None:
    world = make()
    world.turn()
    reply = world.reply(Spawn(agent="builder", id="c1"))
    assert (reply.said, reply.result["already"]) == ("builder runs already", True)
    assert world.kinds() == ["spawned"]


def test_an_unknown_agent_is_refused_with_the_known_ones(make: MakeWorld) -> None:
    reply = make().reply(Spawn(agent="bilder", id="c1"))
    assert reply.code == "unknown_agent"
    assert "builder" in reply.said


@pytest.mark.parametrize("point", ["before", "after"])
def test_a_restart_over_a_crash_makes_one_session(make: MakeWorld, point: str) -> None:
    world = make()
    world.turn()
    first = world.known().spawn
    if point == "after":
        world.turn(Restart(agent="builder", id="c1"), commits=False)
        world.restarts()
        world.turn()
    else:
        world.restarts()
        world.turn(Restart(agent="builder", id="c1"))
    assert world.replies["c1"].ok
    assert world.kinds() == ["spawned", "restarted"]
    assert world.known().spawn == world.tmux.panes["builder"].spawn != first


def test_a_command_without_a_handler_is_refused(make: MakeWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Send, "changes_session", True)
    reply = make().reply(Send(agent="builder", id="c1", text="go"))
    assert (reply.code, reply.said) == ("refused", "the spawner has no handler for send")


def test_a_restart_for_another_session_is_refused(make: MakeWorld) -> None:
    world = make()
    world.turn()
    reply = world.reply(Restart(agent="builder", id="c1", spawn="older"))
    assert (reply.code, world.kinds()) == ("refused", ["spawned"])
    assert "builder has another session since" in reply.said


def test_one_command_for_an_agent_in_a_turn(make: MakeWorld) -> None:
    """After a crash it must be clear which of them was begun."""
    world = make()
    turn = world.turn(Stop(agent="builder", id="c1"), Spawn(agent="builder", id="c2"))
    assert list(turn.replies) == ["c1"]
    assert turn.look_again == turn.now
    world.turn()
    assert world.replies["c2"].ok
    assert "builder" in world.tmux.panes


def test_a_text_is_not_typed_into_the_session_that_replaced_its_own(make: MakeWorld) -> None:
    world = make()
    world.turn()
    turn = world.turn(Restart(agent="builder", id="c1"), Send(agent="builder", id="c2", text="go"))
    assert world.replies["c1"].ok
    assert [reply.said for _, reply, _ in turn.deferred.values()] == ["its agent is being started or ended"]
    assert world.tmux.typed == []


def test_stop_all_leaves_alone_what_was_only_found(make: MakeWorld) -> None:
    world = make()
    world.turn()
    world.opens("theirs")
    assert world.reply(Adopt(agent="helper", session="theirs", backend="demo", found=True, id="c1")).ok
    reply = world.reply(StopAll(id="c2"))
    assert reply.said == "builder: stopped; helper, which was only found, was left alone: name it to stop it"
    assert list(world.tmux.panes) == ["theirs"]


def test_a_deleted_agent_is_remembered_only_as_not_wanted(make: MakeWorld) -> None:
    world = make()
    world.turn()
    spawns = world.known().spawns
    assert world.reply(Delete(agent="builder", id="c1")).ok
    world.turn()
    assert world.known() == AgentMemory(wish=Desired.STOPPED, spawns=spawns + 1)
    assert world.tmux.panes == {}


def test_a_forgotten_session_goes_on_without_muster(make: MakeWorld) -> None:
    world = make()
    world.turn()
    reply = world.reply(Forget(agent="builder", id="c1"))
    assert reply.said == "builder was forgotten; the tmux session 'builder' goes on without Muster"
    (pane,) = world.tmux.panes.values()
    assert (pane.agent, pane.left) == (None, world.written.file.fleet.stamp)


def test_a_spawn_waits_for_its_account_until_somebody_insists(make: MakeWorld) -> None:
    world = make({"enabled": False, "account": "acme"})
    world.turn(Park(account="acme", until=START + timedelta(hours=1), id="c1"), Spawn(agent="builder", id="c2"))
    assert world.said["c2"].startswith("builder waits: the usage limit of the account 'acme' is reached until")
    assert world.tmux.panes == {}
    world.turn(Spawn(agent="builder", id="c3", anyway=True))
    world.turn()
    assert (world.replies["c2"].code, world.replies["c3"].code) == ("overtaken", "ok")
    assert "builder" in world.tmux.panes


def test_an_account_that_is_unparked_has_its_agents_started(make: MakeWorld) -> None:
    world = make({"account": "acme"})
    world.turn(Park(account="acme", until=START + timedelta(hours=1), id="c1"))
    world.turn(after=60)
    assert world.tmux.panes == {}
    world.turn(Unpark(account="acme", id="c2"), after=60)
    assert world.kinds() == ["spawned"]


def test_a_resume_says_when_the_agent_shows_its_box(make: MakeWorld) -> None:
    world = make({"enabled": False})
    world.turn(Resume(agent="builder", conversation="c-1", id="c1"))
    assert world.kinds() == ["resumed"]
    assert world.said["c1"] == "builder was started, and takes up its conversation"
    world.shows(box())
    world.turn(after=0.2)
    assert (world.replies["c1"].said, world.replies["c1"].result["fresh"]) == (
        "builder took up its conversation",
        False,
    )


def test_a_resume_that_is_refused_says_that_a_new_conversation_was_begun(make: MakeWorld) -> None:
    world = make({"enabled": False})
    world.turn(Resume(agent="builder", conversation="c-1", id="c1"))
    world.exits(1, "demo agent: there is no conversation c-1")
    world.turns_for(3, step=0.3)
    assert world.replies["c1"].said == "builder refused to take up its conversation and began a new one"
    assert world.kinds() == ["resumed", "exited", "restarted"]
