"""Real processes: which version of an agent they run, and which of them is its program."""

import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from shared.agents.recognition import program_in, version_of
from shared.fleet.profiles import shipped
from shared.system.processes import Process, Processes
from tests.integration.test_processes import WAITS, running, script

CLAUDE = shipped()["claude"]


def process_of(pid: int) -> Process:
    found = Processes.look().get(pid)
    assert found is not None
    return found


def package(folder: Path, **about: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text(json.dumps({"name": "@maker/agent", "version": "2.1.197", **about}))
    return folder


def version_run_at(path: Path) -> str | None:
    """Of a script there, run by an interpreter that is in no package."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with running(sys.executable, "-I", script(path, WAITS)) as process:
        return version_of(process_of(process.pid))


def test_a_script_is_of_the_version_of_its_package(tmp_path: Path) -> None:
    package(tmp_path / "agent")
    assert version_run_at(tmp_path / "agent" / "bin" / "cli.js") == "2.1.197"


def test_a_link_leads_to_its_package(tmp_path: Path) -> None:
    """As npm lays them out: the one in `bin` is a link into the package."""
    package(tmp_path / "lib" / "agent")
    real = script(tmp_path / "lib" / "agent" / "cli.js", WAITS)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "agent").symlink_to(real)
    with running(sys.executable, "-I", tmp_path / "bin" / "agent") as process:
        assert version_of(process_of(process.pid)) == "2.1.197"


def test_a_program_may_be_named_by_its_version(tmp_path: Path) -> None:
    program = tmp_path / "versions" / "2.1.325"
    program.parent.mkdir()
    shutil.copy(Path("/bin/sh").resolve(), program)
    with running(program, "-c", "echo up; read x") as process:
        assert version_of(process_of(process.pid)) == "2.1.325"


@pytest.mark.parametrize(
    "about",
    [
        pytest.param({"name": "node"}, id="the interpreter's own"),
        pytest.param({"version": 2}, id="a version that is no text"),
    ],
)
def test_a_package_that_does_not_tell_is_passed_by(tmp_path: Path, about: dict[str, Any]) -> None:
    package(tmp_path / "agent", version="1.0.0")
    package(tmp_path / "agent" / "inner", **about)
    assert version_run_at(tmp_path / "agent" / "inner" / "cli.js") == "1.0.0"


@pytest.mark.parametrize("text", ["{", "[]", "\udcff", "[" * 100_000])
def test_a_broken_package_is_passed_by(tmp_path: Path, text: str) -> None:
    package(tmp_path / "agent", version="1.0.0")
    inner = tmp_path / "agent" / "inner"
    inner.mkdir()
    (inner / "package.json").write_text(text, errors="surrogateescape")
    assert version_run_at(inner / "cli.js") == "1.0.0"


def test_where_nothing_tells_none_is_known(tmp_path: Path) -> None:
    assert version_run_at(tmp_path / "cli.js") is None


def test_a_process_that_is_gone_has_none() -> None:
    assert version_of(Process(2**22 + 7, 1, "agent", 1.0, 1)) is None


def test_the_topmost_program_of_a_backend_is_found(tmp_path: Path) -> None:
    claude = script(tmp_path / "claude", f"#!{sys.executable} -I\n{WAITS}")
    with running("/bin/sh", "-c", f"{claude}; true", PATH=os.defpath) as shell:
        found = program_in(Processes.look(), CLAUDE, shell.pid)
        assert found is not None
        assert found.parent == shell.pid
        assert program_in(Processes.look(), shipped()["codex"], shell.pid) is None
    assert program_in(Processes.look(), CLAUDE, shell.pid) is None


def test_a_backend_like_another_is_known_by_the_same_names(tmp_path: Path) -> None:
    claude = script(tmp_path / "claude", f"#!{sys.executable} -I\n{WAITS}")
    mine = CLAUDE.model_copy(update={"like": "claude"})
    with running(claude) as process:
        found = program_in(Processes.look(), mine, process.pid)
        assert found is not None
        assert found.pid == process.pid
