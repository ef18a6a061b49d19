"""Record and world are kept together: what differs is told once, by push and by poll, with a broker and without."""

import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest

from services.cli import supervision
from shared.contract.topics import AGENT_DRIFT, locate
from shared.system.tmux.server import end_server
from tests.e2e.hands import BOTH, by_hand, demo_by_hand, maybe_without_broker, wait_until_settled
from tests.fixtures.broker import wait_until
from tests.fixtures.by_hand import frozen_tmux
from tests.fixtures.fleet import RunningFleet

SLEEPER = {"sleeper": {"binary": "sleep", "argv": ["{binary}", "100000"], "deliver": "arg"}}


@pytest.fixture
def fleet(renewed_fleet: RunningFleet) -> RunningFleet:
    return renewed_fleet


def drifts(fleet: RunningFleet) -> list[dict[str, Any]]:
    """What the reconciler has told so far, by its journal: the truth with and without a broker."""
    found = [
        each for each in fleet.entries("reconciler") if (row := locate(each.topic, "muster")) and row[1] is AGENT_DRIFT
    ]
    return [json.loads(entry.payload)["data"] for entry in found]


def kinds(fleet: RunningFleet, agent: str) -> list[str]:
    return [drift["kind"] for drift in drifts(fleet) if drift["agent"] == agent]


def faults(fleet: RunningFleet, agent: str) -> list[str]:
    """But for `identified`, which comes when the agent has written something."""
    return [kind for kind in kinds(fleet, agent) if kind != "identified"]


# --- agents that somebody started ---


@BOTH
def test_an_agent_that_a_person_started_is_adopted(fleet: RunningFleet, alone: bool) -> None:
    with maybe_without_broker(fleet, without=alone):
        by_hand(fleet, "new-session", "-d", "-s", "by hand", "-c", "/usr", demo_by_hand(fleet, "c-77"))
        record = fleet.wait_for_status("by-hand", "running")
        assert (record.session, record.backend, record.workspace) == ("by hand", "demo", "/usr")
        found = wait_until(lambda: fleet.records()["by-hand"].conversation, "its conversation")
        assert found == "c-77"
        wait_until(lambda: kinds(fleet, "by-hand") == ["unregistered", "identified"], "what was told")
        assert "c-77" in (fleet.records()["by-hand"].transcript or "")
        # It is ended by name only, and nobody starts it again.
        said = fleet.cli("stop", "--all").stdout
        assert "left alone" in said
        assert fleet.pane("by-hand") is not None
        fleet.cli("stop", "by-hand")
        assert "by hand" not in [pane.session for pane in fleet.tmux.look()]
        assert fleet.wait_for_status("by-hand", "stopped").ended is not None


def test_an_agent_in_one_window_of_many_is_adopted_alone(fleet: RunningFleet) -> None:
    by_hand(fleet, "new-session", "-d", "-s", "mine", "sleep 1000")
    pane = by_hand(fleet, "new-window", "-d", "-t", "=mine:", "-P", "-F", "#{pane_id}", demo_by_hand(fleet, "c-1"))
    record = fleet.wait_for_status("mine-demo", "running")
    assert (record.session, record.pane) == ("mine", pane)
    fleet.cli("stop", "mine-demo")
    wait_until(lambda: by_hand(fleet, "list-panes", "-s", "-t", "=mine:", "-F", "x") == "x", "only the other is left")


def test_what_a_person_told_us_to_forget_is_not_adopted_again(fleet: RunningFleet) -> None:
    by_hand(fleet, "new-session", "-d", "-s", "mine", demo_by_hand(fleet, "c-1"))
    fleet.wait_for_status("mine", "running")
    fleet.cli("forget", "mine")
    wait_until(lambda: "mine" not in fleet.records(), "it is forgotten")
    assert json.loads(fleet.cli("reconcile", "--once", "--json").stdout)["drifts"] == []
    assert kinds(fleet, "mine")[:1] == ["unregistered"]
    assert kinds(fleet, "mine").count("unregistered") == 1
    assert "mine" not in fleet.records()


