"""A snapshot of a fleet: where its records are from, and how each process is."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from registry import RegistryFile
from shared.client.presence import PresenceReport
from shared.client.processes import SUPERVISOR, last_good
from shared.client.snapshot import ProcessStatus, RecordSource, Snapshot, SnapshotReader
from shared.contract.states import Presence, ServiceState, Status
from shared.errors import MusterError
from shared.fleet import Fleet, load_fleet
from shared.messaging.journal import Journal
from tests.fakes.records import make_record, rows_of

FLEET = "host: box\nagents: {builder: {}, tester: {}}\n"


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    path = tmp_path / "fleet.yaml"
    path.write_text(FLEET)
    fleet = load_fleet(path)
    (fleet.home / "run").mkdir(parents=True)
    return fleet


# --- records ---


@pytest.fixture
def registrar(fleet: Fleet) -> Iterator[Journal]:
    journal = Journal(fleet.journal, "registrar")
    yield journal
    journal.close()


def remember(registrar: Journal, status: Status, written: Status) -> None:
    with registrar.transaction() as transaction:
        for key, value in rows_of("builder", make_record(status), make_record(written)).items():
            transaction.remember(key, value)


def test_records_are_from_the_journal_while_the_file_is_behind(fleet: Fleet, registrar: Journal) -> None:
    file = RegistryFile(fleet.registry)
    file.write({"builder": make_record()})
    remember(registrar, Status.RUNNING, Status.RUNNING)
    reader = SnapshotReader(str(fleet.path))
    assert reader.take().source is RecordSource.REGISTRY
    remember(registrar, Status.STOPPED, Status.RUNNING)
    snapshot = reader.take()
    assert (snapshot.source, snapshot.status("builder")) == (RecordSource.JOURNAL, "stopped")
    remember(registrar, Status.STOPPED, Status.STOPPED)
    assert reader.take().source is RecordSource.REGISTRY


def test_without_a_file_and_a_journal_nothing_is_known(fleet: Fleet) -> None:
    snapshot = SnapshotReader(str(fleet.path)).take()
    assert (snapshot.source, snapshot.records, snapshot.faults) == (RecordSource.NOTHING, {}, ())
    assert [snapshot.status(agent) for agent in snapshot.agents] == ["not_started", "not_started"]


def test_a_broken_fleet_file_is_a_fault_and_the_one_of_the_last_start_counts(fleet: Fleet) -> None:
    reader = SnapshotReader(str(fleet.path))
    last_good(fleet).write_text(FLEET)
    fleet.path.write_text("agents: [")
    snapshot = reader.take()
    assert snapshot.agents == ["builder", "tester"]
    assert str(fleet.path) in snapshot.faults[0]


def test_a_fleet_file_that_was_moved_away_is_a_fault_and_what_it_said_stays(fleet: Fleet) -> None:
    reader = SnapshotReader(str(fleet.path))
    fleet.path.unlink()
    snapshot = reader.take()
    assert (snapshot.agents, len(snapshot.faults)) == (["builder", "tester"], 1)
    with pytest.raises(MusterError):
        SnapshotReader(str(fleet.path))


# --- processes ---


def state(presence: Presence, pid: int) -> ServiceState:
    return ServiceState(service="spawner", status=presence, connection=1, pid=pid, version="1", reason="why")


@pytest.mark.parametrize(
    ("pid", "said", "status"),
    [
        (7, state(Presence.ONLINE, 7), "online"),
        (7, state(Presence.DEGRADED, 7), "degraded"),
        (7, state(Presence.OFFLINE, 7), "alone"),
        (7, state(Presence.ONLINE, 6), "alone"),  # an earlier process said so
        (7, None, "alone"),
        (None, state(Presence.ONLINE, 7), "down"),
        (None, None, "down"),
    ],
)
def test_a_service_is_what_it_says_while_the_process_that_said_so_lives(
    fleet: Fleet, pid: int | None, said: ServiceState | None, status: str
) -> None:
    now = time.time()
    bus = PresenceReport({"spawner": said} if said else {}, {"spawner": now})
    pids = {"spawner": pid} if pid else {}
    found = {each.name: each for each in Snapshot(fleet, bus, pids, {}).processes()}
    is_heard = status in ("online", "degraded")
    expected = ProcessStatus("spawner", status, pid, "why" if is_heard else "", now if is_heard else None)
    assert found["spawner"] == expected


def test_supervisor_and_broker_are_up_or_down(fleet: Fleet) -> None:
    def found(snapshot: Snapshot) -> list[str]:
        return [each.status for each in snapshot.processes()[:2]]

    assert found(Snapshot(fleet, PresenceReport(), {SUPERVISOR: 1}, {})) == ["up", "up"]
    assert found(Snapshot(fleet, None, {}, {})) == ["down", "down"]


def test_all_is_up_when_every_process_lives_the_broker_answers_and_nothing_is_wrong(fleet: Fleet) -> None:
    pids = dict.fromkeys((SUPERVISOR, *fleet.services), 7)
    assert Snapshot(fleet, PresenceReport(), pids, {}).all_up
    assert not Snapshot(fleet, None, pids, {}).all_up
    assert not Snapshot(fleet, PresenceReport(), pids, {}, faults=("bad",)).all_up
    assert not Snapshot(fleet, PresenceReport(), {SUPERVISOR: 7}, {}).all_up
