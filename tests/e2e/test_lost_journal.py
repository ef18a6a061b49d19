"""A journal that is lost or damaged: the registry still says who was stopped and which conversation is whose."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.cli import supervision
from shared.errors import MusterError
from shared.messaging.journal import Journal
from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet

AGENTS = {"a": {"prompt": "hello"}, "b": {"prompt": "hello"}}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[RunningFleet]:
    fleet = RunningFleet(tmp_path, AGENTS)
    try:
        fleet.up()
        for agent in AGENTS:
            fleet.wait_until_ready(agent)
        yield fleet
    finally:
        fleet.end()


def epoch(fleet: RunningFleet) -> str:
    with contextlib.closing(Journal(fleet.fleet.journal, "cli")) as journal:
        return journal.epoch


def sources(fleet: RunningFleet) -> set[str]:
    with contextlib.suppress(MusterError), contextlib.closing(Journal(fleet.fleet.journal, "cli")) as journal:
        return set(journal.sources())
    return set()


def remove_journal(fleet: RunningFleet) -> None:
    for path in fleet.fleet.home.glob("journal.db*"):
        path.unlink()


def wait_for_all_services(fleet: RunningFleet) -> None:
    """Every service has opened the new journal."""
    wait_until(lambda: set(fleet.fleet.services) <= sources(fleet), "all services in the new journal", 40.0)


def test_a_stopped_agent_stays_stopped_and_others_keep_their_conversations(fleet: RunningFleet) -> None:
    fleet.cli("stop", "a")
    conversation = fleet.wait_for_status("b", "running").conversation
    fleet.cli("down", "--agents")
    remove_journal(fleet)
    fleet.up()
    assert fleet.wait_for_status("b", "running").conversation == conversation
    wait_for_all_services(fleet)
    assert fleet.pane("a") is None
    assert fleet.records()["a"].desired == "stopped"


def test_a_journal_that_is_removed_below_running_services_changes_no_agent(fleet: RunningFleet) -> None:
    fleet.cli("stop", "a")
    spawn = fleet.spawn_of("b")
    pids = supervision.pids(fleet.fleet)
    remove_journal(fleet)
    wait_for_all_services(fleet)
    wait_until(
        lambda: all(supervision.pids(fleet.fleet).get(each, pids[each]) != pids[each] for each in fleet.fleet.services),
        "every service was started anew",
        40.0,
    )
    assert fleet.cli("stop", "b").stdout == "b was stopped\n"
    assert fleet.pane("a") is None
    assert [each["spawn"] for each in fleet.told("spawner")] == [spawn]


def test_nothing_is_started_while_a_broken_registry_hides_who_was_stopped(fleet: RunningFleet) -> None:
    fleet.cli("stop", "a")
    fleet.cli("down", "--agents")
    remove_journal(fleet)
    good = fleet.fleet.registry.read_text()
    fleet.fleet.registry.write_text("agents: {a: [\n")
    fleet.cli("up", code=None)
    wait_until(lambda: "nothing is started" in fleet.cli("status", code=None).stdout, "the spawner says why", 30.0)
    assert fleet.pane("a") is None
    assert fleet.pane("b") is None
    fleet.fleet.registry.write_text(good)
    fleet.wait_for_status("b", "running")
    assert fleet.pane("a") is None


def test_a_journal_that_is_moved_away_below_running_services_is_begun_anew(fleet: RunningFleet) -> None:
    fleet.cli("stop", "a")
    spawn, before, journal = fleet.spawn_of("b"), epoch(fleet), fleet.fleet.journal
    journal.rename(journal.with_name("moved-away"))
    wait_for_all_services(fleet)
    assert epoch(fleet) != before
    assert list(fleet.fleet.home.glob("journal.db.damaged-*"))
    assert fleet.cli("spawn", "b").stdout == "b runs already\n"  # so the spawner has begun on it
    assert fleet.pane("a") is None
    assert fleet.spawn_of("b") == spawn


def test_a_damaged_journal_heals_at_the_next_start(fleet: RunningFleet) -> None:
    fleet.cli("stop", "a")
    fleet.cli("down")
    spawn = fleet.spawn_of("b")
    fleet.fleet.journal.write_bytes(b"x" * 8192)
    fleet.up()
    wait_for_all_services(fleet)
    assert fleet.cli("spawn", "b").stdout == "b runs already\n"  # so the spawner has begun on it
    assert fleet.pane("a") is None
    assert fleet.spawn_of("b") == spawn
