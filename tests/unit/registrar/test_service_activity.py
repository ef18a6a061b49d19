"""Activity: published at once, written to the file once a second at most."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from services.registrar.hand_edits import merge
from services.registrar.service import ACTIVITY_WRITE_INTERVAL, VERSIONS_PER_AGENT
from shared.contract.events.activity import StatusChanged
from shared.contract.states import Activity, AgentState, Desired
from shared.runtime.turn import Turn
from tests.unit.registrar.test_hand_edits import record
from tests.unit.registrar.test_service import NOW, RunningRegistrar, exited, spawned

WORKING, WAITING = Activity.WORKING, Activity.WAITING
SOON = timedelta(seconds=0.2)


def does(status: Activity, since: datetime = NOW, agent: str = "builder", spawn: str = "s1") -> StatusChanged:
    return StatusChanged(agent=agent, spawn=spawn, status=status, since=since, reason="r", decided_by="hooks")


@pytest.fixture
def registrar(tmp_path: Path) -> Iterator[RunningRegistrar]:
    """An agent has just begun to work, and that was written."""
    registrar = RunningRegistrar(tmp_path)
    registrar.step(spawned())
    registrar.now += ACTIVITY_WRITE_INTERVAL
    registrar.step(does(WORKING))
    assert written(registrar) is WORKING
    yield registrar
    registrar.close()


def written(registrar: RunningRegistrar, agent: str = "builder") -> Activity | None:
    return registrar.file().records()[agent].activity


def shown(taken: Turn) -> list[Activity | None]:
    return [each.activity for each in taken.states if isinstance(each, AgentState)]


def test_an_activity_is_published_at_once_and_written_within_a_second(registrar: RunningRegistrar) -> None:
    registrar.now += SOON
    taken = registrar.step(does(WAITING))
    assert shown(taken) == [WAITING]
    assert written(registrar) is WORKING
    due = NOW + 2 * ACTIVITY_WRITE_INTERVAL
    assert taken.look_again == due
    registrar.now = due
    assert shown(registrar.step()) == []
    assert written(registrar) is WAITING


def test_any_other_change_is_written_at_once_with_the_activity(registrar: RunningRegistrar) -> None:
    registrar.now += SOON
    registrar.step(does(WAITING))
    assert written(registrar) is WORKING
    registrar.step(spawned("tester", "s2"))
    assert written(registrar) is WAITING
    assert "tester" in registrar.file().records()


def test_an_end_is_written_at_once(registrar: RunningRegistrar) -> None:
    registrar.now += SOON
    registrar.step(exited(status=3))
    assert written(registrar) is Activity.FAILED


def test_a_clock_that_is_set_back_does_not_delay_a_write(registrar: RunningRegistrar) -> None:
    registrar.turns.jump(-3600)
    registrar.now += ACTIVITY_WRITE_INTERVAL
    registrar.step(does(WAITING))
    assert written(registrar) is WAITING


def test_a_new_registrar_writes_what_the_last_one_had_not(registrar: RunningRegistrar) -> None:
    registrar.now += SOON
    registrar.step(does(WAITING))
    registrar.restart()
    taken = registrar.step()
    assert written(registrar) is WAITING
    assert taken.trouble == ""


def test_an_edit_is_taken_up_while_something_waits_to_be_written(registrar: RunningRegistrar) -> None:
    registrar.now += SOON
    registrar.step(does(WAITING))
    registrar.edit("desired: running", "desired: stopped")
    taken = registrar.step()
    assert [command.verb for command in taken.outgoing] == ["stop"]
    assert taken.trouble == ""


def test_a_busy_agent_does_not_push_out_the_version_that_an_editor_opened(registrar: RunningRegistrar) -> None:
    before = registrar.path.read_text()
    registrar.step(exited(), spawned(spawn="s2"))
    for each in range(2 * VERSIONS_PER_AGENT):
        registrar.now += ACTIVITY_WRITE_INTERVAL
        registrar.step(does(WORKING if each % 2 else WAITING, registrar.now, spawn="s2"))
    registrar.settle()
    registrar.path.write_text(before.replace("desired: running", "desired: stopped"))
    taken = registrar.step()
    assert [command.verb for command in taken.outgoing] == ["stop"]
    assert taken.trouble == ""


def test_an_old_activity_in_a_saved_version_is_no_edit() -> None:
    base = record(activity=WORKING, activity_since=NOW, activity_reason="a", decided_by="hooks")
    ours = record(activity=WAITING, activity_since=NOW + SOON, activity_reason="b", decided_by="screen")
    merged = merge([base], base.model_copy(update={"role": "tester"}), ours)
    assert merged.record == ours.model_copy(update={"role": "tester"})
    assert (merged.put_back, merged.unknown, merged.wish) == ((), False, None)


def test_an_edited_activity_is_put_back_without_a_notice() -> None:
    ours = record(activity=WORKING)
    merged = merge([ours], record(activity=Activity.DONE, desired=Desired.RUNNING), ours)
    assert (merged.record, merged.put_back) == (ours, ())
