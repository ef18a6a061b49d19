"""Usage limits in a whole fleet: held, shared by an account, and gone on with once, whatever dies in between.

The demo agent has a budget of its own that is spent for as many seconds as it is told.
"""

import json
import os
import signal
import time
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from services.cli import supervision
from shared.system.tmux.server import end_server
from tests.e2e.watching import events, is_doing, say, story
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet, Watcher

LIMITS = {"slack_s": 1, "gap_s": 2, "patience_s": 60, "tries": 2}
DEFAULTS = {"account": "acme", "watch": {"limits": LIMITS}}
START = {"at_once": 20, "gap_s": 0.01}
BEGUN = ("spawned", "restarted")
AGAIN_S = 60.0
"""On a machine of any load, with services that have died."""


def declared(agents: Mapping[str, Any]) -> dict[str, Any]:
    return {"agents": agents, "defaults": DEFAULTS, "start": START}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[RunningFleet]:
    agents = {"plain": {}, "menu": {}, "auto": {}, "idle": {"prompt": "work 1"}, "late": {"enabled": False}}
    running = RunningFleet(tmp_path, **declared(agents))
    try:
        running.up()
        for agent in ("plain", "menu", "auto", "idle"):
            is_doing(running, agent, "waiting")
        yield running
    finally:
        running.end()


def heard(fleet: RunningFleet, agent: str) -> list[tuple[float, str]]:
    """What an agent was told, and when, by its own record."""
    conversation = fleet.records()[agent].conversation
    file = fleet.fleet.home / "demo" / f"{conversation}.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    return [(line["time"], line["text"]) for line in lines if line["who"] == "user"]


def resets(fleet: RunningFleet, agent: str) -> float:
    """When the agent's limit really lifts."""

    def found() -> float | None:
        conversation = fleet.records()[agent].conversation
        file = fleet.fleet.home / "demo" / f"{conversation}.jsonl"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return next((line["resets"] for line in reversed(lines) if line["who"] == "limit"), None)

    return wait_until(found, f"{agent} is limited")


def told(fleet: RunningFleet, agent: str) -> list[dict[str, Any]]:
    """What the monitor told of an agent's limits, from the beginning, by the journal."""
    found = fleet.told()
    return [each for each in found if each["agent"] == agent and each["kind"].startswith("limit_")]


def lifted(fleet: RunningFleet, agent: str) -> dict[str, Any]:
    def last() -> dict[str, Any] | None:
        return next((each for each in told(fleet, agent) if each["kind"] == "limit_lifted"), None)

    return wait_until(last, f"the limit of {agent} is over", AGAIN_S)


def went_on_once(fleet: RunningFleet, agent: str, prompt: str, how: str) -> float:
    """Assert it, and give when it was."""
    over = lifted(fleet, agent)
    assert over["how"] == how, over
    assert [each["kind"] for each in told(fleet, agent)] == ["limit_hit", "limit_lifted"]
    after = [(at, text) for at, text in heard(fleet, agent) if not text.startswith(("limit", "work"))]
    assert [text for _, text in after] == [prompt]
    assert after[0][0] >= resets(fleet, agent)
    return after[0][0]


def starts(watcher: Watcher) -> list[tuple[str, float, int | None]]:
    """The agents that were started, when, and which attempt it was, as a subscriber saw it."""
    begun = {doc["seq"]: doc for doc in watcher.documents("/lifecycle") if doc["data"]["kind"] in BEGUN}
    return [
        (doc["data"]["agent"], datetime.fromisoformat(doc["time"]).timestamp(), doc["data"].get("attempt"))
        for doc in begun.values()
    ]


def test_an_account_is_held_and_its_agents_go_on_once_each_in_turn(fleet: RunningFleet) -> None:
    watcher = fleet.watch()
    for agent, words in (("plain", "limit 20"), ("menu", "limit 20 menu"), ("auto", "limit 20 auto")):
        say(fleet, agent, words)
    for agent in ("plain", "menu", "auto"):
        is_doing(fleet, agent, "limited")
        (hit,) = wait_until(lambda agent=agent: told(fleet, agent), f"{agent} is told")  # type: ignore[misc]
        assert datetime.fromisoformat(hit["resets_at"]).timestamp() == pytest.approx(resets(fleet, agent), abs=1.5)
        assert (hit["account"], hit["continues"]) == ("acme", agent == "auto")
        assert set(hit["parked"]) == {"plain", "menu", "auto", "idle", "late"} - {agent}
    wait_until(lambda: fleet.records()["plain"].limit == "usage", "the record tells it")

    waits = fleet.ask("spawn", agent="late", final=False)
    assert "late waits: the usage limit of the account 'acme' is reached until" in waits["said"]
    before = fleet.kill_session("idle")
    assert "parked" in fleet.cli("status").stdout

    times = {
        "plain": went_on_once(fleet, "plain", "continue", "resumed"),
        "menu": went_on_once(fleet, "menu", "continue", "resumed"),
    }
    went_on_once(fleet, "auto", "go on", "by_itself")
    assert abs(times["plain"] - times["menu"]) >= LIMITS["gap_s"] - 0.5
    assert "bought" not in fleet.screen("menu")

    last = max(resets(fleet, agent) for agent in ("plain", "menu", "auto"))
    for agent in ("late", "idle"):
        started = fleet.wait_for_status(agent, "running", AGAIN_S).started
        assert started is not None
    fleet.wait_for_new_session("idle", before)

    def started_after(moment: float) -> set[str]:
        return {agent for agent, at, _ in starts(watcher) if at >= moment}

    wait_until(lambda: started_after(last - 1) >= {"late", "idle"}, f"both starts at the subscriber: {starts(watcher)}")
    assert started_after(last - 1) == {"late", "idle"}
    assert [attempt for agent, _, attempt in starts(watcher) if agent == "idle"] == [0], "it was not blamed for ending"
    wait_until(lambda: fleet.records()["plain"].limit is None, "the record tells that it is over")


