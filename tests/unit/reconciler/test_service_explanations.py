"""A drift waits for commands and events that may explain it, but not for ever."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from services.reconciler import classification as table
from services.reconciler.classification import Drift
from services.reconciler.service import RECORD_FOLLOWS_WITHIN, START_LASTS_AT_MOST_S, WAITS_AT_MOST, Explanations
from shared.contract.commands import COMMAND_EXPIRES_AFTER_S, Stop
from shared.contract.events.lifecycle import AgentSpawned
from shared.contract.topics import Space
from shared.messaging.journal import Journal
from shared.runtime.memory import Memory
from shared.runtime.turn import Turn
from shared.system.clock import ClockHistory, ClockReading
from tests.fakes.peers import Peer
from tests.unit.reconciler.samples import NOW, pane

SPACE = Space("box")


class Host:
    """A journal, with what a spawner and a registrar write into it."""

    def __init__(self, path: Path) -> None:
        self.spawner, self.registrar = (Peer(path, service, SPACE) for service in ("spawner", "registrar"))
        self.journal = Journal(path, "reconciler")
        self.spawner_lives = False
        self.explanations = Explanations(self.journal, SPACE, lambda: self.spawner_lives)
        self.now, self.clock = NOW, ClockHistory()

    def jump(self, by: float) -> None:
        since_boot = self.now.timestamp() - self.clock.offset
        self.now += timedelta(seconds=by)
        self.clock = self.clock.continued(ClockReading("", self.now.timestamp(), since_boot), since_boot)

    def waits(
        self,
        kind: Drift = table.MISSING,
        agent: str = "builder",
        created: float = 0,
        *,
        begins: bool = True,
        kept: bool = True,
    ) -> str:
        turn = Turn("reconciler", self.now, poll=False, events=[], commands=[], memory=Memory({}), clock=self.clock)
        if begins:
            self.explanations.begin()
        found = self.explanations.awaited(turn, kind, agent, "s1", pane(created=int(created)), spawner_keeps=kept)
        assert (turn.look_again is not None) is bool(found), "what waits is looked at again"
        return found

    def told(self, agent: str) -> None:
        event = AgentSpawned(agent=agent, spawn="s1", backend="demo", workspace="/", session=agent, pane="%1", pid=7)
        self.spawner.emit(event, time=NOW)

    def read(self) -> None:
        self.registrar.has_read(self.spawner)

    def asked(self, agent: str, *, answered: bool) -> None:
        command = Stop(agent=agent, id="r1")
        self.spawner.is_asked(command, self.now)
        if answered:
            self.spawner.answer(command, time=self.now)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path / "journal.db")
    yield host
    for journal in (host.spawner, host.registrar, host.journal):
        journal.close()


def test_a_drift_that_nothing_explains_is_reported_at_once(host: Host) -> None:
    assert host.waits() == ""
    host.told("builder")
    host.read()
    assert host.waits() == ""


@pytest.mark.parametrize("answered", [False, True])
def test_a_drift_waits_for_a_command_about_its_agent(host: Host, answered: bool) -> None:
    host.asked("builder", answered=answered)
    assert host.waits() == "somebody is busy with the agent"
    assert host.waits(agent="other") == ""
    host.now += RECORD_FOLLOWS_WITHIN + timedelta(seconds=1)
    assert (host.waits() == "") is answered


def test_a_drift_does_not_wait_long_for_an_open_command(host: Host) -> None:
    host.asked("builder", answered=False)
    host.now += timedelta(seconds=20)
    assert host.waits() == "somebody is busy with the agent"
    host.now += WAITS_AT_MOST - timedelta(seconds=1)
    assert host.waits() == "somebody is busy with the agent"
    host.now += timedelta(seconds=1)
    assert host.waits() == ""


def test_a_command_that_has_expired_explains_nothing(host: Host) -> None:
    host.asked("builder", answered=False)
    host.now += timedelta(seconds=COMMAND_EXPIRES_AFTER_S + 1)
    assert host.waits() == ""


def test_an_answer_that_comes_while_we_look_explains_a_drift(host: Host) -> None:
    host.asked("builder", answered=True)
    host.now -= timedelta(seconds=0.1)
    assert host.waits() == "somebody is busy with the agent"


def test_a_drift_does_not_wait_longer_because_the_clock_was_set_back(host: Host) -> None:
    host.told("builder")
    assert host.waits()
    host.jump(-3600)
    assert host.waits()
    host.now += WAITS_AT_MOST
    assert host.waits() == ""


@pytest.mark.parametrize("by", [-7200, 7200])
def test_a_session_made_just_before_the_clock_was_set_is_young(host: Host, by: float) -> None:
    made = host.now.timestamp()
    host.jump(by)
    assert host.waits(table.UNREGISTERED, created=made) == "its session has just been made"


def test_a_drift_waits_until_the_spawners_events_are_recorded(host: Host) -> None:
    host.told("builder")
    assert "not recorded yet" in host.waits()
    assert host.waits(agent="other") == "", "who was not spoken of is not waited for"
    host.read()
    assert "not recorded yet" in host.waits(begins=False), "the records in hand are from before"
    assert host.waits() == ""


def test_a_drift_does_not_wait_for_ever_for_a_registrar_that_never_reads(host: Host) -> None:
    host.told("builder")
    assert host.waits()
    host.now += WAITS_AT_MOST - timedelta(seconds=1)
    host.explanations.forget_old(host.now.timestamp())
    assert host.waits()
    host.now += timedelta(seconds=2)
    assert host.waits() == ""


def test_a_session_that_was_just_made_is_left_to_the_service_that_made_it(host: Host) -> None:
    made = host.now.timestamp()
    assert "just been made" in host.waits(table.UNREGISTERED, created=made)
    host.now += timedelta(seconds=4)
    assert host.waits(table.UNREGISTERED, created=made) == ""
    assert "may follow" in host.waits(table.UNREGISTERED, "old")
    host.now += RECORD_FOLLOWS_WITHIN
    assert host.waits(table.UNREGISTERED, "old") == ""


def test_a_start_under_way_explains_a_session_however_slow_it_is(host: Host) -> None:
    made = host.now.timestamp()
    host.spawner_lives = True
    host.now += timedelta(minutes=5)
    assert "about to tell" in host.waits(table.UNREGISTERED, created=made)
    host.spawner_lives = False
    host.now += RECORD_FOLLOWS_WITHIN
    assert host.waits(table.UNREGISTERED, created=made) == "", "no one is there to tell of it"


def test_a_session_of_an_agent_that_the_spawner_does_not_start_is_reported(host: Host) -> None:
    host.spawner_lives = True
    host.now += timedelta(seconds=4)
    made = host.now.timestamp() - 4
    assert "may follow" in host.waits(table.UNREGISTERED, created=made, kept=False)
    host.now += RECORD_FOLLOWS_WITHIN
    assert host.waits(table.UNREGISTERED, created=made, kept=False) == ""


def test_a_session_that_the_spawner_remembers_and_that_has_no_record_is_reported(host: Host) -> None:
    made = host.now.timestamp()
    host.spawner_lives = True
    host.spawner.remember("agent:builder", {"session": {"spawn": "s1"}})
    host.now += timedelta(seconds=4)
    assert "may follow" in host.waits(table.UNREGISTERED, created=made)
    host.now += RECORD_FOLLOWS_WITHIN
    assert host.waits(table.UNREGISTERED, created=made) == ""


def test_a_session_that_the_spawner_leaves_alone_for_long_is_reported(host: Host) -> None:
    host.spawner_lives = True
    assert "may follow" in host.waits(table.UNREGISTERED, created=host.now.timestamp() - START_LASTS_AT_MOST_S)


@pytest.mark.parametrize("kind", [table.IDENTIFIED, table.MOVED, table.STALE_ID])
def test_a_drift_that_no_command_can_explain_does_not_wait(host: Host, kind: Drift) -> None:
    host.asked("builder", answered=False)
    assert host.waits(kind) == ""
