"""The board's records: from the registrar's states as they come, and from the journal, which has the last word."""

from datetime import UTC, datetime, timedelta

import pytest

from registry import AgentRecord
from registry.memory import RECORDS
from services.board.records import MirroredRecords, tells_of_an_end
from shared.contract.states import Activity, Status
from shared.contract.topics import AGENT_STATE
from shared.contract.writer import DocumentWriter
from shared.messaging.cursors import LocatedMessage
from tests.fakes.records import make_record
from tests.unit.board.samples import doing
from tests.unit.board.world import BoardWorld, located

WORKING, WAITING = doing(Activity.WORKING), doing(Activity.WAITING)


def state(world: BoardWorld, record: AgentRecord, at: datetime | None = None, agent: str = "builder") -> LocatedMessage:
    writer = DocumentWriter(world.fleet.space, "registrar", world.journal.epoch)
    return located(*writer.state(record.state(agent), seq=1, time=at or datetime.now(UTC)))


@pytest.fixture
def mirror(world: BoardWorld) -> MirroredRecords:
    world.records(builder=WORKING)
    return MirroredRecords(world.journal)


def test_it_begins_with_what_the_journal_has(mirror: MirroredRecords) -> None:
    assert mirror.records == {"builder": WORKING}


def test_a_state_brings_a_record_up_to_date(world: BoardWorld, mirror: MirroredRecords) -> None:
    assert mirror.take(state(world, WAITING)) == "builder"
    assert mirror.records["builder"] == WAITING
    assert mirror.take(state(world, WAITING)) is None, "nothing is new"
    assert mirror.take(state(world, WORKING)) == "builder", "the last one counts"
    assert mirror.records["builder"] == WORKING
    assert mirror.take(state(world, WORKING, agent="other")) == "other"


def test_every_field_of_a_record_comes_through(world: BoardWorld, mirror: MirroredRecords) -> None:
    full = make_record(
        Status.EXITED, exit_status=3, earlier=["c0"], drifts=["moved"], limit="weekly", account="claude", level=2
    )
    mirror.take(state(world, full))
    assert mirror.records["builder"] == full


def test_an_old_retained_state_is_passed_over(world: BoardWorld, mirror: MirroredRecords) -> None:
    assert mirror.take(state(world, WAITING, datetime.now(UTC) - timedelta(minutes=5))) is None
    assert mirror.records["builder"] == WORKING


def test_a_cleared_state_is_a_reason_to_read_the_journal(world: BoardWorld, mirror: MirroredRecords) -> None:
    cleared = located(AGENT_STATE.name(world.fleet.space, agent="builder"), b"")
    assert mirror.take(cleared) is None
    assert mirror.records == {"builder": WORKING}
    assert tells_of_an_end(cleared)
    assert not tells_of_an_end(state(world, WAITING))
    assert not tells_of_an_end(located("muster/box/service/monitor/state", b""))


@pytest.mark.parametrize("payload", [b"nonsense", b"{}", b"\xff", b'{"data": 1}', b"null"])
def test_a_malformed_state_changes_nothing(world: BoardWorld, mirror: MirroredRecords, payload: bytes) -> None:
    assert mirror.take(located(AGENT_STATE.name(world.fleet.space, agent="builder"), payload)) is None
    assert mirror.records == {"builder": WORKING}


def test_what_is_no_state_of_an_agent_is_passed_over(mirror: MirroredRecords) -> None:
    assert mirror.take(located("muster/box/service/monitor/state", b"")) is None
    assert mirror.records == {"builder": WORKING}


def test_the_journal_repairs_what_the_bus_got_wrong(world: BoardWorld, mirror: MirroredRecords) -> None:
    mirror.take(state(world, WAITING))
    mirror.take(state(world, WAITING, agent="ghost"))
    world.records(tester=WORKING)
    assert mirror.read_all() == {"builder", "ghost", "tester"}
    assert mirror.records == {"builder": WORKING, "tester": WORKING}
    assert mirror.read_all() == set()


def test_a_record_that_can_not_be_read_is_passed_over(world: BoardWorld, mirror: MirroredRecords) -> None:
    world.peers["registrar"].remember(RECORDS.key("broken"), {"status": "dancing"})
    assert mirror.read_all() == set()
    assert mirror.records == {"builder": WORKING}
