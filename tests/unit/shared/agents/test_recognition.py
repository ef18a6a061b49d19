"""Which agent runs in a tree of processes."""

import pytest

from shared.agents.recognition import agent_in, recognised_by
from shared.fleet import Backend
from shared.fleet.profiles import shipped
from tests.fakes.processes import Row, process_tree


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
    answer = agent_in(process_tree(rows), shipped(), 5)
    assert (answer and (answer[0], answer[1].pid)) == found


def test_what_is_above_the_pane_does_not_matter() -> None:
    tree = process_tree([(4, 1, ["codex"]), (5, 4, ["claude"])])
    answer = agent_in(tree, shipped(), 5)
    assert answer is not None
    assert answer[0] == "claude"


def test_two_backends_of_one_name_are_not_told_apart() -> None:
    backends = {"one": Backend(binary="/x/agent"), "two": Backend(binary="other", process=["agent"])}
    assert agent_in(process_tree([(5, 1, ["agent"])]), backends, 5) is None


def test_a_backend_like_another_is_never_recognised() -> None:
    backends = {"claude": shipped()["claude"], "mine": Backend(like="claude", binary="claude", process=["claude"])}
    answer = agent_in(process_tree([(5, 1, ["claude"])]), backends, 5)
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
