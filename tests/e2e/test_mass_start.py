"""Many starts at once, by a spawner that is slow: nobody takes a session that is being started for a stranger's."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.reconciler.service import NEW_SESSION_S, RECORD_FOLLOWS_WITHIN
from tests.fixtures.broker import wait_until
from tests.fixtures.by_hand import run_tmux
from tests.fixtures.fleet import RunningFleet

SLEEPER = {"sleeper": {"binary": "sleep", "argv": ["{binary}", "100000"], "deliver": "arg"}}
AGENTS = {f"agent-{number:02}": {"backend": "sleeper"} for number in range(40)}
WOULD_BE_TOLD_AFTER_S = NEW_SESSION_S + RECORD_FOLLOWS_WITHIN.total_seconds() + 2.0


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[RunningFleet]:
    fleet = RunningFleet(tmp_path, AGENTS, backends=SLEEPER, start={"at_once": len(AGENTS), "gap_s": 0})
    try:
        fleet.up()
        wait_until(lambda: len(running(fleet)) == len(AGENTS), "all agents run", 60.0)
        yield fleet
    finally:
        fleet.end()


def running(fleet: RunningFleet) -> set[str]:
    return {str(record.spawn) for record in fleet.records().values() if record.status == "running"}


def test_a_start_is_never_told_as_unregistered_however_slow_the_spawner_is(fleet: RunningFleet) -> None:
    before = running(fleet)
    run_tmux(fleet.socket, "kill-server")
    wait_until(lambda: len(fleet.tmux.look()) >= 3, "the first sessions of a turn", 30.0)
    spawner = fleet.signal("spawner", signal.SIGSTOP)
    try:
        started = fleet.tmux.look()
        oldest = min(pane.created for pane in started)
        wait_until(lambda: time.time() > oldest + WOULD_BE_TOLD_AFTER_S, "a start that takes long", 30.0)
    finally:
        assert fleet.signal("spawner", signal.SIGCONT) == spawner, "it was not replaced meanwhile"
    wait_until(lambda: len(running(fleet) - before) == len(AGENTS), "all agents run again", 60.0)
    drifts = [told["kind"] for told in fleet.told("reconciler")]
    assert drifts.count("missing") == len(AGENTS)
    assert "unregistered" not in drifts