@pytest.mark.long
@pytest.mark.parametrize("dies", ["monitor", "spawner", "broker"])
def test_a_service_that_dies_in_between_changes_nothing(fleet: RunningFleet, dies: str) -> None:
    """Killed while the limit holds, and again while the agents are brought to go on."""
    for agent, words in (("plain", "limit 10"), ("menu", "limit 10 menu")):
        say(fleet, agent, words)
    for agent in ("plain", "menu"):
        wait_until(lambda agent=agent: told(fleet, agent), f"{agent} is told")  # type: ignore[misc]
    _kill(fleet, dies)
    wait_until(lambda: "continue" in [text for a in ("plain", "menu") for _, text in heard(fleet, a)], "one", AGAIN_S)
    _kill(fleet, dies)
    for agent in ("plain", "menu"):
        went_on_once(fleet, agent, "continue", "resumed")


def _kill(fleet: RunningFleet, program: str) -> None:
    pid = fleet.signal(program, signal.SIGKILL)
    wait_until(lambda: supervision.pids(fleet.fleet).get(program) not in (None, pid), f"{program} is back", AGAIN_S)


@pytest.mark.long
def test_after_a_reboot_the_limit_still_holds_and_the_agent_goes_on_once(tmp_path: Path) -> None:
    fleet = RunningFleet(tmp_path, **declared({"plain": {"prompt": "work 1"}}))
    try:
        fleet.up()
        is_doing(fleet, "plain", "waiting")
        wait_until(lambda: fleet.records()["plain"].transcript, "its file")
        before = fleet.records()["plain"]
        say(fleet, "plain", "limit 8")
        wait_until(lambda: told(fleet, "plain"), "it is told")
        over = resets(fleet, "plain")
        power_cut(fleet)
        fleet.cli("up")
        went_on_once(fleet, "plain", "continue", "resumed")
        after = fleet.records()["plain"]
        assert (after.conversation, after.spawn != before.spawn) == (before.conversation, True)
        assert after.started is not None
        assert after.started.timestamp() >= over
    finally:
        fleet.end()


def power_cut(fleet: RunningFleet) -> None:
    pids = supervision.pids(fleet.fleet)
    os.kill(pids[supervision.SUPERVISOR], signal.SIGSTOP)
    for pid in pids.values():
        os.kill(pid, signal.SIGKILL)
    fleet.tmux.close()
    end_server(fleet.socket)
    wait_until(lambda: not supervision.pids(fleet.fleet), "all is gone")


def test_a_banner_that_is_only_quoted_does_nothing(fleet: RunningFleet) -> None:
    watcher: Watcher = fleet.watch()
    say(fleet, "plain", "say ! usage limit reached · resets 09:30:00 (UTC)")
    say(fleet, "plain", "work 2")
    wait_until(lambda: "working" in story(watcher, "plain"), "it works")
    is_doing(fleet, "plain", "waiting")
    assert not [each for each in events(watcher, "plain") if each["kind"].startswith("limit")]


def test_a_person_who_goes_on_first_is_not_interrupted(fleet: RunningFleet) -> None:
    say(fleet, "plain", "limit 5")
    wait_until(lambda: told(fleet, "plain"), "it is told")
    over = resets(fleet, "plain")
    wait_until(lambda: time.time() > over, "it lifts")
    say(fleet, "plain", "work 9")
    assert lifted(fleet, "plain")["how"] in ("by_somebody", "resumed")
    texts = [text for _, text in heard(fleet, "plain")]
    assert texts.count("work 9") == 1
    assert texts.count("continue") <= 1
    assert len([each for each in told(fleet, "plain") if each["kind"] == "limit_lifted"]) == 1


def test_with_resume_off_nothing_is_typed_and_people_are_told(tmp_path: Path) -> None:
    agents = {"left": {"watch": {"limits": {"resume": False, "slack_s": 0}}}}
    fleet = RunningFleet(tmp_path, agents)
    try:
        fleet.up()
        is_doing(fleet, "left", "waiting")
        say(fleet, "left", "limit 3")
        assert lifted(fleet, "left")["how"] == "left"
        assert [text for _, text in heard(fleet, "left")] == ["limit 3"]
    finally:
        fleet.end()
