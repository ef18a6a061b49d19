"""From the fleet file's words to an argv: filled in, never through a shell, and a sentence when it can't be."""

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from services.spawner.sessions import CannotStart, Launch, fill, launch, plan, workspace_of
from shared.errors import MusterError
from shared.fleet import Agent, Backend, Declaration, Fleet
from shared.tmux import Pane, Tmux
from shared.tmux import panes as tmux_panes

REFUSED = (MusterError, ValidationError)
"""By a sentence of its own, or as a fault of the fleet file."""

VALUES = {"python": "/bin/python", "backends": "/b", "agent": "builder", "prompt": "do {agent} $(rm) it"}


def fleet(directory: Path, *, argv: list[str] | None = None, **agent: Any) -> Fleet:
    backend = Backend(argv=argv or ["run"], env={"SHARED": "backend", "ONE": "1"})
    declared = Declaration(backends={"mine": backend}, agents={"builder": Agent(**{"backend": "mine", **agent})})
    return Fleet(directory / "fleet.yaml", declared)


@pytest.mark.parametrize(
    ("word", "filled"),
    [
        ("{agent}", "builder"),
        ("--name={agent}", "--name=builder"),
        ("{backends}/{agent}.py", "/b/builder.py"),
        ("{prompt}", "do {agent} $(rm) it"),
        ("{python}", "/bin/python"),
        ('{"json": true}', '{"json": true}'),
        ("{unknown}", "{unknown}"),
        ("{}", "{}"),
        ("", ""),
        ("plain", "plain"),
    ],
)
def test_names_in_braces_are_filled_in_and_other_braces_stay(word: str, filled: str) -> None:
    assert fill(word, VALUES) == filled


def test_a_prompt_is_one_word_whatever_it_holds(tmp_path: Path) -> None:
    prompt = "first line\nsecond; rm -rf ~ {agent} '\""
    order = plan(fleet(tmp_path, argv=["run", "{prompt}", "{agent}"], prompt=prompt), "builder")
    assert order.argv == ["run", prompt, "builder"]


def test_an_empty_prompt_stays_a_word(tmp_path: Path) -> None:
    assert plan(fleet(tmp_path, argv=["run", "{prompt}"]), "builder").argv == ["run", ""]


def test_a_plan_holds_all_that_tmux_needs(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    order = plan(fleet(tmp_path, argv=["{python}", "x"], dir="work", env={"SHARED": "agent", "TWO": "2"}), "builder")
    assert order == Launch(
        agent="builder",
        backend="mine",
        argv=[sys.executable, "x"],
        workspace=tmp_path / "work",
        env={"SHARED": "agent", "ONE": "1", "TWO": "2"},
        fleet=tmp_path / "fleet.yaml",
    )


def test_the_shipped_backend_can_be_planned(tmp_path: Path) -> None:
    order = plan(Fleet(tmp_path / "fleet.yaml", Declaration(agents={"builder": Agent(prompt="hi")})), "builder")
    assert order.argv[0] == sys.executable
    assert order.argv[-2:] == ["builder", "hi"]
    assert not any("{" in word for word in order.argv)
    assert Path(order.argv[-3]).is_file()


@pytest.mark.parametrize(("given", "found"), [(".", "."), ("a/../b", "b"), ("/", "/"), ("~", "~")])
def test_a_workspace_is_relative_to_the_fleet_file(tmp_path: Path, given: str, found: str) -> None:
    assert workspace_of(fleet(tmp_path, dir=given), "builder") == (tmp_path / Path(found).expanduser()).resolve()


def test_a_workspace_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match=r"the workspace .*nowhere of agent 'builder' is not a directory"):
        plan(fleet(tmp_path, dir="nowhere"), "builder")
    (tmp_path / "file").write_text("")
    with pytest.raises(CannotStart, match="is not a directory"):
        plan(fleet(tmp_path, dir="file"), "builder")


def test_a_backend_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CannotStart, match="names the backend 'gone'"):
        plan(fleet(tmp_path, backend="gone"), "builder")


@pytest.mark.parametrize("directory", ["~nobody-of-that-name/work", "a\0b"])
def test_a_workspace_that_can_not_be_is_a_sentence(tmp_path: Path, directory: str) -> None:
    """Any other error would keep the spawner from looking after all the other agents."""
    with pytest.raises(REFUSED):
        plan(fleet(tmp_path, dir=directory), "builder")


@pytest.mark.parametrize("argv", [["DEBUG=1", "run"], ["", "run"], ["run", "a\0b"]])
def test_a_command_line_that_tmux_can_not_take_is_a_sentence(tmp_path: Path, argv: list[str]) -> None:
    """Any other error would keep the spawner from looking after all the other agents."""
    with pytest.raises(REFUSED):
        launch(FakeTmux(), plan(fleet(tmp_path, argv=argv), "builder"), spawn="s1", stamp="f1")


@pytest.mark.parametrize("env", [{"A": "b\0"}, {"A\0": "b"}])
def test_an_environment_that_can_not_be_is_a_sentence(tmp_path: Path, env: dict[str, str]) -> None:
    with pytest.raises(REFUSED):
        launch(FakeTmux(), plan(fleet(tmp_path, env=env), "builder"), spawn="s1", stamp="f1")


class FakeTmux(Tmux):
    """Writes the order as the real one does, and gives it to nobody."""

    def __init__(self) -> None:
        self.started: list[dict[str, Any]] = []

    def start(  # type: ignore[override]
        self,
        *,
        session: str,
        argv: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        agent: str,
        spawn: str,
        fleet: str,
    ) -> Pane:
        stamps = {"agent": agent, "spawn": spawn, "fleet": fleet}
        tmux_panes.start(session, argv=argv, cwd=cwd, env=env, stamps=stamps, width=80, height=24)
        self.started.append({"session": session, "argv": argv, "cwd": cwd, "env": env, **stamps})
        return Pane(session, "$1", "%1", 7, "run", False, None, str(cwd), "", 1, 1, agent, spawn, fleet)


def test_a_session_is_named_and_stamped_for_its_agent(tmp_path: Path) -> None:
    tmux = FakeTmux()
    pane = launch(tmux, plan(fleet(tmp_path), "builder"), spawn="s1", stamp="f1")
    assert (pane.agent, pane.spawn, pane.fleet) == ("builder", "s1", "f1")
    (started,) = tmux.started
    assert (started["session"], started["argv"], started["cwd"]) == ("builder", ["run"], tmp_path)
    assert started["env"] == {"SHARED": "backend", "ONE": "1", "MUSTER_AGENT": "builder", "MUSTER_SPAWN": "s1"} | {
        "MUSTER_FLEET": str(tmp_path / "fleet.yaml")
    }


def test_a_fleet_file_can_not_pretend_another_spawn(tmp_path: Path) -> None:
    tmux = FakeTmux()
    launch(tmux, plan(fleet(tmp_path, env={"MUSTER_SPAWN": "forged"}), "builder"), spawn="s1", stamp="f1")
    assert tmux.started[0]["env"]["MUSTER_SPAWN"] == "s1"
