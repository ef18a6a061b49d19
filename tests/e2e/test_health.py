"""How background work is, as a copy of its conversation tells it: real tmux, real broker, every service as a process.

The agents of one fleet are shared out among the tests, each of which has its own.
"""

import json
import stat
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import psutil
import pytest

from services.monitor.health.query_runner import AT_ONCE
from shared.messaging.journal import Journal
from tests.e2e.watching import is_doing, say, without_monitor
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet

OUTPUT = "the whole result, " * 50
HANGS = {"prompt": "hang", "kind": "task"}
AGENTS: dict[str, dict[str, Any]] = {
    "steady": {"prompt": "build it", "watch": {"health": {"every_s": 1.5}}},
    "keeper": {"prompt": "finish the report", "watch": {"health": {"every_s": 1.5}}},
    "job": {"prompt": f"finish {OUTPUT}", "kind": "task", "watch": {"health": {"every_s": 1.5}}},
    "hanger": {**HANGS, "watch": {"health": {"every_s": 1.5, "timeout_s": 1.5}}},
    "doomed": {**HANGS, "watch": {"health": {"every_s": 1.5, "timeout_s": 600}}},
    "broken": {"prompt": "build it", "backend": "broken", "watch": {"health": {"every_s": 1.5}}},
    "unasked": {"prompt": "finish it", "kind": "task"},
    "asked": {"prompt": "promise 2036-01-31T09:30:00Z"},
    "slow": {"prompt": "hang"},
    "patient": {"prompt": "hang"},
    "mute": {"backend": "mute"},
    "never": {"enabled": False},
}
BACKENDS = {
    "mute": {"like": "demo", "ask": None},
    "broken": {"like": "demo", "ask": {"argv": ["{python}", "-c", "import sys; sys.exit('no such model')"]}},
}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningFleet]:
    settings = {"backends": BACKENDS, "start": {"at_once": 20, "gap_s": 0.01}}
    running = RunningFleet(tmp_path_factory.mktemp("fleet"), AGENTS, **settings)
    try:
        running.up()
        yield running
    finally:
        running.end()


def works(fleet: RunningFleet, agent: str) -> list[dict[str, Any]]:
    """What was told of its work; the journal has it from the beginning."""
    found = fleet.told()
    wanted = ("progress", "finished", "unresponsive")
    return [each for each in found if each["agent"] == agent and each["kind"] in wanted]


def kinds(fleet: RunningFleet, agent: str) -> list[str]:
    return [each["kind"] for each in works(fleet, agent)]


def health(fleet: RunningFleet, agent: str) -> dict[str, Any]:
    found: dict[str, Any] | None = fleet.ask("explain", agent=agent)["result"].get("health")
    return found or {"asked": ""}


def wait_for_checks(fleet: RunningFleet, agent: str, checks: int) -> dict[str, Any]:
    """Until it was asked so often; what the last one said."""
    seen = [health(fleet, agent)]

    def one_more() -> bool:
        last = health(fleet, agent)
        seen.extend([last] if last["asked"] > seen[-1]["asked"] else [])
        return len(seen) > checks

    wait_until(one_more, f"{checks} checks of {agent}")
    return seen[-1]


