"""Agents that people started by hand, in a session or in one pane of it: taken over, ended, let go."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from shared.contract.ids import new_id
from shared.messaging.journal import Journal
from shared.system.tmux import Pane
from tests.fixtures.broker import wait_until
from tests.fixtures.by_hand import run_tmux, wait_for_program
from tests.fixtures.lives import Lives

BACKENDS = {
    "sleeper": {"binary": "sleep", "argv": ["{binary}", "1000"], "deliver": "arg"},
    "cat": {"binary": "cat", "argv": ["{binary}"], "deliver": "arg"},
}


@pytest.fixture
def lives(tmp_path: Path) -> Iterator[Lives]:
    """A person's session: a shell first, an agent beside it (`%1`) and another in a window of its own (`%2`)."""
    lives = Lives(tmp_path, {"builder": {"enabled": False}}, backends=BACKENDS)
    run_tmux(lives.socket, "new-session", "-d", "-s", "mine", "sh")
    run_tmux(lives.socket, "split-window", "-t", "=mine:", "sleep 1000")
    run_tmux(lives.socket, "new-window", "-t", "=mine:", "cat")
    for command in ("sleep", "cat"):
        wait_for_program(lives.tmux, command, session="mine")
    yield lives
    lives.end()


def adopt(lives: Lives, agent: str = "helper", pane: str | None = "%1", **more: Any) -> dict[str, Any]:
    return lives.answer(lives.ask("adopt", agent=agent, session="mine", pane=pane, **more))


def seen(lives: Lives) -> dict[str, str | None]:
    return {pane.pane_id: pane.agent for pane in lives.tmux.look()}


def pane_of(lives: Lives, pane_id: str) -> Pane:
    (pane,) = [pane for pane in lives.tmux.look() if pane.pane_id == pane_id]
    return pane


# --- one pane ---


def test_a_pane_is_adopted_and_stopped_and_the_rest_stays(lives: Lives) -> None:
    with lives.life("services.spawner"):
        reply = adopt(lives)
        assert reply["said"] == "helper is the pane %1 of the session 'mine' from now on"
        assert reply["result"]["backend"] == "sleeper"
        assert seen(lives) == {"%0": None, "%1": "helper", "%2": None}
        pid = pane_of(lives, "%1").pid
        assert lives.answer(lives.ask("stop", agent="helper"))["said"] == "helper was stopped"
        assert seen(lives) == {"%0": None, "%2": None}
        assert not psutil.pid_exists(pid)
    (adopted, stopped) = lives.told()
    assert (adopted["kind"], adopted["pane"], adopted["pid"]) == ("adopted", "%1", pid)
    assert (stopped["kind"], stopped["spawn"]) == ("stopped", adopted["spawn"])


def test_two_agents_share_a_session(lives: Lives) -> None:
    with lives.life("services.spawner"):
        assert adopt(lives)["ok"]
        assert adopt(lives, "reader", "%2")["ok"]
        assert seen(lives) == {"%0": None, "%1": "helper", "%2": "reader"}
        assert lives.answer(lives.ask("send", agent="reader", text="hello"))["ok"]
        wait_until(lambda: "hello" in lives.tmux.screens(["%2"])["%2"], "the text")
        assert "hello" not in lives.tmux.screens(["%0"])["%0"]
        assert lives.answer(lives.ask("delete", agent="helper"))["ok"]
        assert seen(lives) == {"%0": None, "%2": "reader"}


def test_a_whole_session_is_refused_where_the_agent_is_beside_its_first_pane(lives: Lives) -> None:
    with lives.life("services.spawner"):
        reply = adopt(lives, pane=None)
        assert (reply["code"], "but in %1 (sleeper) and %2 (cat)" in reply["said"]) == ("refused", True), reply
        assert adopt(lives)["ok"]
        assert "name the `pane`" in adopt(lives, "reader", None)["said"]
        assert "the pane %1 is the agent helper already" in adopt(lives, "reader", "%1")["said"]
        assert "has a session already" in adopt(lives, "helper", "%2")["said"]
        assert set(seen(lives).values()) == {None, "helper"}


def test_a_pane_whose_program_ends_is_gone_and_stays_so(lives: Lives) -> None:
    with lives.life("services.spawner"):
        adopt(lives)
        psutil.Process(pane_of(lives, "%1").pid).kill()
        wait_until(lambda: not lives.remembered("helper").had_session, "it is noticed")
        lives.settle()
        assert seen(lives) == {"%0": None, "%2": None}


def test_a_dead_pane_that_a_person_keeps_is_left_to_them(lives: Lives) -> None:
    run_tmux(lives.socket, "set-option", "-w", "-t", "=mine:0", "remain-on-exit", "on")
    with lives.life("services.spawner"):
        adopt(lives)
        psutil.Process(pane_of(lives, "%1").pid).kill()
        wait_until(lambda: seen(lives).get("%1") is None, "it is let go")
        assert pane_of(lives, "%1").dead
        assert pane_of(lives, "%1").left is None
    assert [data["kind"] for data in lives.told()] == ["adopted", "exited"]


