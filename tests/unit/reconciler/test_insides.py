"""What runs in a pane: looked at when it is worth it, a few at a time, and believed when it was seen twice."""

from pathlib import Path

from services.reconciler.insides import AT_LEAST_S, DOUBTS_S, LATER_S, SOON_S, STARTS_S, Insides, examine
from shared.fleet import Declaration, Fleet
from shared.processes import Process, Processes
from shared.tmux import Pane
from tests.unit.reconciler.seeing import pane, record

FLEET = Fleet(
    Path("/f/fleet.yaml"),
    Declaration.model_validate(
        {"backends": {"mine": {"like": "claude"}, "plain": {"binary": "sh"}, "tool": {"binary": "tool"}}}
    ),
)
SHELL, CLAUDE = Process(7, 1, "bash", 1.0), Process(8, 7, "claude", 2.0)
CODEX = Process(9, 7, "codex", 2.0)


class Watch:
    """Insides, and what they were asked to look at."""

    def __init__(self, *processes: Process) -> None:
        self.processes = list(processes)
        self.insides = Insides()
        self.looks = 0
        self.records = {"builder": record(backend="tool")}

    def _look(self) -> Processes:
        self.looks += 1
        return Processes(self.processes)

    def look(self, now: float, *panes: Pane, at_most: int = 10) -> float | None:
        seen = {each.agent or "": each for each in panes or (pane(),)}
        self.looks = 0
        return self.insides.look(FLEET, self.records, seen, self._look, now, at_most=at_most)

    def right(self) -> bool | None:
        return self.insides.of("builder", pane()).runs_its_backend


def test_the_program_is_told_by_the_processes_in_the_pane() -> None:
    processes = Processes([SHELL, CLAUDE])
    assert examine(FLEET, record(backend="claude"), pane(), processes).runs_its_backend is True
    assert examine(FLEET, record(backend="mine"), pane(), processes).runs_its_backend is True, "it is like claude"
    other = examine(FLEET, record(backend="codex"), pane(), processes)
    assert (other.runs_its_backend, other.found) == (False, "claude")
    shell = examine(FLEET, record(backend="codex"), pane(), Processes([SHELL]))
    assert (shell.runs_its_backend, shell.found) == (False, None)


def test_what_can_not_be_told_is_not_wrong() -> None:
    assert examine(FLEET, record(backend="plain"), pane(), Processes([SHELL])).runs_its_backend is None
    assert examine(FLEET, record(backend="gone"), pane(), Processes([SHELL])).runs_its_backend is None
    assert examine(FLEET, record(backend="claude"), pane(), Processes([])).runs_its_backend is None


def test_a_session_that_nobody_recorded_is_known_by_its_program() -> None:
    assert examine(FLEET, None, pane(), Processes([SHELL, CODEX])).found == "codex"


def test_what_was_just_seen_is_not_looked_at_again() -> None:
    watch = Watch(SHELL, Process(8, 7, "tool", 2.0))
    assert watch.look(1000) == 1000 + AT_LEAST_S
    assert watch.looks == 1
    watch.look(1001)
    assert watch.looks == 0
    assert watch.look(1001, pane(activity=99)) == 1000 + LATER_S
    watch.look(1000 + LATER_S, pane(activity=99))
    assert watch.looks == 1
    watch.look(1001 + LATER_S, pane(command="vim", activity=99))
    assert watch.looks == 1, "another program is a reason to look"


def test_an_agent_that_has_not_said_who_it_is_is_looked_at_often_while_it_is_young() -> None:
    watch = Watch(SHELL, CLAUDE)
    watch.records = {"builder": record(backend="claude")}
    assert watch.look(1000, pane(created=990)) == 1000 + SOON_S
    watch.records = {"builder": record(backend="claude", conversation="c", transcript="/t")}
    assert watch.look(1000.5, pane(created=990)) == 1000 + AT_LEAST_S


def test_a_wrong_program_is_believed_the_second_time() -> None:
    watch = Watch(SHELL)
    assert watch.look(1000) == 1000 + DOUBTS_S
    assert watch.right() is None
    watch.look(1000 + DOUBTS_S)
    assert watch.right() is False
    watch.processes.append(Process(8, 7, "tool", 2.0))
    watch.look(1000 + DOUBTS_S + 1, pane(command="tool"))
    assert watch.right() is True


def test_a_session_that_was_just_started_may_still_be_on_its_way() -> None:
    watch = Watch(SHELL)
    young = pane(created=1000)
    for now in range(1000, int(1000 + STARTS_S), 2):
        watch.look(now, young)
        assert watch.right() is None
    watch.look(1000 + STARTS_S + DOUBTS_S, young)
    assert watch.right() is False


def test_doubts_outlive_a_thorough_look() -> None:
    watch = Watch(SHELL)
    watch.look(1000)
    watch.insides.forget()
    watch.look(1000.1)
    assert watch.right() is False


def test_a_few_at_a_time_and_the_rest_at_once_after() -> None:
    watch = Watch(SHELL)
    panes = [pane(agent=f"a{number}") for number in range(5)]
    assert watch.look(1000, *panes, at_most=2) == 1000
    assert watch.look(1000.1, *panes, at_most=2) == 1000.1
    assert watch.look(1000.2, *panes, at_most=2) == 1000 + AT_LEAST_S
    watch.look(1000.3, *panes, at_most=2)
    assert watch.looks == 0


def test_a_dead_pane_has_no_inside() -> None:
    watch = Watch(SHELL)
    assert watch.look(1000, pane(dead=True)) is None
    assert watch.looks == 0
