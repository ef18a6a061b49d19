"""Agents in panes that bear nobody's stamp."""

from pathlib import Path
from typing import Any

from services.reconciler.foreign_agents import GOOD_FOR_S, SETTLES_S, Stranger, UnstampedPanes
from shared.fleet import Declaration, Fleet
from shared.system.processes import Process, Processes
from shared.system.tmux import Pane
from tests.unit.reconciler.samples import pane

FLEET = Fleet(Path("/f/fleet.yaml"), Declaration())
SHELL, CLAUDE = Process(7, 1, "bash", 100.0), Process(8, 7, "claude", 900.0)


def nobodys(**changes: Any) -> Pane:
    return pane(None, **{"agent": None, "fleet": None, **changes})


class Watch:
    def __init__(self, *processes: Process) -> None:
        self.processes = list(processes)
        self.unstamped = UnstampedPanes()
        self.looks = 0

    def _look(self) -> Processes:
        self.looks += 1
        return Processes(self.processes)

    def look(self, now: float, *panes: Pane) -> list[Stranger]:
        self.looks = 0
        return list(self.unstamped.look(FLEET, panes, self._look, now))


def test_an_agent_that_somebody_started_is_found() -> None:
    (found,) = Watch(SHELL, CLAUDE).look(1000, nobodys())
    assert (found.backend, found.process, found.alone) == ("claude", CLAUDE, True)


def test_whoever_shares_a_session_is_not_alone() -> None:
    other = nobodys(pane_id="%2", pid=70)
    (found,) = Watch(SHELL, CLAUDE).look(1000, nobodys(), other)
    assert not found.alone


def test_what_is_stamped_dead_or_was_let_go_is_no_stranger() -> None:
    watch = Watch(SHELL, CLAUDE)
    assert watch.look(1000, pane("s1"), nobodys(dead=True), nobodys(left="f"), nobodys(left="another")) == []
    assert watch.looks == 0


def test_a_program_that_has_just_begun_is_looked_at_when_it_has_settled() -> None:
    watch = Watch(SHELL, CLAUDE)
    assert watch.look(901, nobodys()) == []
    assert watch.unstamped.next_look == 900 + SETTLES_S
    assert len(watch.look(900 + SETTLES_S, nobodys())) == 1


def test_after_the_clock_was_set_back_what_began_in_the_future_is_old() -> None:
    watch = Watch(SHELL, CLAUDE)
    assert watch.look(899.9, nobodys()) == [], "it began while we looked"
    assert len(watch.look(500, nobodys())) == 1
    watch.processes.remove(CLAUDE)
    assert watch.look(300, nobodys()) == [], "what was seen in the future is looked at again"


def test_a_shell_may_be_about_to_start_one() -> None:
    watch = Watch(SHELL)
    assert watch.look(1000, nobodys()) == []
    assert watch.unstamped.next_look == 1000 + SETTLES_S
    assert watch.look(1001, nobodys()) == []
    assert watch.looks == 0
    assert not watch.unstamped.next_look
    watch.processes.append(CLAUDE)
    assert len(watch.look(1000 + SETTLES_S, nobodys())) == 1


def test_one_that_was_found_stays_so_without_another_look() -> None:
    watch = Watch(SHELL, CLAUDE)
    (first,) = watch.look(1000, nobodys())
    assert watch.look(1001, nobodys()) == [first]
    assert watch.looks == 0
    watch.processes.remove(CLAUDE)
    assert watch.look(1000 + GOOD_FOR_S, nobodys()) == []
    assert watch.look(1001 + GOOD_FOR_S, nobodys(command="vim")) == []