@pytest.mark.parametrize("pane", [None, "%0"])
@pytest.mark.parametrize("point", range(6, 13))
def test_the_same_command_acts_once_over_a_death(tmp_path: Path, pane: str | None, point: int) -> None:
    lives = Lives(tmp_path, {}, backends=BACKENDS)
    try:
        lives.tmux.close()
        run_tmux(lives.socket, "new-session", "-d", "-s", "theirs", "sleep 1000")
        reply = lives.carried_out_over_a_death(point, "adopt", session="theirs", pane=pane, found=True)
        assert reply["ok"], reply
        (session,) = lives.sessions()
        assert (session.agent, session.pane_only) == ("builder", pane is not None)
        assert [data["kind"] for data in lives.told()] == ["adopted"]
        assert lives.remembered("builder").is_found
        assert not lives.remembered("builder").session.piped_elsewhere
    finally:
        lives.end()


# --- letting go ---


def test_what_is_forgotten_goes_on_and_is_not_found_again(lives: Lives) -> None:
    with lives.life("services.spawner"):
        adopt(lives)
        log = lives.fleet.logs / "helper.log"
        wait_until(lambda: pane_of(lives, "%1").piped, "its log")
        reply = lives.answer(lives.ask("forget", agent="helper"))
        assert reply["said"] == "helper was forgotten; the pane %1 of the tmux session 'mine' goes on without Muster"
        left = pane_of(lives, "%1")
        assert (left.agent, left.left, left.dead, left.piped) == (None, lives.fleet.stamp, False, False)
        assert log.exists()
        found = adopt(lives, found=True)
        assert (found["code"], "was to be forgotten" in found["said"]) == ("refused", True)
        assert adopt(lives, "again")["ok"]
        assert pane_of(lives, "%1").left is None


def test_a_whole_session_is_forgotten_in_the_same_way(lives: Lives) -> None:
    run_tmux(lives.socket, "new-session", "-d", "-s", "whole", "sleep 1000")
    wait_for_program(lives.tmux, "sleep", session="whole")
    with lives.life("services.spawner"):
        assert lives.answer(lives.ask("adopt", agent="helper", session="whole"))["ok"]
        assert lives.answer(lives.ask("forget", agent="helper"))["said"].endswith("'whole' goes on without Muster")
        found = lives.answer(lives.ask("adopt", agent="helper", session="whole", found=True))
        assert "was to be forgotten" in found["said"]
        assert lives.answer(lives.ask("adopt", agent="helper", session="whole"))["ok"]


def test_a_session_that_has_ended_is_forgotten_only_if_it_was_the_newest(lives: Lives) -> None:
    with lives.life("services.spawner"):
        assert adopt(lives)["ok"]
        spawn = pane_of(lives, "%1").spawn
        runs = lives.answer(lives.ask("forget", agent="helper", spawn=spawn))
        assert (runs["code"], "helper runs, and is not forgotten" in runs["said"]) == ("refused", True)
        assert (pane_of(lives, "%1").agent, pane_of(lives, "%1").left) == ("helper", None)
        psutil.Process(pane_of(lives, "%1").pid).kill()
        wait_until(lambda: not lives.remembered("helper").had_session, "it is noticed")
        older = lives.answer(lives.ask("forget", agent="helper", spawn=new_id()))
        assert (older["code"], "had another session since" in older["said"]) == ("refused", True)
        assert lives.remembered("helper").spawn == spawn
        assert lives.answer(lives.ask("forget", agent="helper", spawn=spawn))["said"] == "helper was forgotten"
    assert [data["kind"] for data in lives.told()] == ["adopted", "deleted"]
    assert {pane.left for pane in lives.tmux.look()} == {None}


# --- what was only found ---


def test_what_is_found_takes_the_name_of_what_a_person_had_adopted_once_that_has_ended(lives: Lives) -> None:
    with lives.life("services.spawner"):
        assert adopt(lives)["ok"]
        psutil.Process(pane_of(lives, "%1").pid).kill()
        wait_until(lambda: not lives.remembered("helper").had_session, "it is noticed")
        reply = adopt(lives, pane="%2", found=True)
        assert reply["ok"], reply
        assert seen(lives) == {"%0": None, "%2": "helper"}
        assert lives.remembered("helper").is_found


