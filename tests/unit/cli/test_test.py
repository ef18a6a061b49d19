"""`muster test`: which checks and tests are run, and with which arguments."""

import subprocess
from typing import Any

import pytest

from services.cli import test
from services.cli.__main__ import main


class Runs:
    """What would be run, and how it would end."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.failing = ""

    def run(self, command: list[str], **_: Any) -> subprocess.CompletedProcess[bytes]:
        self.commands.append(command[2:])
        return subprocess.CompletedProcess(command, 1 if command[2] == self.failing else 0)

    @property
    def programs(self) -> list[str]:
        return [words[0] for words in self.commands]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> Runs:
    made = Runs()
    monkeypatch.setattr(subprocess, "run", made.run)
    return made


def test_the_default_run_is_every_check_and_the_quick_tests(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test"]) == 0
    assert runs.programs == ["ruff", "ruff", "mypy", "pytest"]
    assert runs.commands[-1][-2:] == ["-m", test.QUICK]
    assert "muster test --all" in capsys.readouterr().err


def test_all_runs_every_test(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["test", "--all"]) == 0
    assert runs.programs == ["ruff", "ruff", "mypy", "pytest"]
    assert "-m" not in runs.commands[-1]
    assert "left out" not in capsys.readouterr().err


@pytest.mark.parametrize("flag", [[], ["--all"]])
@pytest.mark.parametrize("words", [["tests/unit", "-k", "x"], ["--al"], ["-x"]])
def test_other_arguments_go_to_pytest_alone(runs: Runs, flag: list[str], words: list[str]) -> None:
    assert main(["test", *flag, *words]) == 0
    assert runs.commands == [["pytest", *words]]


def test_the_checks_alone_run_no_test(runs: Runs) -> None:
    assert main(["test", "--checks"]) == 0
    assert runs.programs == ["ruff", "ruff", "mypy"]


def test_write_runs_every_generator(runs: Runs) -> None:
    assert main(["test", "--write"]) == 0
    assert runs.commands == [command for _, command in test.GENERATORS]


def test_what_generators_write_is_committed() -> None:
    assert [file for file, _ in test.GENERATORS if not (test.ROOT / file).is_file()] == []


@pytest.mark.parametrize("flag", ["--checks", "--write"])
def test_where_no_test_runs_there_are_no_arguments_for_pytest(
    runs: Runs, flag: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["test", flag, "-x"]) == 1
    assert runs.commands == []
    assert "take no arguments for pytest" in capsys.readouterr().err


def test_a_failed_check_is_reported_and_the_rest_is_run(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    runs.failing = "mypy"
    assert main(["test"]) == 1
    assert runs.programs == ["ruff", "ruff", "mypy", "pytest"]
    assert "failed: mypy" in capsys.readouterr().err
