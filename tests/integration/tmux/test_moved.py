"""People move panes between sessions: an agent is where its own pane is, and nothing that lives is ended."""

from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from shared.system.tmux import Pane
from tests.fixtures.broker import wait_until
from tests.fixtures.by_hand import run_tmux, wait_for_program
from tests.fixtures.lives import Lives

SLEEPER = {"sleeper": {"binary": "sleep", "argv": ["{binary}", "1000"], "deliver": "arg"}}
AGENTS = {name: {"backend": "sleeper"} for name in ("one", "two")}


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    """Two agents, and a person's session that is older than they are (`%0`)."""
    lives = Lives(tmp_path, AGENTS, backends=SLEEPER)
    run_tmux(lives.socket, "new-session", "-d", "-s", "mine", "sleep 1000")
    run_tmux(lives.socket, "split-window", "-d", "-t", "=mine:", "sleep 1000")
    yield lives
    lives.end()


def both(lives: Lives) -> dict[str, Pane]:
    return wait_until(lambda: found if len(found := running(lives)) == 2 else None, "both agents")


def running(lives: Lives) -> dict[str, Pane]:
    return {pane.agent or "": pane for pane in lives.sessions() if not pane.dead}


def same(lives: Lives, before: dict[str, Pane]) -> dict[str, Pane]:
    """Both go on as they were, after some turns of the spawner; and it told of no end."""
    for _ in range(3):
        lives.settle()
    now = running(lives)
    assert {agent: (pane.spawn, pane.pane_id, pane.pid) for agent, pane in now.items()} == {
        agent: (pane.spawn, pane.pane_id, pane.pid) for agent, pane in before.items()
    }
    assert all(psutil.pid_exists(pane.pid) for pane in now.values())
    assert [data["kind"] for data in lives.told()] == ["spawned", "spawned"]
    return now


def test_an_older_pane_is_joined_to_an_agents(lives: Lives) -> None:
    with lives.life("services.spawner"):
        before = both(lives)
        lives.settle()
        run_tmux(lives.socket, "join-pane", "-d", "-s", "%0", "-t", "=one:")
        now = same(lives, before)
        assert (now["one"].session, now["one"].own) == ("one", before["one"].pane_id)


def test_an_agents_pane_is_joined_to_a_persons(lives: Lives) -> None:
    """Its session ends with that, for it had no other pane."""
    with lives.life("services.spawner"):
        before = both(lives)
        lives.settle()
        run_tmux(lives.socket, "join-pane", "-d", "-s", before["one"].pane_id, "-t", "=mine:")
        now = same(lives, before)
        assert (now["one"].session, now["one"].pane_only) == ("mine", True)
        assert lives.answer(lives.ask("restart", agent="one"))["ok"]
        assert running(lives)["one"].session == "one"
        assert [pane.pane_id for pane in lives.tmux.look() if pane.session == "mine"] == ["%0", "%1"]


def test_an_agents_pane_changes_places_with_a_persons(lives: Lives) -> None:
    with lives.life("services.spawner"):
        before = both(lives)
        lives.settle()
        run_tmux(lives.socket, "swap-pane", "-d", "-s", before["one"].pane_id, "-t", "%0")
        now = same(lives, before)
        assert (now["one"].session, now["one"].pane_only) == ("mine", True)
        (theirs,) = [pane for pane in lives.tmux.look() if pane.pane_id == "%0"]
        assert (theirs.session, theirs.agent) == (f"one-left-{(now['one'].spawn or '')[:6]}", None)


def test_two_agents_change_places(lives: Lives) -> None:
    with lives.life("services.spawner"):
        before = both(lives)
        lives.settle()
        run_tmux(lives.socket, "swap-pane", "-d", "-s", before["one"].pane_id, "-t", before["two"].pane_id)
        now = same(lives, before)
        assert {pane.pane_only for pane in now.values()} == {True}
        assert lives.answer(lives.ask("stop", agent="one"))["ok"]
        assert running(lives).keys() == {"two"}


def test_what_is_started_beside_an_agent_is_adopted_and_outlives_it(lives: Lives) -> None:
    with lives.life("services.spawner"):
        before = both(lives)
        run_tmux(lives.socket, "split-window", "-d", "-t", before["one"].pane_id, "sleep 1000")
        beside = wait_for_program(lives.tmux, "sleep", session="one")
        asked = {"agent": "helper", "session": "one", "pane": beside.pane_id, "found": True}
        assert lives.answer(lives.ask("adopt", **asked))["said"].startswith(f"helper is the pane {beside.pane_id} of")
        assert running(lives).keys() == {"one", "two", "helper"}
        assert lives.answer(lives.ask("stop", agent="one"))["ok"]
        lives.settle()
        now = running(lives)
        assert (set(now), now["helper"].pid) == ({"two", "helper"}, beside.pid)
        assert not psutil.pid_exists(before["one"].pid)
        assert lives.answer(lives.ask("spawn", agent="one"))["ok"], "the name of its session is free"
        assert lives.answer(lives.ask("stop", agent="helper"))["ok"]
        assert running(lives).keys() == {"one", "two"}