def test_what_was_found_is_left_alone_when_all_are_stopped(lives: Lives) -> None:
    with lives.life("services.spawner"):
        assert adopt(lives, found=True)["ok"]
        assert adopt(lives, "reader", "%2")["ok"]
        reply = lives.answer(lives.ask_all("stop_all"))
        assert reply["said"] == ("reader: stopped; helper, which was only found, was left alone: name it to stop it")
        assert (reply["result"]["agents"], reply["result"]["left_alone"]) == (["reader"], ["helper"])
        assert seen(lives) == {"%0": None, "%1": "helper"}
        assert lives.answer(lives.ask("stop", agent="helper"))["said"] == "helper was stopped"
        assert seen(lives) == {"%0": None}


def test_a_person_makes_what_was_found_an_agent_like_others(lives: Lives) -> None:
    with lives.life("services.spawner"):
        adopt(lives, found=True)
        spawn = pane_of(lives, "%1").spawn
        assert adopt(lives, found=True)["code"] == "refused"
        assert "has a session already" in adopt(lives, pane="%2")["said"]
        reply = adopt(lives)
        assert reply["said"].startswith("helper was only found, and is yours from now on")
        assert pane_of(lives, "%1").spawn == spawn
        assert not lives.remembered("helper").is_found
        assert lives.answer(lives.ask_all("stop_all"))["said"] == "helper: stopped"


def test_what_is_found_takes_nobodys_name_and_nothing_of_another_fleet(lives: Lives) -> None:
    lives.tmux.stamp("mine", agent="a", spawn="s-1", fleet="away", pane_id="%2")
    with lives.life("services.spawner"):
        assert "the name 'builder' is in use" in adopt(lives, "builder", found=True)["said"]
        taken = adopt(lives, pane="%2", found=True)
        assert (taken["code"], "belongs to another fleet" in taken["said"]) == ("refused", True)
        assert adopt(lives, found=True)["ok"]
        assert "has a session already" in adopt(lives, found=True)["said"]
    assert pane_of(lives, "%2").fleet == "away"


# --- logs ---


def test_an_adopted_pane_is_logged(lives: Lives) -> None:
    with lives.life("services.spawner"):
        adopt(lives, pane="%2")
        wait_until(lambda: pane_of(lives, "%2").piped, "a pipe")
        lives.answer(lives.ask("send", agent="helper", text="hello"))
        log = lives.fleet.logs / "helper.log"
        wait_until(lambda: b"hello" in log.read_bytes(), "its output in the log")


def test_a_pipe_that_a_person_has_set_up_is_left_alone(lives: Lives, tmp_path: Path) -> None:
    theirs = tmp_path / "theirs.log"
    run_tmux(lives.socket, "pipe-pane", "-t", "%2", f"cat >> {theirs}")
    with lives.life("services.spawner"):
        assert "where somebody had piped it before, and to no log" in adopt(lives, pane="%2")["said"]
        for text in ("one", "two"):
            lives.answer(lives.ask("send", agent="helper", text=text))
            wait_until(lambda text=text: text in theirs.read_text(), "their log")  # type: ignore[misc]
            lives.settle()
        assert not (lives.fleet.logs / "helper.log").exists()
        run_tmux(lives.socket, "pipe-pane", "-t", "%2")
        wait_until((lives.fleet.logs / "helper.log").exists, "it is free, and logged from now on")


# --- what the reconciler finds out ---


def test_a_restart_takes_up_the_conversation_that_the_agent_was_really_in(lives: Lives) -> None:
    with lives.life("services.spawner"):
        spawn = lives.answer(lives.ask("spawn", prompt="begin"))["result"]["spawn"]
        wait_until(lambda: lives.heard() == ["begin"], "its conversation")
        begun = lives.remembered("builder").session.conversation
        other = lives.fleet.home / "demo" / "cleared-1.jsonl"
        other.write_text("")
        identify(lives, spawn="an-older-one", conversation="wrong-1")
        identify(lives, spawn=spawn, conversation="cleared-1")
        wait_until(lambda: lives.remembered("builder").session.conversation != begun, "it is taken up")
        assert lives.answer(lives.ask("restart"))["said"] == "builder was restarted; it takes up its conversation"
    assert [data["conversation"] for data in lives.told() if data["kind"] == "restarted"] == ["cleared-1"]


def identify(lives: Lives, **facts: str) -> None:
    """Tell what the reconciler would, by its journal."""
    journal = Journal(lives.fleet.journal, "reconciler")
    data = {"kind": "identified", "agent": "builder", **facts}

    def word(seq: int) -> tuple[str, bytes]:
        document = {
            "type": "muster.drift.identified",
            "subject": "builder",
            "time": "2026-01-01T00:00:00Z",
            "data": data,
            "source": "/box/reconciler",
            "seq": seq,
            "epoch": journal.epoch,
            "id": new_id(),
        }
        return "muster/box/agent/builder/drift", json.dumps(document).encode()

    with journal.transaction() as transaction:
        transaction.append([word], time.time())
    journal.close()
