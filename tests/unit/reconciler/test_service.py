"""What a turn compares, reports and remembers, with given records and a fake tmux."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from registry import AgentRecord, RegistryFile
from registry.memory import RegistryReader
from services.reconciler.service import REPORTED, Reconciler, ReportedDrifts
from services.reconciler.single_run import RunDifferences
from shared.contract.commands import Reconcile, Stop
from shared.contract.states import Status
from shared.contract.topics import Space
from shared.messaging.inbox import Inbox
from shared.messaging.journal import Journal, JournalUnavailable
from shared.runtime.bootstrap import ServiceContext
from shared.runtime.turn import Turn
from shared.system.log import Log
from tests.fakes.fleets import WrittenFleet
from tests.fakes.peers import Peer
from tests.fakes.records import rows_of
from tests.fakes.tmux import FakeTmux
from tests.fakes.turns import TurnDriver
from tests.unit.reconciler.samples import NOW, pane, record

SPACE = Space("box")
STALE = REPORTED.dump(ReportedDrifts("s1", {"stale_id": None}))


class World:
    """A reconciler on a fleet of no agents, with a registrar and a spawner that do what the test says."""

    def __init__(self, home: Path) -> None:
        self.fleet_file = WrittenFleet(home, {}).file
        path = self.fleet_file.fleet.journal
        self.registrar, self.spawner = (Peer(path, service, SPACE) for service in ("registrar", "spawner"))
        self.file = RegistryFile(self.fleet_file.fleet.registry)
        self.tmux = FakeTmux()
        self.journal = Journal(path, "reconciler")
        self.turns = TurnDriver(self.journal, SPACE, NOW)
        self.service = Reconciler(
            self.fleet_file, RegistryFile(self.file.path), self.tmux, self.journal, {"HOME": str(home)}
        )

    def close(self) -> None:
        for each in (self.journal, self.registrar, self.spawner):
            each.close()

    # --- what others do ---

    def starts(self, agent: str, spawn: str = "s1") -> None:
        fleet = self.fleet_file.fleet.stamp
        self.tmux.panes[agent] = pane(spawn, agent=agent, session=agent, fleet=fleet, pid=2**22 + 7)

    def writes(self, **records: AgentRecord) -> None:
        self.file.write(records, (), {}, ())

    def keeps(self, agent: str, record: AgentRecord | None, written: AgentRecord | None) -> None:
        for key, value in rows_of(agent, record, written).items():
            self.registrar.remember(key, value)

    def asks_to_stop(self, agent: str) -> None:
        self.spawner.is_asked(Stop(agent=agent, id="r1"), self.turns.now)

    # --- turns ---

    def turn(self, *pending: Reconcile, poll: bool = False) -> Turn:
        return self.turns.run(self.service.step, *pending, poll=poll)

    @property
    def memory(self) -> Mapping[str, Any]:
        return self.turns.memory


def told(turn: Turn) -> list[tuple[str, str]]:
    return [(getattr(event, "agent", ""), getattr(event, "kind", "")) for event, _ in turn.emitted]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()


# --- once ---


def run_of(world: World) -> RunDifferences:
    run = RunDifferences(lambda _: world.service)
    run.build(ServiceContext(world.fleet_file, world.journal, Inbox(), Log("reconciler")))
    return run


def test_one_run_shows_what_it_reported_as_new(world: World) -> None:
    world.writes(builder=record())
    run = run_of(world)
    assert told(world.turn()) == [("builder", "missing")]
    assert run.all_reported()
    assert [(each.event.agent, each.document()["state"]) for each in run.differences()] == [("builder", "new")]


def test_one_run_shows_what_it_reported_in_an_earlier_turn(world: World) -> None:
    world.writes(builder=record(), tester=record(session="tester"))
    world.asks_to_stop("tester")
    run = run_of(world)
    assert told(world.turn()) == [("builder", "missing")]
    assert not run.all_reported(), "one waits for who is busy with it"
    world.writes(builder=record(Status.TERMINATED))  # a registrar that runs takes it up
    world.turns.now += timedelta(seconds=31)
    assert told(world.turn()) == [("tester", "missing")]
    assert run.all_reported()
    states = {each.event.agent: each.document()["state"] for each in run.differences()}
    assert states == {"builder": "new", "tester": "new"}


# --- records that the file does not have ---


def test_a_file_that_can_not_be_written_is_not_believed(world: World) -> None:
    world.writes(builder=record())
    stopped = record(Status.STOPPED)
    world.keeps("builder", stopped, record())
    assert told(world.turn()) == [], "a person stopped it, and the file could not follow"
    world.keeps("builder", stopped, stopped)
    world.writes(builder=stopped)
    assert told(world.turn()) == []
    world.keeps("builder", record(), stopped)
    assert told(world.turn()) == [("builder", "missing")], "nor is it when it tells of fewer"


def test_an_agent_without_a_record_is_not_missing(world: World) -> None:
    world.writes(builder=record())
    world.keeps("builder", None, record())
    assert told(world.turn()) == []


def test_records_of_the_journal_stay_the_same_objects(world: World) -> None:
    world.writes(builder=record())
    world.keeps("builder", record(reason="new"), record())
    records = RegistryReader(RegistryFile(world.file.path), world.journal)
    turn = world.turns.begin()
    assert records.read(turn)["builder"] is records.read(turn)["builder"]


def test_a_journal_that_does_not_answer_is_no_empty_one(world: World) -> None:
    world.writes(builder=record())
    turn = world.turns.begin()
    world.journal.close()
    with pytest.raises(JournalUnavailable):
        world.service.step(turn)


# --- turns ---


def test_what_a_dry_run_saw_is_reported_right_after_it(world: World) -> None:
    world.writes(builder=record())
    dry = world.turn(Reconcile(id="r9", dry_run=True))
    assert (told(dry), dry.look_again) == ([], world.turns.now)
    assert told(world.turn()) == [("builder", "missing")]


def test_a_poll_forgets_reports_about_agents_that_are_gone(world: World) -> None:
    world.turns.remember(**{REPORTED.key(agent): STALE for agent in ("gone", "builder")})
    world.starts("builder")
    world.writes(builder=record())
    world.turn()
    assert REPORTED.key("gone") in world.memory
    world.turn(Reconcile(id="r9", dry_run=True), poll=True)
    assert REPORTED.key("gone") in world.memory
    world.turn(poll=True)
    assert world.memory.keys() == {REPORTED.key("builder")}


def test_no_report_is_forgotten_while_the_registry_file_is_broken(world: World) -> None:
    world.turns.remember(**{REPORTED.key("gone"): STALE})
    world.file.path.write_text("agents: [broken")
    world.turn(poll=True)
    assert REPORTED.key("gone") in world.memory


# --- many agents ---

MANY = [f"agent-{number}" for number in range(150)]
APART = timedelta(seconds=0.2)


@pytest.fixture
def many(world: World) -> World:
    """More agents than a few, which were all observed just now."""
    for agent in MANY:
        world.starts(agent)
    world.writes(**{agent: record(session=agent) for agent in MANY})
    world.turn()
    return world


def test_of_many_agents_a_full_look_waits_for_its_time(many: World) -> None:
    many.tmux.panes[MANY[0]] = pane("s1", agent=MANY[0], session="moved", fleet=many.fleet_file.fleet.stamp)
    began = many.turns.now
    turn = many.turn()
    assert (told(turn), turn.look_again) == ([], began + APART)
    many.turns.now = began + APART
    assert told(many.turn()) == [(MANY[0], "moved")]


def test_of_many_agents_one_that_is_missing_is_reported_at_once(many: World) -> None:
    del many.tmux.panes[MANY[7]]
    assert told(many.turn()) == [(MANY[7], "missing")]


def test_of_many_agents_one_that_died_is_reported_at_once(many: World) -> None:
    """Its pane stays for a moment only."""
    many.tmux.panes[MANY[7]] = replace(many.tmux.panes[MANY[7]], dead=True, dead_status=1)
    assert told(many.turn()) == [(MANY[7], "pane_dead")]


def test_of_many_agents_a_poll_looks_at_everything(many: World) -> None:
    many.tmux.panes[MANY[0]] = pane("s1", agent=MANY[0], session="moved", fleet=many.fleet_file.fleet.stamp)
    assert told(many.turn(poll=True)) == [(MANY[0], "moved")]
