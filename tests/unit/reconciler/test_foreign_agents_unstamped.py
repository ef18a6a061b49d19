"""Agents in panes without a stamp."""

from pathlib import Path
from typing import Any

from services.reconciler.foreign_agents import LOOK_VALID_S, SETTLES_S, ForeignAgent, UnstampedPanes
from shared.fleet import Declaration, Fleet
from shared.system.processes import Process, Processes
from shared.system.tmux import Pane
from tests.unit.reconciler.samples import pane

FLEET = Fleet(Path("/f/fleet.yaml"), Declaration())
SHELL, CLAUDE = Process(7, 1, "bash", 100.0), Process(8, 7, "claude", 900.0)


def unstamped(**changes: Any) -> Pane:
    return pane(None, **{"agent": None, "fleet": None, **changes})


class View:
    def __init__(self, *processes: Process) -> None:
        self.processes = list(processes)
        self.unstamped = UnstampedPanes()
        self.looks = 0

    def _look(self) -> Processes:
        self.looks += 1
        return Processes(self.processes)

    def look(self, now: float, *panes: Pane) -> list[ForeignAgent]:
        self.looks = 0
        return list(self.unstamped.look(FLEET, panes, self._look, now))


def test_an_agent_that_a_person_started_is_found() -> None:
    (found,) = View(SHELL, CLAUDE).look(1000, unstamped())
    assert (found.backend, found.process, found.alone) == ("claude", CLAUDE, True)


def test_an_agent_in_a_session_of_two_panes_is_not_alone() -> None:
    other = unstamped(pane_id="%2", pid=70)
    (found,) = View(SHELL, CLAUDE).look(1000, unstamped(), other)
    assert not found.alone


def test_a_pane_that_is_stamped_dead_or_was_forgotten_is_not_looked_into() -> None:
    view = View(SHELL, CLAUDE)
    assert view.look(1000, pane("s1"), unstamped(dead=True), unstamped(left="f"), unstamped(left="another")) == []
    assert view.looks == 0


def test_a_program_that_has_just_started_is_looked_at_when_it_has_settled() -> None:
    view = View(SHELL, CLAUDE)
    assert view.look(901, unstamped()) == []
    assert view.unstamped.next_look == 900 + SETTLES_S
    assert len(view.look(900 + SETTLES_S, unstamped())) == 1


def test_after_the_clock_was_set_back_a_program_of_the_future_is_old() -> None:
    view = View(SHELL, CLAUDE)
    assert view.look(899.9, unstamped()) == [], "it began while we looked"
    assert len(view.look(500, unstamped())) == 1
    view.processes.remove(CLAUDE)
    assert view.look(300, unstamped()) == [], "what was seen in the future is looked at again"


def test_a_shell_is_looked_at_again_for_an_agent_that_it_may_start() -> None:
    view = View(SHELL)
    assert view.look(1000, unstamped()) == []
    assert view.unstamped.next_look == 1000 + SETTLES_S
    assert view.look(1001, unstamped()) == []
    assert view.looks == 0
    assert not view.unstamped.next_look
    view.processes.append(CLAUDE)
    assert len(view.look(1000 + SETTLES_S, unstamped())) == 1


def test_a_found_agent_stays_found_without_another_look() -> None:
    view = View(SHELL, CLAUDE)
    (first,) = view.look(1000, unstamped())
    assert view.look(1001, unstamped()) == [first]
    assert view.looks == 0
    view.processes.remove(CLAUDE)
    assert view.look(1000 + LOOK_VALID_S, unstamped()) == []
    assert view.look(1001 + LOOK_VALID_S, unstamped(command="vim")) == []
