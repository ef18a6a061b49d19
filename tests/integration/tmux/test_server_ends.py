"""The whole tmux server ends, or the machine: the agents come back where they were, and nobody is blamed for it."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from services.spawner.sessions.memory import FLEET_RESTARTS
from tests.fixtures.broker import wait_until
from tests.fixtures.by_hand import run_tmux, wait_for_program
from tests.fixtures.lives import Lives

NAMES = [f"agent-{number}" for number in range(4)]
AGENTS = {name: {"prompt": f"I am {name}", "restart": {"burst": 2}} for name in NAMES}
SLEEPER = {"sleeper": {"binary": "sleep", "argv": ["{binary}", "1000"], "deliver": "arg"}}
FEW = {"burst": 1, "burst_s": 1000, "sustained": 1}
"""Limits of the whole fleet that any counted restart would meet."""

Make = Callable[..., Lives]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    made: list[Lives] = []

    def make(agents: dict[str, Any] | None = None, **settings: Any) -> Lives:
        made.append(Lives(tmp_path, agents or AGENTS, **settings))
        return made[-1]

    yield make
    for lives in made:
        lives.end()


def spawns(lives: Lives) -> dict[str, str]:
    return {pane.agent or "": pane.spawn or "" for pane in lives.sessions() if not pane.dead}


def wait_for_all(lives: Lives, but: dict[str, str] | None = None) -> dict[str, str]:
    """Wait until every agent runs, and in another session than before."""

    def all_run() -> dict[str, str] | None:
        now = spawns(lives)
        old = (but or {}).items()
        return now if now.keys() == set(NAMES) and not now.items() & old else None

    return wait_until(all_run, "all agents", 30)


def wait_for_conversations(lives: Lives) -> None:
    wait_until(lambda: len(lives.heard()) >= len(NAMES), "a record of each conversation", 30)


def screens(lives: Lives) -> list[str]:
    return list(lives.tmux.screens([pane.pane_id for pane in lives.sessions()]).values())


def kill_server(lives: Lives) -> None:
    run_tmux(lives.socket, "kill-server")


def assert_nobody_is_blamed(lives: Lives, first: dict[str, str]) -> None:
    told = lives.told()
    assert "gave_up" not in [data["kind"] for data in told]
    restarted = [data for data in told if data["kind"] == "restarted"]
    assert {data["agent"]: data["replaces"] for data in restarted} == first
    assert {data["reason"] for data in restarted} == {"its tmux server had ended"}
    begun = {data["agent"]: data["conversation"] for data in told if data["kind"] == "spawned"}
    assert {data["agent"]: data["conversation"] for data in restarted} == begun, "they take up where they were"
    assert [lives.remembered(name).deaths for name in NAMES] == [()] * len(NAMES)
    assert FLEET_RESTARTS.key() not in lives.memory(), "the fleet's limit is for failures"


def test_all_come_back_when_their_server_is_killed(make: Make) -> None:
    lives = make(restarts=FEW)
    with lives.life("services.spawner"):
        first = wait_for_all(lives)
        wait_for_conversations(lives)
        kill_server(lives)
        wait_for_all(lives, but=first)
        lives.settle()
    assert_nobody_is_blamed(lives, first)
    wait_until(lambda: all("taking up the conversation" in screen for screen in screens(lives)), "they say so")


@pytest.mark.parametrize("somebody_was_first", [False, True])
def test_all_come_back_after_the_machine_was_restarted(make: Make, *, somebody_was_first: bool) -> None:
    """The services and the tmux server are gone, and only files are left; perhaps a person has opened a tmux since."""
    lives = make(restarts=FEW)
    with lives.life("services.spawner"):
        first = wait_for_all(lives)
        wait_for_conversations(lives)
        lives.settle()
    lives.tmux.close()
    kill_server(lives)
    wait_until(lambda: not _running(lives), "nothing runs")
    if somebody_was_first:
        opens = ["tmux", "-L", lives.socket, "new-session", "-d", "-s", "mine", "sleep 1000"]
        # The old server may still be leaving, and then takes the newcomer with it.
        wait_until(lambda: subprocess.run(opens, check=False).returncode == 0, "somebody opens a tmux")
    with lives.life("services.spawner"):
        wait_for_all(lives, but=first)
        lives.settle()
    assert_nobody_is_blamed(lives, first)


def _running(lives: Lives) -> list[int]:
    return [each.pid for each in psutil.process_iter() if lives.fleet.path.as_posix() in " ".join(_words(each))]


def _words(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_starts_after_it_are_spread_out(make: Make) -> None:
    busy = {"busy": {"binary": "sh", "argv": ["{binary}", "-c", "while :; do :; done"], "deliver": "arg"}}
    agents = {name: {"backend": "busy"} for name in NAMES}
    lives = make(agents, backends=busy, start={"at_once": 1, "gap_s": 0.4})
    with lives.life("services.spawner"):
        first = wait_for_all(lives)
        kill_server(lives)
        wait_for_all(lives, but=first)
    created = sorted(lives.remembered(name).session.started for name in NAMES)
    assert created[-1] - created[0] >= 0.4 * (len(NAMES) - 1) - 0.1


def test_a_server_that_ends_again_and_again_ends_in_giving_up(make: Make) -> None:
    """The first end is forgiven; `burst` more are, with a wait; then it is enough."""
    restart = {"burst": 2, "first_wait_s": 0.1, "longest_wait_s": 0.1}
    lives = make({"builder": {"restart": restart, "backend": "sleeper"}}, backends=SLEEPER)
    with lives.life("services.spawner"):
        seen: set[str] = set()
        for _ in range(4):
            spawn = wait_until(lambda: next((s for s in spawns(lives).values() if s not in seen), None), "it runs")
            seen.add(spawn)
            lives.settle()  # it is remembered in which server it runs
            kill_server(lives)
        wait_until(lambda: "gave_up" in [data["kind"] for data in lives.told()], "given up")
    kinds = [data["kind"] for data in lives.told()]
    assert (kinds.count("restarted"), kinds.count("gave_up")) == (3, 1)


def test_one_session_that_is_killed_still_counts(make: Make) -> None:
    lives = make({"builder": {}})
    with lives.life("services.spawner"):
        first = wait_until(lambda: spawns(lives), "it runs")
        lives.settle()
        run_tmux(lives.socket, "kill-session", "-t", "=builder")
        wait_until(lambda: (now := spawns(lives)) and now != first, "it runs again")
        lives.settle()
    assert len(lives.remembered().deaths) == 1


def test_what_was_adopted_is_not_started_again(make: Make) -> None:
    lives = make({"builder": {"enabled": False}}, backends=SLEEPER)
    run_tmux(lives.socket, "new-session", "-d", "-s", "theirs", "sleep 1000")
    wait_for_program(lives.tmux, "sleep", session="theirs")
    with lives.life("services.spawner"):
        assert lives.answer(lives.ask("adopt", agent="helper", session="theirs"))["ok"]
        kill_server(lives)
        wait_until(lambda: not lives.remembered("helper").had_session, "it is noticed")
        lives.settle()
        lives.settle()
        assert lives.sessions() == []
    assert [data["kind"] for data in lives.told()] == ["adopted"]
