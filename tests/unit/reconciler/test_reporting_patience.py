"""A drift waits for whoever may explain it, and not for ever."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from services.reconciler import classification as table
from services.reconciler.classification import Drift
from services.reconciler.reporting import GRACE, PATIENCE, Explanations
from shared.contract.commands import COMMAND_EXPIRES_AFTER_S, Stop
from shared.contract.events.lifecycle import AgentSpawned
from shared.contract.topics import Space
from shared.messaging.journal import Journal
from shared.runtime.memory import Memory
from shared.runtime.turn import Turn
from tests.fakes.peers import Peer
from tests.unit.reconciler.samples import NOW, pane

SPACE = Space("box")


class Host:
    """A journal, with what a spawner and a registrar write into it."""

    def __init__(self, path: Path) -> None:
        self.spawner, self.registrar = (Peer(path, service, SPACE) for service in ("spawner", "registrar"))
        self.journal = Journal(path, "reconciler")
        self.patience = Explanations(self.journal, SPACE)
        self.now = NOW

    def waits(
        self, kind: Drift = table.MISSING, agent: str = "builder", created: float = 0, *, begins: bool = True
    ) -> str:
        turn = Turn("reconciler", self.now, poll=False, events=[], commands=[], memory=Memory({}))
        if begins:
            self.patience.begin()
        found = self.patience.waits(turn, kind, agent, "s1", pane(created=int(created)))
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


def test_what_nobody_explains_is_told_at_once(host: Host) -> None:
    assert host.waits() == ""
    host.told("builder")
    host.read()
    assert host.waits() == ""


@pytest.mark.parametrize("answered", [False, True])
def test_somebody_who_is_busy_with_the_agent_goes_first(host: Host, answered: bool) -> None:
    host.asked("builder", answered=answered)
    assert host.waits() == "somebody is busy with the agent"
    assert host.waits(agent="other") == ""
    host.now += GRACE + timedelta(seconds=1)
    assert (host.waits() == "") is answered


def test_a_command_that_nobody_carries_out_explains_nothing_for_long(host: Host) -> None:
    host.asked("builder", answered=False)
    host.now += timedelta(seconds=20)
    assert host.waits() == "somebody is busy with the agent"
    host.now += PATIENCE - timedelta(seconds=1)
    assert host.waits() == "somebody is busy with the agent"
    host.now += timedelta(seconds=1)
    assert host.waits() == ""


def test_a_command_that_has_expired_explains_nothing(host: Host) -> None:
    host.asked("builder", answered=False)
    host.now += timedelta(seconds=COMMAND_EXPIRES_AFTER_S + 1)
    assert host.waits() == ""


def test_after_the_clock_was_set_back_what_was_done_in_the_future_explains_nothing(host: Host) -> None:
    host.asked("builder", answered=True)
    host.now -= timedelta(minutes=50)
    assert host.waits() == ""
    assert "may follow" in host.waits(table.UNREGISTERED, created=NOW.timestamp()), "its session is no young one"
    host.now += GRACE
    assert host.waits(table.UNREGISTERED, created=NOW.timestamp()) == ""


def test_an_answer_that_is_given_while_we_look_explains(host: Host) -> None:
    host.asked("builder", answered=True)
    host.now -= timedelta(seconds=0.1)
    assert host.waits() == "somebody is busy with the agent"


def test_a_drift_does_not_wait_longer_because_the_clock_was_set_back(host: Host) -> None:
    host.told("builder")
    assert host.waits()
    host.now -= timedelta(hours=1)
    assert host.waits()
    host.now += PATIENCE
    assert host.waits() == ""


def test_what_was_told_of_the_agent_is_recorded_first(host: Host) -> None:
    host.told("builder")
    assert "not recorded yet" in host.waits()
    assert host.waits(agent="other") == "", "who was not spoken of is not waited for"
    host.read()
    assert "not recorded yet" in host.waits(begins=False), "the records in hand are from before"
    assert host.waits() == ""


def test_a_registrar_that_never_reads_is_not_waited_for_for_ever(host: Host) -> None:
    host.told("builder")
    assert host.waits()
    host.now += PATIENCE - timedelta(seconds=1)
    host.patience.forget(host.now)
    assert host.waits()
    host.now += timedelta(seconds=2)
    assert host.waits() == ""


def test_a_session_that_was_just_made_is_told_of_by_who_made_it(host: Host) -> None:
    made = host.now.timestamp()
    assert "just been made" in host.waits(table.UNREGISTERED, created=made)
    host.now += timedelta(seconds=4)
    assert host.waits(table.UNREGISTERED, created=made) == ""
    assert "may follow" in host.waits(table.UNREGISTERED, "old")
    host.now += GRACE
    assert host.waits(table.UNREGISTERED, "old") == ""


@pytest.mark.parametrize("kind", [table.IDENTIFIED, table.MOVED, table.STALE_ID])
def test_what_no_command_explains_does_not_wait(host: Host, kind: Drift) -> None:
    host.asked("builder", answered=False)
    assert host.waits(kind) == ""
