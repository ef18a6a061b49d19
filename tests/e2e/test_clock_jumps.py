"""The machine's clock is set back and forward under a whole fleet: nothing is judged by time that did not pass."""

import json
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.watching import is_doing, say
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet, Watcher
from tests.fixtures.wall_clock import VARIABLES, WallClock, wall_clock

HOUR_S = 3600
BURST_S = 4.0
AGENTS: dict[str, dict[str, Any]] = {
    "mortal": {"resume": False, "restart": {"burst": 1, "burst_s": BURST_S, "first_wait_s": 0.1}},
    "idler": {"watch": {"stall": {"after_s": 600, "then": "nudge"}}},
    "sleeper": {"wake": {"every_s": HOUR_S}},
    "limited": {"account": "another", "watch": {"limits": {"slack_s": 1}}},
    "calm": {},
}
TURNS = 10
"""So often each service has decided since, which is enough for whatever it would do at once."""


@pytest.fixture
def clock(tmp_path: Path) -> Iterator[WallClock]:
    with wall_clock(tmp_path) as made:
        yield made


@pytest.fixture
def fleet(clock: WallClock, tmp_path: Path) -> Iterator[RunningFleet]:
    settings = {"start": {"at_once": 20, "gap_s": 0.01}, "polls": {"connected_s": 1}}
    running = RunningFleet(tmp_path, AGENTS, defaults={"env_from": [*VARIABLES]}, **settings)
    try:
        running.up()
        for agent in AGENTS:
            is_doing(running, agent, "waiting")
        yield running
    finally:
        running.end()


def test_agents_are_judged_by_the_time_that_really_passed(fleet: RunningFleet, clock: WallClock) -> None:
    watcher = fleet.watch()
    # Two deaths, each alone in its burst window by the time that passed.
    for _ in range(2):
        dies_and_returns(fleet)
    ended = set(fleet.history())
    say(fleet, "limited", f"limit {2 * HOUR_S}")
    is_doing(fleet, "limited", "limited")

    clock.set_by(-2 * HOUR_S)
    is_said(fleet, watcher, "was set back by 2 h")
    dies_and_returns(fleet)  # what the clock shows now is before the earlier deaths
    assert fleet.cli("send", "calm", "a word").returncode == 0
    nothing_was_done(fleet)

    clock.set_by(30 * HOUR_S)
    is_said(fleet, watcher, "was set forward by 30 h")
    wait_until(lambda: limits(fleet)[-1:] == ["limit_lifted"], "a reset is by the clock on the wall")
    nothing_was_done(fleet)
    assert ended <= set(fleet.history()), "sessions that ended just now are remembered"
    assert fleet.cli("send", "calm", "another word").returncode == 0
    dies_and_returns(fleet)
    assert "gave_up" not in [each["kind"] for each in fleet.told("spawner")]
    assert {doc["data"]["status"] for doc in services(watcher)} == {"online", "degraded"}
    assert watcher.drifts("calm") == []


def dies_and_returns(fleet: RunningFleet) -> None:
    spawn = fleet.spawn_of("mortal")
    assert spawn is not None
    fleet.kill_session("mortal")
    fleet.wait_for_new_session("mortal", spawn)
    returned = time.monotonic()
    is_doing(fleet, "mortal", "waiting")
    wait_until(lambda: time.monotonic() > returned + BURST_S, "it has lived longer than a burst lasts")


def is_said(fleet: RunningFleet, watcher: Watcher, said: str) -> None:
    """By one service, and once by `muster status`."""

    def saying() -> set[str]:
        return {doc["data"]["service"] for doc in services(watcher) if said in doc["data"]["reason"]}

    def has_decided(service: str, since: int) -> bool:
        return any(turns(doc) >= since + TURNS for doc in services(watcher) if doc["data"]["service"] == service)

    before = {doc["data"]["service"]: turns(doc) for doc in services(watcher)}
    assert wait_until(saying, said) == {"spawner"}
    assert fleet.cli("status", code=None).stdout.count(said) == 1
    for service in ("monitor", "spawner"):
        wait_until(partial(has_decided, service, before[service]), f"the {service} has decided again and again")
    assert saying() == {"spawner"}


def nothing_was_done(fleet: RunningFleet) -> None:
    told = [each["kind"] for each in fleet.told()]
    assert {"stalled", "woken", "unresponsive", "fatal"}.isdisjoint(told)
    assert fleet.records()["idler"].activity == "waiting"


def limits(fleet: RunningFleet) -> list[str]:
    return [each["kind"] for each in fleet.told() if each["kind"].startswith("limit_")]


def services(watcher: Watcher) -> list[dict[str, Any]]:
    """Every state of a service since the watcher came."""
    found = [each for each in watcher.read() if "/service/" in each["topic"] and each.get("payload")]
    return [json.loads(each["payload"]) for each in found]


def turns(document: dict[str, Any]) -> int:
    return int(document["data"]["health"].get("steps", 0))
