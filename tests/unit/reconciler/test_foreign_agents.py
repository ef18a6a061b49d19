"""What an agent that somebody started is called, and how often its adoption is asked for."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from services.reconciler.foreign_agents import FOUND, LOST_S, REFUSED_S, ForeignAgents, Stranger, name_for
from shared.contract.commands import Adopt
from shared.contract.ids import is_id
from shared.contract.topics import Space
from shared.fleet import Declaration, Fleet
from shared.messaging.journal import Journal
from shared.system.processes import Process
from tests.fakes.peers import Peer
from tests.fakes.turns import TurnDriver
from tests.unit.reconciler.samples import NOW, pane

FLEET = Fleet(
    Path("/f/fleet.yaml"),
    Declaration.model_validate({"agents": {"builder": {"backend": "claude"}, "tester": {"backend": "codex"}}}),
)


def stranger(session: str, **changes: Any) -> Stranger:
    known: dict[str, Any] = {"backend": "claude", "process": Process(1, 0, "claude", 1.0), "alone": True}
    return Stranger(pane(None, session=session), **{**known, **changes})


@pytest.mark.parametrize(
    ("found", "taken", "name"),
    [
        (stranger("scratch"), (), "scratch"),
        (stranger("My Work"), (), "my-work"),
        (stranger("scratch"), ("scratch",), "scratch-2"),
        (stranger("scratch"), ("scratch", "scratch-2"), "scratch-3"),
        (stranger("0", alone=False), (), "0-claude"),
        (stranger("日本"), (), "claude"),
        (stranger("builder"), (), "builder"),  # the fleet file has it so, and it is not recorded
        (stranger("builder"), ("builder",), "builder-2"),
        (stranger("tester"), (), "tester-2"),  # of the same name, and something else
        (stranger("builder", alone=False), (), "builder-claude"),
        (stranger("x" * 200), ("x" * 64,), "x" * 60 + "-2"),
    ],
)
def test_it_is_called_after_its_session(found: Stranger, taken: tuple[str, ...], name: str) -> None:
    assert name_for(found, FLEET, taken) == name
    assert is_id(name)


class Host:
    """Turn after turn, with a spawner that answers as it is told to."""

    def __init__(self, path: Path) -> None:
        self.journal, self.spawner = Journal(path, "reconciler"), Peer(path, "spawner", Space("box"))
        self.turns = TurnDriver(self.journal, Space("box"), NOW)
        self.strangers = ForeignAgents(self.journal)

    @property
    def memory(self) -> dict[str, Any]:
        return self.turns.memory

    def turn(self, *found: Stranger, poll: bool = False) -> list[str]:
        """The names under which adoption was asked for."""
        turn = self.turns.begin(poll=poll)
        seen = list(self.strangers.find(turn, FLEET, list(found), ()))
        for each in seen:
            self.strangers.report(turn, each)
        self.strangers.forget_gone(turn, {each.key for each in seen})
        self.turns.commit(turn)
        return [command.agent for command in turn.outgoing if isinstance(command, Adopt)]

    def answer(self, code: str) -> None:
        for request in self.spawner.open():
            self.spawner.answer(request, code, time=self.turns.now)

    def later(self, seconds: float) -> None:
        self.turns.now += timedelta(seconds=seconds)


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    host = Host(tmp_path / "journal.db")
    yield host
    host.journal.close()
    host.spawner.close()


def test_who_was_refused_is_asked_for_under_another_name_and_then_seldom(host: Host) -> None:
    assert host.turn(stranger("work")) == ["work"]
    assert host.turn(stranger("work")) == [], "it is under way"
    host.answer("refused")
    assert host.turn(stranger("work")) == ["work-2"]
    host.answer("refused")
    assert host.turn(stranger("work")) == []
    host.later(REFUSED_S - 1)
    assert host.turn(stranger("work")) == []
    host.later(1)
    assert host.turn(stranger("work")) == ["work-3"]
    names = []
    for _ in range(6):
        host.answer("refused")
        host.later(REFUSED_S)
        names += host.turn(stranger("work"))
    assert names == ["work-4", "work-5", "work-6", "work", "work-2", "work-3"], "the names do not grow for ever"


def test_who_lost_its_stamp_is_asked_for_again_after_a_while(host: Host) -> None:
    assert host.turn(stranger("work")) == ["work"]
    host.answer("ok")
    assert host.turn(poll=True) == []
    assert host.memory, "it may be seen again at once"
    assert host.turn(stranger("work")) == []
    host.later(LOST_S)
    assert host.turn(stranger("work")) == ["work"]
    host.answer("ok")
    host.later(LOST_S)
    host.turn(poll=True)
    assert not host.memory


def test_after_the_clock_was_set_back_nobody_waits_until_it_is_that_late_again(host: Host) -> None:
    host.turn(stranger("work"))
    host.answer("ok")
    host.later(-3600)
    assert host.turn(stranger("work")) == ["work"]


def test_one_that_could_not_be_asked_for_in_time_is_asked_for_again_under_its_name(host: Host) -> None:
    host.turn(stranger("work"))
    host.answer("expired")
    assert host.turn(stranger("work")) == ["work"]


def test_a_process_stays_itself_when_the_clock_is_put_right(host: Host) -> None:
    assert host.turn(stranger("work", process=Process(1, 0, "claude", 1.00, 77))) == ["work"]
    assert host.turn(stranger("work", process=Process(1, 0, "claude", 1.02, 77))) == []
    assert host.memory.keys() == {f"{FOUND}1-77"}
