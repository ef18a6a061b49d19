"""What a turn compares, tells and remembers, on records and a tmux that are as the test says."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, cast

import pytest

from registry import AgentRecord, RegistryFile
from registry.kept import AGENT, Kept
from services.reconciler.once import Seen
from services.reconciler.service import Reconciler
from shared.commands import Reconcile, Stop
from shared.desk import request_of
from shared.fleet import FleetFile
from shared.journal import Journal
from shared.journal.database import JournalUnavailable
from shared.process import Wiring
from shared.states import Status
from shared.tmux import Pane, Tmux
from shared.topics import Space
from shared.turn import Asked, Turn
from tests.unit.reconciler.seeing import NOW, pane, record

SPACE = Space("box")


class World:
    """A fleet whose tmux is a list."""

    def __init__(self, home: Path) -> None:
        (home / "fleet.yaml").write_text("host: box\nagents: {}\n")
        self.fleet_file = FleetFile(home / "fleet.yaml")
        path = self.fleet_file.fleet.journal
        self.journal, self.registrar = Journal(path, "reconciler"), Journal(path, "registrar")
        self.spawner = Journal(path, "spawner")
        self.file = RegistryFile(self.fleet_file.fleet.registry)
        self.panes: list[Pane] = []
        self.memory: dict[str, Any] = {}
        self.now = NOW
        self.service = Reconciler(
            self.fleet_file, RegistryFile(self.file.path), cast(Tmux, self), self.journal, {"HOME": str(home)}
        )

    # --- as tmux ---

    def look(self) -> list[Pane]:
        return self.panes

    def stamps(self, fleet: str) -> Mapping[str, str]:
        return {each.agent: each.spawn or "" for each in self.panes if each.agent and each.fleet == fleet}

    # --- what others do ---

    def starts(self, agent: str, spawn: str = "s1") -> None:
        fleet = self.fleet_file.fleet.stamp
        self.panes.append(pane(spawn, agent=agent, session=agent, fleet=fleet, pid=2**22 + 7))

    def writes(self, **records: AgentRecord) -> None:
        self.file.write(records, (), {}, ())

    def keeps(self, agent: str, kept: Kept) -> None:
        with self.registrar.transaction() as transaction:
            transaction.remember(f"{AGENT}{agent}", kept.dump())

    def asks_to_stop(self, agent: str) -> None:
        self.spawner.requests.accept([request_of(SPACE, Stop(agent=agent, id="r1"), self.now.timestamp())])

    # --- turns ---

    def turn(self, *asked: Reconcile, poll: bool = False) -> Turn:
        requests = [Asked(request_of(SPACE, each, self.now.timestamp()), each) for each in asked]
        turn = Turn("reconciler", self.now, poll=poll, heard=[], asked=requests, memory=self.memory)
        self.service.step(turn)
        self.memory = {key: kept for key, kept in (self.memory | turn.kept).items() if kept is not None}
        return turn


def told(turn: Turn) -> list[tuple[str, str]]:
    return [(getattr(event, "agent", ""), getattr(event, "kind", "")) for event, _ in turn.told]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    for journal in (world.journal, world.registrar, world.spawner):
        journal.close()


# --- once ---


def seen_by(world: World) -> Seen:
    seen = Seen(lambda _: world.service)
    seen.built(cast(Wiring, None))
    return seen


def test_one_look_shows_what_it_told_as_new(world: World) -> None:
    world.writes(builder=record())
    seen = seen_by(world)
    assert told(world.turn()) == [("builder", "missing")]
    assert seen.all_told()
    assert [(each.event.agent, each.document()["state"]) for each in seen.differences()] == [("builder", "new")]


def test_what_was_told_in_an_earlier_turn_of_one_look_is_shown_too(world: World) -> None:
    world.writes(builder=record(), tester=record(session="tester"))
    world.asks_to_stop("tester")
    seen = seen_by(world)
    assert told(world.turn()) == [("builder", "missing")]
    assert not seen.all_told(), "one waits for who is busy with it"
    world.writes(builder=record(Status.TERMINATED))  # a registrar that runs takes it up
    world.now += timedelta(seconds=31)
    assert told(world.turn()) == [("tester", "missing")]
    assert seen.all_told()
    states = {each.event.agent: each.document()["state"] for each in seen.differences()}
    assert states == {"builder": "new", "tester": "new"}


# --- records that the file does not have ---


def test_a_file_that_can_not_be_written_is_not_believed(world: World) -> None:
    world.writes(builder=record())
    stopped = record(Status.STOPPED)
    world.keeps("builder", Kept(stopped, record()))
    assert told(world.turn()) == [], "a person stopped it, and the file could not follow"
    world.keeps("builder", Kept(stopped, stopped))
    world.writes(builder=stopped)
    assert told(world.turn()) == []
    world.keeps("builder", Kept(record(), stopped))
    assert told(world.turn()) == [("builder", "missing")], "nor is it when it tells of fewer"


def test_a_record_that_is_gone_is_not_missed(world: World) -> None:
    world.writes(builder=record())
    world.keeps("builder", Kept(None, record()))
    assert told(world.turn()) == []


def test_records_of_the_journal_stay_the_same_objects(world: World) -> None:
    world.writes(builder=record())
    world.keeps("builder", Kept(record(reason="new"), record()))
    turn = world.turn()
    records = world.service._records
    assert records.read(turn)["builder"] is records.read(turn)["builder"]


def test_a_journal_that_does_not_answer_is_no_empty_one(world: World) -> None:
    world.writes(builder=record())
    world.journal.database._connection.execute("PRAGMA query_only = 0")
    world.journal.close()
    with pytest.raises(JournalUnavailable):
        world.turn()
    world.journal = Journal(world.fleet_file.fleet.journal, "reconciler")


# --- turns ---


def test_what_came_with_a_dry_run_is_told_at_once_after_it(world: World) -> None:
    world.writes(builder=record())
    dry = world.turn(Reconcile(id="r9", dry_run=True))
    assert (told(dry), dry.look_again) == ([], world.now)
    assert told(world.turn()) == [("builder", "missing")]


def test_a_poll_forgets_what_was_told_of_agents_that_are_no_more(world: World) -> None:
    world.memory = {f"told:{agent}": {"spawn": "s1", "drifts": {"stale_id": None}} for agent in ("gone", "builder")}
    world.starts("builder")
    world.writes(builder=record())
    world.turn()
    assert "told:gone" in world.memory
    world.turn(Reconcile(id="r9", dry_run=True), poll=True)
    assert "told:gone" in world.memory
    world.turn(poll=True)
    assert world.memory.keys() == {"told:builder"}


def test_while_the_file_is_broken_nothing_that_was_told_is_forgotten(world: World) -> None:
    world.memory = {"told:gone": {"spawn": "s1", "drifts": {"stale_id": None}}}
    world.file.path.write_text("agents: [broken")
    world.turn(poll=True)
    assert "told:gone" in world.memory