@pytest.mark.long
@pytest.mark.parametrize(
    ("settings", "told"),
    [({"ignore": ["scratch*"]}, []), ({"found": False}, ["unregistered"])],
    ids=["ignored", "only told"],
)
def test_agents_that_are_not_to_be_adopted_are_left_alone(
    tmp_path: Path, settings: dict[str, Any], told: list[str]
) -> None:
    fleet = RunningFleet(tmp_path, {"builder": {}}, adoption=settings)
    try:
        fleet.up()
        fleet.wait_for_status("builder", "running")
        by_hand(fleet, "new-session", "-d", "-s", "scratch-1", demo_by_hand(fleet, "c-1"))
        wait_until_settled(fleet, "scratch-1")
        fleet.cli("reconcile", "--once")
        assert kinds(fleet, "scratch-1") == told
        assert set(fleet.records()) == {"builder"}
    finally:
        fleet.end()


def test_a_program_that_is_no_agent_is_nobodys_business(fleet: RunningFleet) -> None:
    by_hand(fleet, "new-session", "-d", "-s", "editor", "sleep 1000")
    wait_until_settled(fleet, "editor")
    assert json.loads(fleet.cli("reconcile", "--once", "--json").stdout)["drifts"] == []
    assert set(fleet.records()) == {"builder", "reviewer"}


# --- where an agent is, and what runs there ---


@BOTH
def test_a_renamed_session_is_told_and_recorded(fleet: RunningFleet, alone: bool) -> None:
    with maybe_without_broker(fleet, without=alone):
        by_hand(fleet, "rename-session", "-t", "=builder", "renamed")
        wait_until(lambda: fleet.records()["builder"].session == "renamed", "its new name")
        assert faults(fleet, "builder")[-1] == "moved"
        old = fleet.kill_session("builder")
        fleet.wait_for_new_session("builder", old)


def test_an_agent_that_left_its_shell_behind_is_told_and_its_return_too(fleet: RunningFleet) -> None:
    by_hand(fleet, "new-session", "-d", "-s", "mine", "bash", "--norc")
    by_hand(fleet, "send-keys", "-t", "=mine:", demo_by_hand(fleet, "c-1"), "Enter")
    fleet.wait_for_status("mine", "running")
    by_hand(fleet, "send-keys", "-t", "=mine:", "C-c")
    wait_until(lambda: fleet.records()["mine"].drifts == ["wrong_backend"], "what runs there is not the agent", 60)
    by_hand(fleet, "send-keys", "-t", "=mine:", demo_by_hand(fleet, "c-1"), "Enter")
    wait_until(lambda: fleet.records()["mine"].drifts == [], "the agent is back", 90)
    assert [kind for kind in kinds(fleet, "mine") if kind in ("wrong_backend", "resolved")] == [
        "wrong_backend",
        "resolved",
    ]


# --- conversations on disk ---


def test_a_conversation_that_is_gone_is_flagged_and_nothing_is_removed(fleet: RunningFleet) -> None:
    transcript = Path(wait_until(lambda: fleet.records()["builder"].transcript, "its file"))
    fleet.cli("stop", "builder")
    fleet.wait_for_status("builder", "stopped")
    aside = transcript.rename(transcript.with_suffix(".aside"))
    fleet.cli("reconcile", "--once")
    wait_until(lambda: fleet.records()["builder"].drifts == ["stale_id"], "it is flagged")
    assert fleet.records()["builder"].conversation == transcript.stem
    fleet.cli("reconcile", "--once")
    assert kinds(fleet, "builder").count("stale_id") == 1
    aside.rename(transcript)
    fleet.cli("reconcile", "--once")
    wait_until(lambda: fleet.records()["builder"].drifts == [], "it is there again")


def test_two_agents_on_one_conversation_are_told(fleet: RunningFleet) -> None:
    conversation = wait_until(lambda: fleet.records()["builder"].conversation, "its conversation")
    by_hand(fleet, "new-session", "-d", "-s", "twin", demo_by_hand(fleet, conversation))
    wait_until(lambda: "duplicate_id" in fleet.records()["builder"].drifts, "the first is told")
    wait_until(lambda: "duplicate_id" in fleet.records()["twin"].drifts, "the second is told")
    fleet.cli("stop", "twin")
    wait_until(lambda: fleet.records()["builder"].drifts == [], "it is alone again", 90)


# --- the end of many, and no answer at all ---


