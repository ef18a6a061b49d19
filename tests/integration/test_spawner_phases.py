"""What the spawner does for loops: agents that wait for their phase, and starts with another prompt and model."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures.broker import wait_until
from tests.fixtures.lives import Lives

LOOP = {"remote": "nowhere.git", "roles": {"build": "builder", "lead": "lead"}, "phases": [{"name": "one"}]}
PHASE = {"fresh": True, "prompt": "phase two", "model": "large"}


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    agents = {"builder": {"kind": "loop", "prompt": "its own"}, "lead": {}}
    lives = Lives(tmp_path, agents, loops={"main": LOOP})
    yield lives
    lives.end()


def running(lives: Lives) -> dict[str, str]:
    return {pane.agent or "": pane.spawn or "" for pane in lives.sessions() if not pane.dead}


def screen(lives: Lives) -> str:
    shown = lives.tmux.screens([pane.pane_id for pane in lives.sessions() if pane.agent == "builder"])
    return "".join(shown.values())


def test_an_agent_of_a_loop_waits_for_its_phase_and_others_do_not(lives: Lives) -> None:
    with lives.life("services.spawner"):
        wait_until(lambda: "lead" in running(lives), "the other one")
        assert lives.answer(lives.ask_all("spawn_all"))["said"] == "all run already"
        lives.settle()
        assert running(lives).keys() == {"lead"}
        assert lives.answer(lives.ask("spawn"))["ok"], "people may start it"


def test_a_phase_starts_it_anew_and_what_it_was_given_outlives_its_death(lives: Lives) -> None:
    with lives.life("services.spawner"):
        lives.answer(lives.ask("spawn"))
        wait_until(lambda: "> heard: its own" in screen(lives), "its own prompt")
        before = running(lives)["builder"]
        assert lives.answer(lives.ask("restart", **PHASE))["said"] == "builder was restarted"
        wait_until(lambda: "on large" in screen(lives) and "> heard: phase two" in screen(lives), "the phase's")
        started = running(lives)["builder"]
        assert started != before
        (pane,) = [pane for pane in lives.sessions() if pane.agent == "builder"]
        lives.tmux.kill(pane.session_id)
        wait_until(lambda: running(lives).get("builder") not in (None, started), "it is started again")
        wait_until(lambda: "on large" in screen(lives) and "taking up the conversation" in screen(lives), "as it was")
        lives.answer(lives.ask("stop"))
        lives.answer(lives.ask("spawn"))
        wait_until(lambda: "> heard: its own" in screen(lives), "its own prompt again")
        assert "on large" not in screen(lives)


@pytest.mark.parametrize("point", range(1, 12, 2))
def test_a_phase_is_begun_once_though_the_spawner_dies(lives: Lives, point: int) -> None:
    reply = lives.carried_out_over_a_death(point, "restart", **PHASE)
    assert reply["ok"], reply
    assert running(lives).keys() >= {"builder"}
    assert [data["kind"] for data in lives.told() if data["agent"] == "builder"] == ["restarted"]
    wait_until(lambda: lives.heard().count("phase two") == 1, "its prompt")
