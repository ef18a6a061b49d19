"""`muster doctor` on the agents: whether each has what it needs to start, and how to mend what it lacks."""

import argparse
import json
from pathlib import Path

import pytest

from services.cli import doctor
from services.cli.doctor import Finding, agents, loops
from shared.fleet import load_fleet
from tests.unit.shared.fleet.test_fleet import write


def findings(path: Path, text: str) -> list[Finding]:
    return list(agents(load_fleet(write(path, text))))


def program(path: Path, mode: int = 0o755) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n")
    path.chmod(mode)
    return path


def private(path: Path, text: str, mode: int = 0o600) -> None:
    path.write_text(text)
    path.chmod(mode)


def test_agents_that_can_start_are_one_good_finding(tmp_path: Path) -> None:
    private(tmp_path / "secrets", "A=b\n")
    (tmp_path / "prompt").write_text("go")
    text = "agents: {a: , b: {prompt_file: prompt, env_file: secrets}}\nservices: {s: {argv: [sh, -c, x]}}\n"
    assert findings(tmp_path, text) == [Finding("agents", True, "3 have what they need to start")]


def test_a_missing_program_is_one_finding_that_says_how_to_get_it(tmp_path: Path) -> None:
    text = (
        "backends: {mine: {binary: no-such-program, install: get it}}\ndefaults: {backend: mine}\nagents: {a: , b: }\n"
    )
    (found,) = findings(tmp_path, text)
    assert found == Finding(
        "agents",
        False,
        "a, b: the backend 'mine' needs the program 'no-such-program', and there is none on the PATH",
        "install it with: get it",
    )


def test_a_program_is_looked_for_on_the_agents_own_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(tmp_path / "bin" / "agent-of-mine")
    text = "backends: {mine: {binary: agent-of-mine}}\nagents: {a: {backend: mine%s}}\n"
    assert not findings(tmp_path, text % "")[0].ok
    assert findings(tmp_path, text % f", env: {{PATH: {tmp_path / 'bin'}}}")[0].ok
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    assert findings(tmp_path, text % "")[0].ok
    assert not findings(tmp_path, "environment: {allow: []}\n" + text % ", env: {PATH: /nowhere}")[0].ok


def test_a_program_with_a_relative_path_is_beside_the_fleet_file_and_executable(tmp_path: Path) -> None:
    text = "backends: {mine: {binary: ./tools/mine}}\nagents: {a: {backend: mine}}\n"
    assert "no such program can be run" in findings(tmp_path, text)[0].found
    program(tmp_path / "tools" / "mine", 0o644)
    assert not findings(tmp_path, text)[0].ok
    program(tmp_path / "tools" / "mine")
    assert findings(tmp_path, text)[0].ok


def test_a_workspace_must_exist_and_be_allowed(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (missing,) = findings(home, "agents: {a: {dir: nowhere}}\n")
    assert "nowhere of agent 'a' is not a directory" in missing.found
    assert missing.mend == "make it or change `dir`"
    fleet = load_fleet(write(home, "agents: {a: {dir: link}}\n"))
    (home / "link").symlink_to(tmp_path)
    (outside,) = agents(fleet)
    assert f"{tmp_path} is outside the allowed workspaces" in outside.found
    assert "add a directory to `workspaces`" in outside.mend


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("agents: {a: {prompt_file: nowhere}}\n", "can't be read: No such file or directory"),
        ("agents: {a: {prompt_file: loop}}\n", "can't be read: no path can be like this: "),
        ("agents: {a: {prompt_file: binary}}\n", "can't be read: it is no text in UTF-8"),
        ("agents: {a: {env_file: nowhere}}\n", "the env_file of agent 'a' can't be read: No such file or directory"),
        ("agents: {a: {env_file: open}}\n", "can be read by others"),
        ("agents: {a: {env_file: wrong}}\n", "wrong, line 2: not NAME=value"),
    ],
)
def test_files_must_be_readable_and_those_with_secrets_private(tmp_path: Path, text: str, says: str) -> None:
    fleet = load_fleet(write(tmp_path, text))
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "binary").write_bytes(b"\xff")
    private(tmp_path / "open", "A=b\n", 0o640)
    private(tmp_path / "wrong", "A=b\nsecret\n")
    (found,) = agents(fleet)
    assert not found.ok
    assert says in found.found
    assert found.mend
    assert "secret" not in str(found)


def test_every_fault_of_an_agent_is_reported(tmp_path: Path) -> None:
    text = "backends: {mine: {binary: no-such}}\nagents: {a: {backend: mine, dir: x, prompt_file: y, env_file: z}}\n"
    assert len(findings(tmp_path, text)) == 4


def test_the_findings_can_be_printed_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = findings(tmp_path, "agents: {a: {dir: nowhere}}\n")
    monkeypatch.setattr(doctor, "examine", lambda _: found)
    assert doctor.run(argparse.Namespace(fleet=None, json=True)) == 1
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["check"], told["ok"]) == ("agents", False)
    assert told["found"].startswith("a: ")
    assert told["mend"]


LOOP = "agents: {a: }\nloops: {main: {remote: x.git, roles: {build: a}, kickoff: k.md, role_prompts: {build: r.md}}}\n"


def test_loops_need_git_and_their_templates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = load_fleet(write(tmp_path, LOOP))
    (found,) = loops(fleet)
    assert found == Finding("loops", False, "templates that are not there: k.md of main, r.md of main", "write them")
    for name in ("k.md", "r.md"):
        (tmp_path / name).write_text("x")
    (good,) = loops(fleet)
    assert (good.ok, "1 have what they need; git version" in good.found) == (True, True)
    assert list(loops(load_fleet(write(tmp_path, "agents: {a: }\n")))) == []
    old = program(tmp_path / "bin" / "git")
    old.write_text("#!/bin/sh\necho git version 2.25.1\n")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}")
    monkeypatch.setattr(doctor, "OLDEST_GIT", (2, 29))
    (bad,) = loops(fleet)
    assert (bad.ok, bad.mend.startswith("install git 2.29 or newer")) == (False, True)