@BOTH
def test_the_end_of_tmux_is_one_drift_for_each_agent_and_all_come_back(tmp_path: Path, alone: bool) -> None:
    names = {f"agent-{number}" for number in range(30)}
    agents = {name: {"backend": "sleeper"} for name in names}
    fleet = RunningFleet(tmp_path, agents, backends=SLEEPER, start={"at_once": 30, "gap_s": 0})
    try:
        fleet.up()
        wait_until(lambda: [r.status for r in fleet.records().values()] == ["running"] * 30, "thirty agents", 60)
        with maybe_without_broker(fleet, without=alone):
            by_hand(fleet, "kill-server")
            wait_until(lambda: len(drifts(fleet)) >= 30, "thirty drifts", 30)
            wait_until(lambda: {pane.agent for pane in fleet.tmux.look()} == names, "all are back", 60)
            wait_until(lambda: [r.status for r in fleet.records().values()] == ["running"] * 30, "and recorded", 60)
            told = drifts(fleet)
            assert sorted(drift["agent"] for drift in told) == sorted(names), told
            assert {drift["kind"] for drift in told} == {"missing"}
            assert {record.drifts == [] for record in fleet.records().values()} == {True}
    finally:
        fleet.end()


@BOTH
def test_a_tmux_that_does_not_answer_is_no_drift(fleet: RunningFleet, alone: bool) -> None:
    wait_until(lambda: fleet.records()["builder"].transcript, "its file is known, of which it would be told later")
    with maybe_without_broker(fleet, without=alone):
        before, complaints = len(drifts(fleet)), _complaints(fleet)
        with frozen_tmux(fleet.socket):
            if alone:  # nobody writes the logs while the supervisor rests
                began = time.monotonic()
                wait_until(lambda: time.monotonic() - began > 8, "longer than a question to tmux may take")
            else:
                wait_until(lambda: _complaints(fleet) > complaints, "the reconciler got no answer", 30)
            assert len(drifts(fleet)) == before
            assert {record.status for record in fleet.records().values()} == {"running"}
        old = fleet.kill_session("builder")
        fleet.wait_for_new_session("builder", old, within_s=40)
        assert faults(fleet, "builder")[-1] == "missing"


# --- after a reboot ---


@pytest.mark.long
@BOTH
def test_after_a_reboot_what_was_wanted_runs_again_where_it_was(tmp_path: Path, alone: bool) -> None:
    """Services and tmux are gone, the files are there."""
    agents = {"builder": {"prompt": "build"}, "reviewer": {"prompt": "review"}, "resting": {}}
    fleet = RunningFleet(tmp_path, agents)
    try:
        fleet.up()
        for agent in agents:
            fleet.wait_for_status(agent, "running")
        fleet.cli("stop", "resting")
        wait_until(lambda: all(fleet.records()[a].transcript for a in ("builder", "reviewer")), "their files")
        before = {agent: record.conversation for agent, record in fleet.records().items()}
        by_hand(fleet, "new-session", "-d", "-s", "mine", demo_by_hand(fleet, "c-1"))
        fleet.wait_for_status("mine", "running")
        _power_cut(fleet)
        if alone:  # from the first moment on
            declared = json.loads(fleet.path.read_text()) | {"broker": {"endpoints": ["mqtt://127.0.0.1:1"]}}
            fleet.path.write_text(json.dumps(declared))
        fleet.cli("up", code=3 if alone else 0)
        for agent in ("builder", "reviewer"):
            wait_until(lambda agent=agent: fleet.pane(agent), f"{agent} is back", 40)  # type: ignore[misc]
            record = fleet.wait_for_status(agent, "running")
            assert record.conversation == before[agent]
        fleet.wait_for_status("mine", "terminated")
        assert fleet.records()["resting"].status == "stopped"
        assert fleet.pane("resting") is None
        assert fleet.pane("mine") is None
        assert {spawn.status for spawn in fleet.history().values()} == {"terminated", "stopped"}
    finally:
        fleet.end()


def _complaints(fleet: RunningFleet) -> int:
    """How often the reconciler could not look."""
    return (fleet.fleet.home / "logs" / "reconciler.log").read_text().count("could not finish a turn")


def _power_cut(fleet: RunningFleet) -> None:
    pids = supervision.pids(fleet.fleet)
    for pid in (pids.pop("supervisor"), *pids.values()):
        os.kill(pid, signal.SIGKILL)
    end_server(fleet.socket)
    wait_until(lambda: not supervision.pids(fleet.fleet), "all are gone")
