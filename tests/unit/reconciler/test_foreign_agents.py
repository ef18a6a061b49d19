"""The name of an agent that a person started, and how often its adoption is asked for."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from services.reconciler.foreign_agents import (
    FOREIGN_AGENTS,
    REFUSED_TWICE_S,
    STAMP_LOST_S,
    ForeignAgent,
    candidates,
    forget_ended,
    name_for,
    report,
)
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


def foreign(session: str, **changes: Any) -> ForeignAgent:
    known: dict[str, Any] = {"backend": "claude", "process": Process(1, 0, "claude", 1.0), "alone": True}
    return ForeignAgent(pane(None, session=session), **{**known, **changes})


@pytest.mark.parametrize(
    ("found", "taken", "name"),
    [
        (foreign("scratch"), (), "scratch"),
        (foreign("My Work"), (), "my-work"),
        (foreign("scratch"), ("scratch",), "scratch-2"),
        (foreign("scratch"), ("scratch", "scratch-2"), "scratch-3"),
        (foreign("0", alone=False), (), "0-claude"),
        (foreign("日本"), (), "claude"),
        (foreign("builder"), (), "builder"),  # the fleet file has it so, and it is not recorded
        (foreign("builder"), ("builder",), "builder-2"),
        (foreign("tester"), (), "tester-2"),  # of the same name, and something else
        (foreign("builder", alone=False), (), "builder-claude"),
        (foreign("x" * 200), ("x" * 64,), "x" * 60 + "-2"),
    ],
)
def test_a_foreign_agent_is_named_after_its_session(found: ForeignAgent, taken: tuple[str, ...], name: str) -> None:
    assert name_for(found, FLEET, taken) == name
    assert is_id(name)


class Host:
    """Turn after turn, with a spawner that answers as it is told to."""

    def __init__(self, path: Path) -> None:
        self.journal, self.spawner = Journal(path, "reconciler"), Peer(path, "spawner", Space("box"))
        self.turns = TurnDriver(self.journal, Space("box"), NOW)

    @property
    def memory(self) -> dict[str, Any]:
        return self.turns.memory

    def turn(self, *found: ForeignAgent, poll: bool = False) -> list[str]:
        """The names under which adoption was asked for."""
        turn = self.turns.begin(poll=poll)
        seen = list(candidates(turn, FLEET, found, ()))
        for each in seen:
            report(turn, each)
        forget_ended(turn, {each.found.key for each in seen})
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


def test_a_refused_agent_is_asked_for_under_another_name_and_then_seldom(host: Host) -> None:
    assert host.turn(foreign("work")) == ["work"]
    assert host.turn(foreign("work")) == [], "it is under way"
    host.answer("refused")
    assert host.turn(foreign("work")) == ["work-2"]
    host.answer("refused")
    assert host.turn(foreign("work")) == []
    host.later(REFUSED_TWICE_S - 1)
    assert host.turn(foreign("work")) == []
    host.later(1)
    assert host.turn(foreign("work")) == ["work-3"]
    names = []
    for _ in range(6):
        host.answer("refused")
        host.later(REFUSED_TWICE_S)
        names += host.turn(foreign("work"))
    assert names == ["work-4", "work-5", "work-6", "work", "work-2", "work-3"], "the names do not grow for ever"


def test_an_agent_that_lost_its_stamp_is_asked_for_again_after_a_while(host: Host) -> None:
    assert host.turn(foreign("work")) == ["work"]
    host.answer("ok")
    assert host.turn(poll=True) == []
    assert host.memory, "it may be seen again at once"
    assert host.turn(foreign("work")) == []
    host.later(STAMP_LOST_S)
    assert host.turn(foreign("work")) == ["work"]
    host.answer("ok")
    host.later(STAMP_LOST_S)
    host.turn(poll=True)
    assert not host.memory


def test_an_agent_whose_adoption_expired_is_asked_for_again_under_its_name(host: Host) -> None:
    host.turn(foreign("work"))
    host.answer("expired")
    assert host.turn(foreign("work")) == ["work"]


def test_a_process_is_recognised_after_the_clock_was_set(host: Host) -> None:
    assert host.turn(foreign("work", process=Process(1, 0, "claude", 1.00, 77))) == ["work"]
    assert host.turn(foreign("work", process=Process(1, 0, "claude", 1.02, 77))) == []
    assert host.memory.keys() == {FOREIGN_AGENTS.key("1-77")}
