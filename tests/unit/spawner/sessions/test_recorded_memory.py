"""What the spawner begins a new journal with, for each kind of record."""

from datetime import timedelta

import pytest

from services.spawner.sessions.memory import (
    Ended,
    Exited,
    GivenUp,
    LostWithServer,
    NeverStarted,
    Origin,
    Phase,
    Running,
)
from services.spawner.sessions.recorded_memory import from_record
from shared.contract.states import Desired, Status
from shared.system.tmux import Pane
from tests.fakes.records import START, make_pane, make_record

HERE, ANOTHER = make_pane(), make_pane(spawn="s2")


@pytest.mark.parametrize(
    ("status", "spawn", "pane", "phase"),
    [
        (Status.RUNNING, "s1", HERE, Running()),
        (Status.RUNNING, "s1", None, LostWithServer()),
        (Status.EXITED, "s1", HERE, Exited("s1")),
        (Status.EXITED, "s1", ANOTHER, Ended()),
        (Status.EXITED, "s1", None, Ended()),
        (Status.TERMINATED, "s1", None, Ended()),
        (Status.STOPPED, "s1", None, Ended()),
        (Status.GAVE_UP, "s1", None, GivenUp()),
        (Status.STOPPED, None, None, NeverStarted()),
    ],
)
def test_the_phase_follows_from_the_record_and_the_pane(
    status: Status, spawn: str | None, pane: Pane | None, phase: Phase
) -> None:
    known = from_record(make_record(status, spawn=spawn), pane, declared=True, starts_by_itself=True)
    assert known.phase == phase


@pytest.mark.parametrize(
    ("desired", "starts_by_itself", "wish"),
    [
        (Desired.STOPPED, True, Desired.STOPPED),
        (Desired.STOPPED, False, Desired.STOPPED),
        (Desired.RUNNING, True, None),  # the fleet file says so too, and may change
        (Desired.RUNNING, False, Desired.RUNNING),
    ],
)
def test_what_a_person_wished_is_kept(desired: Desired, starts_by_itself: bool, wish: Desired | None) -> None:
    record = make_record(desired=desired)
    assert from_record(record, HERE, declared=True, starts_by_itself=starts_by_itself).wish is wish


def test_the_session_and_its_conversation_are_kept() -> None:
    record = make_record(conversation="c1", pid=9, pane="%4", started=START)
    session = from_record(record, HERE, declared=True, starts_by_itself=True).session
    assert (session.spawn, session.conversation, session.pid, session.pane) == ("s1", "c1", 9, "%4")
    assert (session.backend, session.workspace, session.started) == ("demo", "/work", START.timestamp())
    assert session.origin is Origin.STARTED


def test_only_a_death_counts_in_the_restart_limits() -> None:
    ended = START + timedelta(hours=1)
    died = make_record(Status.EXITED, ended=ended)
    stopped = make_record(Status.STOPPED, ended=ended)
    assert from_record(died, None, declared=True, starts_by_itself=True).deaths == (ended.timestamp(),)
    assert from_record(stopped, None, declared=True, starts_by_itself=True).deaths == ()


@pytest.mark.parametrize("declared", [True, False])
def test_an_adopted_agent_is_one_that_the_fleet_file_does_not_have(declared: bool) -> None:
    record = make_record(reason="adopted")
    known = from_record(record, HERE, declared=declared, starts_by_itself=declared)
    assert known.is_adopted is not declared
