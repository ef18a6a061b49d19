"""What runs in a pane: examined when it may have changed, a few at a time; a wrong program must be seen twice."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from registry import AgentRecord
from services.reconciler import examination
from services.reconciler.classification import Examination
from services.reconciler.examination import (
    GATHERS_FOR_S,
    LEFT_OVER_AFTER_S,
    STARTING_SESSION_S,
    VALID_AT_FIRST_S,
    VALID_AT_MOST_S,
    VALID_IF_ACTIVE_S,
    WRONG_CONFIRMED_AFTER_S,
    PaneExaminer,
    examine,
)
from shared.fleet import Declaration, Fleet
from shared.system.processes import Process, Processes
from shared.system.tmux import Pane
from tests.unit.reconciler.samples import pane, record

FLEET = Fleet(
    Path("/f/fleet.yaml"),
    Declaration.model_validate(
        {"backends": {"mine": {"like": "claude"}, "plain": {"binary": "sh"}, "tool": {"binary": "tool"}}}
    ),
)
SHELL, CLAUDE = Process(7, 1, "bash", 1.0), Process(8, 7, "claude", 2.0)
CODEX = Process(9, 7, "codex", 2.0)


class Examined:
    """An examiner, and how often it read the processes."""

    def __init__(self, *processes: Process) -> None:
        self.processes = list(processes)
        self.examiner = PaneExaminer()
        self.looks = 0
        self.records = {"builder": record(backend="tool")}

    def _look(self) -> Processes:
        self.looks += 1
        return Processes(self.processes)

    def look(self, now: float, *panes: Pane, at_most_s: float = 10) -> float | None:
        seen = {each.agent or "": each for each in panes or (pane(),)}
        self.looks = 0
        return self.examiner.update(FLEET, self.records, seen, self._look, now, at_most_s=at_most_s)

    def right(self) -> bool | None:
        return self.examiner.of("builder", pane()).runs_its_backend


def test_the_program_is_recognised_by_the_processes_in_the_pane() -> None:
    processes = Processes([SHELL, CLAUDE])
    assert examine(FLEET, record(backend="claude"), pane(), processes).runs_its_backend is True
    assert examine(FLEET, record(backend="mine"), pane(), processes).runs_its_backend is True, "it is like claude"
    other = examine(FLEET, record(backend="codex"), pane(), processes)
    assert (other.runs_its_backend, other.found) == (False, "claude")
    shell = examine(FLEET, record(backend="codex"), pane(), Processes([SHELL]))
    assert (shell.runs_its_backend, shell.found) == (False, None)


def test_a_program_that_can_not_be_recognised_is_unknown_not_wrong() -> None:
    assert examine(FLEET, record(backend="plain"), pane(), Processes([SHELL])).runs_its_backend is None
    assert examine(FLEET, record(backend="gone"), pane(), Processes([SHELL])).runs_its_backend is None
    assert examine(FLEET, record(backend="claude"), pane(), Processes([])).runs_its_backend is None


def test_a_session_without_a_record_is_recognised_by_its_program() -> None:
    assert examine(FLEET, None, pane(), Processes([SHELL, CODEX])).found == "codex"


def test_a_pane_is_not_examined_again_while_its_examination_is_valid() -> None:
    examined = Examined(SHELL, Process(8, 7, "tool", 2.0))
    assert examined.look(1000) == 1000 + VALID_AT_MOST_S
    assert examined.looks == 1
    examined.look(1001)
    assert examined.looks == 0
    assert examined.look(1001, pane(activity=99)) == 1000 + VALID_IF_ACTIVE_S
    examined.look(1000 + VALID_IF_ACTIVE_S, pane(activity=99))
    assert examined.looks == 1
    examined.look(1001 + VALID_IF_ACTIVE_S, pane(command="vim", activity=99))
    assert examined.looks == 1, "another program is a reason to look"


def test_an_unidentified_agent_is_examined_often_while_it_is_young() -> None:
    examined = Examined(SHELL, CLAUDE)
    examined.records = {"builder": record(backend="claude")}
    assert examined.look(1000, pane(created=990)) == 1000 + VALID_AT_FIRST_S
    examined.records = {"builder": record(backend="claude", conversation="c", transcript="/t")}
    assert examined.look(1000.5, pane(created=990)) == 1000 + VALID_AT_MOST_S


def test_a_wrong_program_counts_the_second_time() -> None:
    examined = Examined(SHELL)
    assert examined.look(1000) == 1000 + WRONG_CONFIRMED_AFTER_S
    assert examined.right() is None
    examined.look(1000 + WRONG_CONFIRMED_AFTER_S)
    assert examined.right() is False
    examined.processes.append(Process(8, 7, "tool", 2.0))
    examined.look(1000 + WRONG_CONFIRMED_AFTER_S + 1, pane(command="tool"))
    assert examined.right() is True


def test_a_session_that_is_still_starting_has_no_wrong_program() -> None:
    examined = Examined(SHELL)
    young = pane(created=1000)
    for now in range(1000, int(1000 + STARTING_SESSION_S), 2):
        examined.look(now, young)
        assert examined.right() is None
    examined.look(1000 + STARTING_SESSION_S + WRONG_CONFIRMED_AFTER_S, young)
    assert examined.right() is False


def test_a_wrong_program_is_remembered_over_a_thorough_look() -> None:
    examined = Examined(SHELL)
    examined.look(1000)
    examined.examiner.expire()
    examined.look(1000.1)
    assert examined.right() is False


def test_a_few_panes_are_examined_at_a_time_and_the_rest_soon_after() -> None:
    examined = Examined(SHELL)
    examined.examiner.clock = iter(range(100)).__next__  # each look takes a second
    panes = [pane(agent=f"a{number}") for number in range(5)]
    assert examined.look(1000, *panes, at_most_s=2) == 1000 + LEFT_OVER_AFTER_S
    assert examined.look(1000.1, *panes, at_most_s=2) == 1000.1 + LEFT_OVER_AFTER_S
    assert examined.look(1000.2, *panes, at_most_s=2) == 1000 + VALID_AT_MOST_S
    examined.look(1000.3, *panes, at_most_s=2)
    assert examined.looks == 0


def test_an_examination_of_the_future_is_not_valid() -> None:
    examined = Examined(SHELL, Process(8, 7, "tool", 2.0))
    examined.look(10_000)
    examined.look(5_000)
    assert examined.looks == 1, "the clock was set back"


def looks_of(examined: Examined, begins: int, lasts: int, **about: Any) -> list[int]:
    """When the pane of an agent that is active every second was examined."""
    return [
        now - begins
        for now in range(begins, begins + lasts)
        if examined.look(now, pane(**{"activity": now, **about})) is not None and examined.looks
    ]


def test_an_agent_that_shows_nothing_new_is_examined_less_often() -> None:
    examined = Examined(SHELL, CLAUDE)
    examined.records = {"builder": record(backend="claude")}
    assert looks_of(examined, 1000, 200) == [0, 1, 3, 7, 15, 31, 63, 123, 183]
    assert looks_of(examined, 1200, 10, pid=7, created=1) == []
    assert looks_of(examined, 1210, 10, command="node")[:3] == [0, 1, 3], "another program may say more"


def test_an_agent_that_was_quiet_for_long_is_examined_soon_again() -> None:
    examined = Examined(SHELL, CLAUDE)
    examined.records = {"builder": record(backend="claude")}
    looks_of(examined, 1000, 130)
    assert looks_of(examined, 1130, 70, activity=1129) == [53]
    assert looks_of(examined, 1200, 10)[:3] == [0, 1, 3]


def test_a_young_session_is_examined_at_a_steady_interval() -> None:
    examined = Examined(SHELL, CLAUDE)
    examined.records = {"builder": record(backend="claude")}
    assert looks_of(examined, 1000, 20, created=1000, activity=1) == [0, 1, 3, 7, 11, 15, 19]
    assert looks_of(examined, 100, 20, created=1000, activity=1) == [0], "from the future: it is old"


def test_small_programs_that_come_and_go_are_soon_no_reason_to_examine() -> None:
    examined = Examined(SHELL, Process(8, 7, "tool", 2.0))
    changes = [pane(command="sleep" if now % 2 else "tool", activity=1) for now in range(100)]
    looks = [now for now, each in enumerate(changes) if examined.look(1000 + now, each) and examined.looks]
    assert looks[:4] == [0, 1, 2, 3]
    assert len(looks) < 12
    examined.look(1200, pane(command="tool", activity=1))
    examined.look(1300, pane(command="sleep", activity=1))
    examined.look(1301, pane(command="tool", activity=1))
    assert examined.looks == 1, "one that comes back after long is one"
    examined.look(1301.1, pane(command="vim", activity=1))
    assert examined.looks == 1, "and so is a new one"


def test_an_agent_that_leaves_its_shell_behind_is_seen_at_once() -> None:
    examined = Examined(SHELL)
    examined.look(1000, pane(command="bash"))
    examined.processes.append(Process(8, 7, "tool", 2.0))
    examined.look(1001, pane(command="tool"))
    assert examined.right() is True
    for now in range(1060, 2000, 60):
        examined.look(now, pane(command="tool", activity=now))
    examined.processes.pop()
    examined.look(2001, pane(command="bash"))
    examined.look(2001 + WRONG_CONFIRMED_AFTER_S, pane(command="bash"))
    assert examined.right() is False


class Crowd:
    """Many unidentified agents that are always active, and a clock that examinations move."""

    def __init__(self, size: int, *, look_s: float, exam_s: float) -> None:
        self.examiner = PaneExaminer(clock=lambda: self.now)
        self.now, self._look_s, self._exam_s = 1_000_000.0, look_s, exam_s
        self.exams: list[tuple[float, str]] = []
        self.turns = 0
        self._panes = [pane(f"s{n}", agent=f"a{n}", pid=1000 + n, created=1) for n in range(size)]
        self._records = {f"a{n}": record(backend="claude", spawn=f"s{n}") for n in range(size)}
        self._processes = Processes([Process(1000 + n, 1, "claude", 2.0) for n in range(size)])

    def run(self, seconds: float) -> None:
        ends = self.now + seconds
        while self.now < ends:
            panes = {each.agent or "": replace(each, activity=int(self.now)) for each in self._panes}
            began = self.now
            again = self.examiner.update(FLEET, self._records, panes, lambda: self._processes, began)
            self.turns += 1
            self.now = max(self.now, again or ends) + self._look_s

    def examine(self, _: Fleet, __: AgentRecord | None, seen: Pane, ___: Processes) -> Examination:
        self.now += self._exam_s
        self.exams.append((self.now, seen.agent or ""))
        return Examination(runs_its_backend=True)


@pytest.mark.parametrize(("size", "exam_s", "within_s"), [(300, 0.0005, 2), (60, 0.02, 6)])
def test_all_of_many_agents_are_examined_and_then_seldom(
    size: int, exam_s: float, within_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    crowd = Crowd(size, look_s=0.02, exam_s=exam_s)
    monkeypatch.setattr(examination, "examine", crowd.examine)
    crowd.run(within_s)
    assert len({agent for _, agent in crowd.exams}) == size
    crowd.run(100)
    crowd.exams.clear()
    crowd.turns = 0
    crowd.run(65)
    assert len({agent for _, agent in crowd.exams}) == size
    assert len(crowd.exams) <= 2 * size, "each once a minute"
    assert crowd.turns / 65 <= 1 / GATHERS_FOR_S


def test_a_dead_pane_is_not_examined() -> None:
    examined = Examined(SHELL)
    assert examined.look(1000, pane(dead=True)) is None
    assert examined.looks == 0
