"""Trees of processes, and what they are called."""

from collections.abc import Sequence

import psutil
import pytest

from shared.system.processes import Process, Processes, arguments_of, cwd_of, environment_of, opened_by
from tests.fakes.processes import process_tree


def pids(processes: Processes, pid: int) -> list[int]:
    return [process.pid for process in processes.below(pid)]


def test_below_a_process_parents_come_first() -> None:
    tree = process_tree(
        [(1, 0, ["init"]), (5, 1, ["sh"]), (9, 5, ["b"]), (7, 5, ["a"]), (8, 7, ["c"]), (6, 1, ["other"])]
    )
    assert pids(tree, 5) == [5, 9, 7, 8]
    assert pids(tree, 8) == [8]
    assert pids(tree, 77) == []


def test_a_process_is_no_child_of_a_younger_one() -> None:
    """Its parent ended, and the number was given away between two reads."""
    tree = process_tree([(5, 1, ["sh"]), (6, 5, ["old"]), (7, 5, ["young"])], {5: 100.0, 6: 50.0, 7: 100.0})
    assert pids(tree, 5) == [5, 7]


def test_a_child_is_found_though_the_clock_was_set_back_before_it_began() -> None:
    tree = Processes([Process(5, 1, "sh", 7_200.0, ticks=100), Process(6, 5, "tool", 60.0, ticks=200)])
    assert pids(tree, 5) == [5, 6]


def test_a_circle_ends() -> None:
    tree = process_tree([(5, 6, ["a"]), (6, 5, ["b"]), (0, 0, ["kernel"])], {5: 1.0, 6: 1.0, 0: 1.0})
    assert sorted(pids(tree, 5)) == [5, 6]
    assert pids(tree, 0) == [0]


@pytest.mark.parametrize(
    ("words", "called"),
    [
        (["claude"], {"claude"}),
        (["/opt/x/claude", "--resume", "codex"], {"claude"}),
        (["node", "/usr/bin/gemini"], {"node", "gemini"}),
        (["/usr/bin/node", "--max-old-space-size=1", "/usr/bin/gemini", "codex"], {"node", "gemini"}),
        (["python3.11", "-m", "aider"], {"python3.11", "aider"}),
        (["python3", "-I", "/x/demo_agent.py"], {"python3", "demo_agent.py"}),
        (["python3", "-c", "import x", "claude"], {"python3"}),
        (["bash", "/usr/local/bin/claude"], {"bash", "claude"}),
        (["bash", "-c", "claude"], {"bash"}),
        (["-bash"], {"-bash", "bash"}),
        (["vim", "claude"], {"vim"}),
        (["tail", "-f", "codex"], {"tail"}),
        (["ssh", "claude"], {"ssh"}),
        (["tmux", "attach", "claude"], {"tmux"}),
    ],
)
def test_an_argument_is_a_name_only_if_it_is_run(words: Sequence[str], called: set[str]) -> None:
    tree = process_tree([(5, 1, words)])
    assert tree.names(tree.below(5)[0]) == called


def test_a_process_whose_command_line_is_hidden_has_the_kernels_name() -> None:
    tree = process_tree([(5, 1, ["claude"])], hidden=True)
    assert tree.names(tree.below(5)[0]) == {"claude"}


def test_a_process_that_is_gone_or_not_ours_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Process(2**22 + 1, 1, "gone", 1.0, 1)
    for error in (psutil.NoSuchProcess(1), psutil.AccessDenied(1), psutil.ZombieProcess(1), PermissionError()):

        def refuse(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(psutil.Process, "__init__", refuse)
        assert (list(arguments_of(gone)), dict(environment_of(gone))) == ([], {})
        assert (cwd_of(gone), opened_by(gone)) == (None, [])
