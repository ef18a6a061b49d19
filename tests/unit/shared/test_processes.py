"""Trees of processes, what they are called, and which agent they are."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import psutil
import pytest

from shared.fleet import Backend
from shared.fleet.shipped import shipped
from shared.processes import (
    Process,
    Processes,
    agent_in,
    arguments_of,
    cwd_of,
    environment_of,
    open_files_of,
    recognised_by,
)

Row = tuple[int, int, Sequence[str]]


class Tree(Processes):
    """Rows of pid, parent and command line; the kernel's name is that of the program."""

    def __init__(
        self, rows: Iterable[Row], started: Mapping[int, float] | None = None, *, hidden: bool = False
    ) -> None:
        rows = list(rows)
        super().__init__(
            Process(pid, parent, Path(words[0]).name[:15], (started or {}).get(pid, float(place)), place)
            for place, (pid, parent, words) in enumerate(rows)
        )
        self._words = {pid: () if hidden else words for pid, _, words in rows}

    def arguments(self, process: Process) -> Sequence[str]:
        return self._words[process.pid]


def pids(processes: Processes, pid: int) -> list[int]:
    return [process.pid for process in processes.below(pid)]


def test_below_a_process_parents_come_first() -> None:
    tree = Tree([(1, 0, ["init"]), (5, 1, ["sh"]), (9, 5, ["b"]), (7, 5, ["a"]), (8, 7, ["c"]), (6, 1, ["other"])])
    assert pids(tree, 5) == [5, 9, 7, 8]
    assert pids(tree, 8) == [8]
    assert pids(tree, 77) == []


def test_a_process_is_no_child_of_a_younger_one() -> None:
    """Its parent ended, and the number was given away between two reads."""
    tree = Tree([(5, 1, ["sh"]), (6, 5, ["old"]), (7, 5, ["young"])], {5: 100.0, 6: 50.0, 7: 100.0})
    assert pids(tree, 5) == [5, 7]


def test_a_circle_ends() -> None:
    tree = Tree([(5, 6, ["a"]), (6, 5, ["b"]), (0, 0, ["kernel"])], {5: 1.0, 6: 1.0, 0: 1.0})
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
def test_a_word_is_a_name_only_where_it_is_run(words: Sequence[str], called: set[str]) -> None:
    tree = Tree([(5, 1, words)])
    assert tree.names(tree.below(5)[0]) == called


def test_a_process_whose_command_line_is_hidden_has_the_kernels_name() -> None:
    tree = Tree([(5, 1, ["claude"])], hidden=True)
    assert tree.names(tree.below(5)[0]) == {"claude"}


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([(5, 1, ["claude"])], ("claude", 5)),
        ([(5, 1, ["-bash"]), (6, 5, ["claude", "--resume", "x"])], ("claude", 6)),
        ([(5, 1, ["node", "/x/codex"]), (6, 5, ["/x/vendor/codex"])], ("codex", 5)),
        ([(5, 1, ["zsh"]), (6, 5, ["sudo", "claude"]), (7, 6, ["claude"])], ("claude", 7)),
        # an agent runs another: it is the one in the pane
        ([(5, 1, ["claude"]), (6, 5, ["bash", "-c", "codex exec x"]), (7, 6, ["codex"])], ("claude", 5)),
        # side by side: one is in the background, and nobody knows which
        ([(5, 1, ["bash"]), (6, 5, ["claude"]), (7, 5, ["codex"])], None),
        ([(5, 1, ["bash"]), (6, 5, ["claude"]), (7, 5, ["claude"])], None),
        ([(5, 1, ["bash"]), (6, 5, ["vim", "claude"])], None),
        ([(5, 1, ["bash"])], None),
        ([(5, 1, ["python3", "-I", "/x/agent.py", "builder"])], None),
        ([(9, 1, ["claude"])], None),
    ],
)
def test_the_agent_in_a_pane(rows: list[Row], found: tuple[str, int] | None) -> None:
    answer = agent_in(Tree(rows), shipped(), 5)
    assert (answer and (answer[0], answer[1].pid)) == found


def test_what_is_above_the_pane_does_not_matter() -> None:
    tree = Tree([(4, 1, ["codex"]), (5, 4, ["claude"])])
    answer = agent_in(tree, shipped(), 5)
    assert answer is not None
    assert answer[0] == "claude"


def test_two_backends_of_one_name_are_not_told_apart() -> None:
    backends = {"one": Backend(binary="/x/agent"), "two": Backend(binary="other", process=["agent"])}
    assert agent_in(Tree([(5, 1, ["agent"])]), backends, 5) is None


def test_a_backend_like_another_is_never_recognised() -> None:
    backends = {"claude": shipped()["claude"], "mine": Backend(like="claude", binary="claude", process=["claude"])}
    answer = agent_in(Tree([(5, 1, ["claude"])]), backends, 5)
    assert answer is not None
    assert answer[0] == "claude"


@pytest.mark.parametrize(
    ("backend", "names"),
    [
        (Backend(binary="/opt/agent"), {"agent"}),
        (Backend(binary="agent", process=["a", "b"]), {"a", "b"}),
        (Backend(binary="python3"), set()),
        (Backend(binary="/usr/bin/python3.12"), set()),
        (Backend(binary="{python}"), set()),
        (Backend(binary="bash"), set()),
        (Backend(binary="npx"), set()),
        (Backend(binary="node", process=["node"]), {"node"}),
        (Backend(binary="x", process=["{agent}", ""]), set()),
        (Backend(), set()),
        (Backend(like="claude", binary="claude"), set()),
    ],
)
def test_only_telling_names_are_heeded(backend: Backend, names: set[str]) -> None:
    assert recognised_by(backend) == names


def test_a_process_that_is_gone_or_not_ours_tells_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Process(2**22 + 1, 1, "gone", 1.0, 1)
    for error in (psutil.NoSuchProcess(1), psutil.AccessDenied(1), psutil.ZombieProcess(1), PermissionError()):

        def refuse(*_: object, error: Exception = error) -> None:
            raise error

        monkeypatch.setattr(psutil.Process, "__init__", refuse)
        assert (list(arguments_of(gone)), dict(environment_of(gone))) == ([], {})
        assert (cwd_of(gone), open_files_of(gone)) == (None, [])