def copies(fleet: RunningFleet, agent: str) -> list[psutil.Process]:
    """The programs that are being asked about an agent."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            if "--answer" in words and agent in words and process.environ().get("MUSTER_FLEET") == str(fleet.path):
                found.append(process)
    return found


# --- on an interval ---


def test_progress_is_told_once_as_long_as_it_is_the_same(fleet: RunningFleet) -> None:
    watcher = fleet.watch()
    wait_until(lambda: kinds(fleet, "steady") == ["progress"], "progress")
    wait_for_checks(fleet, "steady", 2)
    assert kinds(fleet, "steady") == ["progress"]
    say(fleet, "steady", "test it")
    wait_until(lambda: len(kinds(fleet, "steady")) == 2, "more progress")
    say(fleet, "steady", "promise 2036-01-31T09:30:00Z")
    wait_until(lambda: len(kinds(fleet, "steady")) == 3, "that it waits")
    said = [(each["kind"], each["state"], each["summary"]) for each in works(fleet, "steady")]
    assert said[:2] == [("progress", "working", "told last: build it"), ("progress", "working", "told last: test it")]
    assert said[2][1] == "waiting"
    on_the_bus = wait_until(lambda: watcher.kinds("agent/steady/activity"), "it on the bus")
    assert "progress" in on_the_bus
    assert fleet.records()["steady"].status == "running"


def test_a_finished_task_is_stopped_and_its_whole_result_kept(fleet: RunningFleet) -> None:
    record = fleet.wait_for_status("job", "stopped")
    assert "its work is done" in record.reason
    file = fleet.fleet.home / "jobs" / f"job-{record.spawn}.txt"
    assert file.read_text() == OUTPUT.strip()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    (finished,) = works(fleet, "job")
    assert (finished["kind"], finished["output"], finished["file"]) == ("finished", OUTPUT[:500], str(file))


def test_a_finished_agent_that_is_no_task_is_told_once_and_goes_on(fleet: RunningFleet) -> None:
    wait_until(lambda: kinds(fleet, "keeper") == ["finished"], "that it has finished")
    wait_for_checks(fleet, "keeper", 2)
    assert kinds(fleet, "keeper") == ["finished"]
    assert fleet.records()["keeper"].status == "running"


def test_a_task_that_does_not_answer_is_told_and_stopped(fleet: RunningFleet) -> None:
    record = fleet.wait_for_status("hanger", "stopped")
    assert "does not answer" in record.reason
    (unresponsive,) = works(fleet, "hanger")
    assert (unresponsive["kind"], unresponsive["then"], unresponsive["silent_s"]) == ("unresponsive", "stop", 1.5)
    wait_until(lambda: not copies(fleet, "hanger"), "that nobody asks it any more")


def test_a_question_that_fails_says_nothing_of_the_agent(fleet: RunningFleet) -> None:
    last = wait_for_checks(fleet, "broken", 2)
    assert (last["trouble"], kinds(fleet, "broken")) == ("no such model", [])
    assert "without an answer: no such model" in fleet.cli("explain", "broken").stdout
    refused = fleet.cli("peek", "broken", code=1).stderr
    assert "broken can't be asked: no such model" in refused


def test_a_check_ends_with_its_session(fleet: RunningFleet) -> None:
    (asked,) = wait_until(lambda: copies(fleet, "doomed"), "that it is asked")
    fleet.cli("stop", "doomed")
    wait_until(lambda: not asked.is_running() or asked.status() == "zombie", "the end of the question")
    assert kinds(fleet, "doomed") == []
    assert fleet.ask("explain", agent="doomed")["ok"] is False
    journal = Journal(fleet.fleet.journal, "monitor")
    try:
        assert not journal.memory().get("health:doomed")
    finally:
        journal.close()


def test_an_agent_without_an_interval_is_not_asked(fleet: RunningFleet) -> None:
    wait_until(lambda: kinds(fleet, "steady"), "checks of others")
    wait_for_checks(fleet, "steady", 2)
    assert (kinds(fleet, "unasked"), health(fleet, "unasked")) == ([], {"asked": ""})
    assert fleet.records()["unasked"].status == "running"


# --- by hand ---


def test_a_peek_leaves_no_trace_in_the_agent(fleet: RunningFleet) -> None:
    is_doing(fleet, "asked", "waiting")
    before = fleet.screen("asked").count("heard")
    found = json.loads(fleet.cli("peek", "asked", "--json").stdout)
    assert (found["state"], found["output"], found["model"]) == ("waiting", "", None)
    assert found["summary"].startswith("told last: promise")
    said = fleet.cli("peek", "asked").stdout
    assert said.startswith("asked is waiting")
    assert "told last: promise 2036" in said
    own = fleet.cli("peek", "asked", "--ask", "What were you told?").stdout
    assert "The last I was told is: promise 2036-01-31T09:30:00Z" in own
    assert fleet.screen("asked").count("heard") == before
    assert not list((fleet.fleet.home / "peeks").glob("*"))[AT_ONCE:], "what is there is of those that hang"


def test_a_peek_works_without_a_broker(fleet: RunningFleet) -> None:
    is_doing(fleet, "asked", "waiting")
    with fleet.broker_down():
        found = json.loads(fleet.cli("peek", "asked", "--json").stdout)
        assert found["state"] == "waiting"


def test_a_peek_at_an_agent_that_can_t_be_asked_is_refused_with_the_reason(fleet: RunningFleet) -> None:
    is_doing(fleet, "mute", "waiting")
    for agent, sentence in {
        "mute": "mute runs on mute, and a conversation of that can't be asked",
        "never": "never was not started yet",
        "nobody": "there is no agent 'nobody'",
    }.items():
        assert sentence in fleet.cli("peek", agent, code=1).stderr
    assert fleet.ask("peek", agent="nobody")["code"] == "unknown_agent"


def test_a_peek_without_an_answer_in_time_is_refused(fleet: RunningFleet) -> None:
    is_doing(fleet, "slow", "waiting")
    assert "slow did not answer within 1 s" in fleet.cli("peek", "slow", "--timeout", "1", code=1).stderr
    under_way = fleet.cli("peek", "slow", "--timeout", "60", "--wait", "1", code=75)
    assert "a copy of slow's conversation is asked, for up to 60 s" in under_way.stderr
    (asked,) = wait_until(lambda: copies(fleet, "slow"), "that it is asked")
    fleet.cli("stop", "slow")
    wait_until(lambda: not asked.is_running() or asked.status() == "zombie", "the end of the question")


def test_a_peek_survives_the_monitor_but_not_the_session(fleet: RunningFleet) -> None:
    is_doing(fleet, "patient", "waiting")
    client = fleet.client("operator")
    client.subscribe("muster/box/reply/patient-peek")
    fleet.command("peek", json.dumps({"id": "patient-peek", "agent": "patient", "timeout_s": 600}))
    (first,) = wait_until(lambda: copies(fleet, "patient"), "that it is asked")
    with without_monitor(fleet):
        wait_until(lambda: not first.is_running() or first.status() == "zombie", "that nobody is left to ask")
    (again,) = wait_until(lambda: copies(fleet, "patient"), "that it is asked again")
    assert again.pid != first.pid
    fleet.cli("stop", "patient")
    replies = wait_until(
        lambda: [each for each in map(json.loads, client.payloads()) if each["final"]], "that it is refused"
    )
    assert "its session ended before it answered: patient does not run" in replies[0]["said"]
    wait_until(lambda: not copies(fleet, "patient"), "the end of the question")
