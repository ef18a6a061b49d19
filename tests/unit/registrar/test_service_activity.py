"""What agents are doing is shown at once, and written to the file now and then."""

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
from tests.unit.registrar.test_service import NOW, Office, exited, spawned

WORKING, WAITING = Activity.WORKING, Activity.WAITING
SOON = timedelta(seconds=0.2)


def does(status: Activity, since: datetime = NOW, agent: str = "builder", spawn: str = "s1") -> StatusChanged:
    return StatusChanged(agent=agent, spawn=spawn, status=status, since=since, reason="r", decided_by="hooks")


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    """In which an agent has just begun to work, and that was written."""
    office = Office(tmp_path)
    office.step(spawned())
    office.now += ACTIVITY_WRITE_INTERVAL
    office.step(does(WORKING))
    assert written(office) is WORKING
    yield office
    office.journal.close()


def written(office: Office, agent: str = "builder") -> Activity | None:
    return office.file().records()[agent].activity


def shown(taken: Turn) -> list[Activity | None]:
    return [each.activity for each in taken.states if isinstance(each, AgentState)]


def test_it_is_shown_at_once_and_written_within_a_second(office: Office) -> None:
    office.now += SOON
    taken = office.step(does(WAITING))
    assert shown(taken) == [WAITING]
    assert written(office) is WORKING
    due = NOW + 2 * ACTIVITY_WRITE_INTERVAL
    assert taken.look_again == due
    office.now = due
    assert shown(office.step()) == []
    assert written(office) is WAITING


def test_any_other_change_is_written_at_once_and_takes_it_along(office: Office) -> None:
    office.now += SOON
    office.step(does(WAITING))
    assert written(office) is WORKING
    office.step(spawned("tester", "s2"))
    assert written(office) is WAITING
    assert "tester" in office.file().records()


def test_an_end_is_written_at_once(office: Office) -> None:
    office.now += SOON
    office.step(exited(status=3))
    assert written(office) is Activity.FAILED


def test_a_clock_that_is_set_back_holds_nothing_up(office: Office) -> None:
    office.now -= timedelta(hours=1)
    office.step(does(WAITING))
    assert written(office) is WAITING


def test_a_new_registrar_writes_what_the_last_one_had_not(office: Office) -> None:
    office.now += SOON
    office.step(does(WAITING))
    office.hire()
    taken = office.step()
    assert written(office) is WAITING
    assert taken.trouble == ""


def test_an_edit_is_taken_up_while_something_waits_to_be_written(office: Office) -> None:
    office.now += SOON
    office.step(does(WAITING))
    office.edit("desired: running", "desired: stopped")
    taken = office.step()
    assert [command.verb for command in taken.outgoing] == ["stop"]
    assert taken.trouble == ""


def test_a_busy_agent_does_not_drive_out_what_an_editor_began_with(office: Office) -> None:
    before = office.path.read_text()
    office.step(exited(), spawned(spawn="s2"))
    for each in range(2 * VERSIONS_PER_AGENT):
        office.now += ACTIVITY_WRITE_INTERVAL
        office.step(does(WORKING if each % 2 else WAITING, office.now, spawn="s2"))
    office.settle()
    office.path.write_text(before.replace("desired: running", "desired: stopped"))
    taken = office.step()
    assert [command.verb for command in taken.outgoing] == ["stop"]
    assert taken.trouble == ""


def test_what_it_was_doing_when_an_editor_began_is_no_edit() -> None:
    base = record(activity=WORKING, activity_since=NOW, activity_reason="a", decided_by="hooks")
    ours = record(activity=WAITING, activity_since=NOW + SOON, activity_reason="b", decided_by="screen")
    merged = merge([base], base.model_copy(update={"role": "tester"}), ours)
    assert merged.record == ours.model_copy(update={"role": "tester"})
    assert (merged.put_back, merged.unknown, merged.wish) == ((), False, None)


def test_what_somebody_writes_it_is_doing_is_put_back_without_a_word() -> None:
    ours = record(activity=WORKING)
    merged = merge([ours], record(activity=Activity.DONE, desired=Desired.RUNNING), ours)
    assert (merged.record, merged.put_back) == (ours, ())
