"""The demo agent's script: lines of a prompt become steps in a real clone, and none leads out of it."""

from pathlib import Path

import pytest

from shared.agents.demo.demo_script import TEMPO, DemoScript, ScriptFailed, for_people, play, tempo
from tests.fixtures.repositories import Clone, bare, git

PROMPT = """You are the builder.
<!--
demo: on start: work 1; write a.md some words; push claim: a is ready
  demo: on review: push status: done; exit
-->"""


def test_a_prompt_with_lines_is_a_beginning_and_messages_are_known_by_a_word() -> None:
    script = DemoScript()
    script.learn(PROMPT)
    assert script.steps(PROMPT) == ["work 1", "write a.md some words", "push claim: a is ready"]
    assert script.steps("ada committed 12: Review: fine") == ["push status: done", "exit"]
    assert script.steps("it was previewed, and started") == []


def test_lines_of_a_later_prompt_take_the_place_of_earlier_ones() -> None:
    script = DemoScript()
    script.learn(PROMPT)
    script.learn("demo: on review: push two")
    assert script.steps("a review") == ["push two"]


def test_people_see_a_prompt_without_the_lines_of_its_script() -> None:
    assert for_people(PROMPT) == "You are the builder."
    assert for_people("Sort them.\ndemo: on start: work 1\nOne by one.") == "Sort them. One by one."
    assert for_people("it says: demo: on start: work 1") == "it says: demo: on start: work 1"


@pytest.mark.parametrize(("said", "times"), [("6", 6.0), ("0.5", 0.5), ("0", 0.1), ("fast", 1.0), (None, 1.0)])
def test_a_tempo_that_makes_no_sense_changes_nothing(
    said: str | None, times: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TEMPO, raising=False)
    if said is not None:
        monkeypatch.setenv(TEMPO, said)
    assert tempo() == times


@pytest.fixture
def clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clone:
    clone = Clone(bare(tmp_path / "x.git"), tmp_path / "clone")
    monkeypatch.chdir(clone.path)
    return clone


def test_steps_are_done_and_pushed_also_when_somebody_else_was_first(clone: Clone, tmp_path: Path) -> None:
    for step in ("pull", "write docs/a.md some words", "push claim: a"):
        list(play(step))
    other = Clone(clone.remote, tmp_path / "other", "bob")
    other.commit("meanwhile", b="x\n")
    other.push()
    for step in ("delete docs/a.md", "push done"):
        list(play(step))
    assert git(clone.remote, "log", "--reverse", "--format=%an %s", "main").split("\n") == [
        "ada claim: a",
        "bob meanwhile",
        "ada done",
    ]
    assert git(clone.remote, "ls-tree", "--name-only", "main") == "b"


@pytest.mark.parametrize("step", ["write ../out x", "write /tmp/out x", "write .git/config x", "write  x", "delete .."])
def test_no_step_leads_out_of_the_workspace(clone: Clone, step: str) -> None:
    with pytest.raises(ScriptFailed, match=r"is no file of the workspace"):
        list(play(step))


def test_what_it_can_not_do_is_said(clone: Clone) -> None:
    with pytest.raises(ScriptFailed, match=r"a demo agent can't do 'sudo'"):
        list(play("sudo rm"))
    git(clone.path, "remote", "set-url", "origin", "/nowhere")
    with pytest.raises(ScriptFailed, match=r"^git ls-remote: "):
        list(play("pull"))
