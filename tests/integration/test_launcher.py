"""`./muster` as a newcomer meets it: a copy of the project, an empty HOME, real environments, real packages."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from services.cli.bootstrap import stanza

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("muster", "pyproject.toml", "requirements.lock", ".ci/requirements.lock", "services/cli/bootstrap.py")
ECHO = "import os, sys\nprint(os.getcwd(), *sys.argv[1:], sep='|')\n"
ECHO_AFTER_IMPORTS = f"import paho.mqtt.client, psutil, pydantic, ruamel.yaml, supervisor\n{ECHO}"
# What the launcher may find on a machine with Python and nothing else.
BARE = ("sh", "env", "cmp", "readlink", "cksum", "uname")
needs_uv = pytest.mark.skipif(shutil.which("uv") is None, reason="uv is not on PATH")


def registry_settings() -> dict[str, str]:
    """What this machine needs to reach a package registry, whatever HOME is."""
    prefixes = ("PIP_", "UV_", "SSL_CERT_", "REQUESTS_CA_BUNDLE", "HTTP_", "HTTPS_", "NO_PROXY")
    return {name: value for name, value in os.environ.items() if name.upper().startswith(prefixes)}


@dataclass
class Newcomer:
    """A copy of the project and a machine to run it on."""

    base: Path
    path: str = os.environ.get("PATH", os.defpath)
    env: dict[str, str] = field(default_factory=dict)
    user: int | None = None

    @property
    def project(self) -> Path:
        return self.base / "project"

    @property
    def venv(self) -> Path:
        return self.project / ".venv"

    @property
    def bin(self) -> Path:
        return self.base / "bin"

    def environment(self) -> dict[str, str]:
        home = {"HOME": str(self.base / "home"), "UV_CACHE_DIR": str(self.base.parent / "uv-cache")}
        return {**registry_settings(), **home, "PATH": self.path, **self.env}

    def start(self, *args: str, cwd: Path | None = None, script: Path | None = None) -> subprocess.Popen[str]:
        command = [str(script or self.project / "muster"), *args]
        return subprocess.Popen(
            command,
            cwd=cwd or self.base,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            user=self.user,
        )

    def run(self, *args: str, cwd: Path | None = None, script: Path | None = None) -> tuple[int, str, str]:
        process = self.start(*args, cwd=cwd, script=script)
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err

    def tool(self, name: str, body: str) -> None:
        """Put a small shell script on this machine's PATH."""
        (self.bin / name).write_text(f"#!/bin/sh\n{body}\n")
        (self.bin / name).chmod(0o755)

    def bare_machine(self, *programs: str) -> None:
        """Nothing on PATH but a Python, a handful of standard tools and these programs, and nothing in sbin."""
        for name in (*BARE, *programs):
            (self.bin / name).symlink_to(shutil.which(name) or f"/usr/sbin/{name}")
        (self.bin / "python3").symlink_to(any_python())
        self.path = str(self.bin)
        for name in ("muster", "services/cli/bootstrap.py"):
            self.edit(name, lambda text: text.replace("/usr/sbin", "/nowhere"))

    def lock(self, *packages: str) -> None:
        """Lock only these, so that a set-up that is not about packages is quick."""
        full = (ROOT / "requirements.lock").read_text()
        (self.project / "requirements.lock").write_text("".join(stanza(full, package) for package in packages))

    def edit(self, name: str, change: Callable[[str], str]) -> None:
        file = self.project / name
        file.write_text(change(file.read_text()))


def any_python() -> str:
    """A Python with no environment around it; the system's own where it will do, since every user may run it."""
    new_enough = "import sys, ensurepip; sys.exit(sys.version_info < (3, 11))"
    done = subprocess.run(["/usr/bin/python3", "-c", new_enough], capture_output=True, check=False)
    return "/usr/bin/python3" if done.returncode == 0 else os.path.realpath(sys.executable)


def make_newcomer(base: Path) -> Newcomer:
    newcomer = Newcomer(base)
    for name in ("home", "bin"):
        (base / name).mkdir(parents=True)
    for name in COPIED:
        (newcomer.project / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, newcomer.project / name)
    (newcomer.project / "services" / "cli" / "__main__.py").write_text(ECHO)
    return newcomer


@pytest.fixture
def newcomer(tmp_path: Path) -> Newcomer:
    """A copy whose lock holds one small package."""
    newcomer = make_newcomer(tmp_path / "newcomer")
    newcomer.lock("annotated-types")
    return newcomer


@pytest.fixture
def full(tmp_path: Path) -> Newcomer:
    """A copy with the real lock and a command that imports all of it."""
    newcomer = make_newcomer(tmp_path / "newcomer")
    (newcomer.project / "services" / "cli" / "__main__.py").write_text(ECHO_AFTER_IMPORTS)
    return newcomer


def wait_until(condition: Callable[[], bool], seconds: float = 30) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.02)


@needs_uv
def test_a_fresh_clone_is_set_up_with_uv_and_then_silent(full: Newcomer, tmp_path: Path) -> None:
    code, out, err = full.run("status", "--json", "two words")
    assert (code, out) == (0, f"{full.base}|status|--json|two words\n"), err
    assert re.search(r"^muster: creating \S+/project/\.venv … [\d.]+ s$", err, re.MULTILINE)
    assert "(uv)" in err
    assert "(pip)" not in err

    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "services" / "cli").mkdir(parents=True)  # must not be taken for ours
    (elsewhere / "services" / "cli" / "__main__.py").write_text("raise SystemExit('the wrong services')")
    assert full.run("status", cwd=elsewhere) == (0, f"{elsewhere}|status\n", "")

    (full.bin / "absolute").symlink_to(full.project / "muster")
    (full.bin / "relative").symlink_to("absolute")
    assert full.run("down", script=full.bin / "relative") == (0, f"{full.base}|down\n", "")


def test_a_fresh_clone_without_uv_is_set_up_with_pip(full: Newcomer) -> None:
    full.bare_machine("tmux", "mosquitto", "mosquitto_sub")
    code, out, err = full.run("status")
    assert (code, out) == (0, f"{full.base}|status\n"), err
    assert "(pip)" in err
    assert full.run("status") == (0, out, "")


@pytest.mark.long
def test_a_changed_lock_is_installed_into_the_same_environment(newcomer: Newcomer) -> None:
    newcomer.run("--version")
    newcomer.lock("annotated-types", "typing-extensions")
    (newcomer.project / "services" / "cli" / "__main__.py").write_text("import typing_extensions\n")
    code, _, err = newcomer.run("--version")
    assert code == 0, err
    assert "installing" in err
    assert "creating" not in err
    assert newcomer.run("--version") == (0, "", "")


def test_the_test_tools_come_with_the_first_test(newcomer: Newcomer) -> None:
    (newcomer.project / ".ci" / "requirements.lock").write_text(
        stanza((ROOT / ".ci" / "requirements.lock").read_text(), "iniconfig")
    )
    newcomer.run("--version")
    (newcomer.project / "services" / "cli" / "__main__.py").write_text("import iniconfig, annotated_types\n")
    assert newcomer.run("--version")[0] == 1
    code, _, err = newcomer.run("--fleet", "some.yaml", "test")
    assert code == 0, err
    assert "the test tools" in err
    assert newcomer.run("test") == (0, "", "")
    assert newcomer.run("--version") == (0, "", "")


@pytest.mark.long
def test_a_broken_or_moved_environment_is_made_anew(newcomer: Newcomer) -> None:
    newcomer.run("--version")
    python = newcomer.venv / "bin" / "python"
    python.unlink()
    python.symlink_to("/nowhere/python3.11")
    code, _, err = newcomer.run("--version")
    assert code == 0, err
    assert "creating" in err

    shutil.rmtree(newcomer.venv / "lib")
    code, _, err = newcomer.run("--version")
    assert code == 0, err
    assert "creating" in err

    newcomer.project.rename(newcomer.base / "moved")
    code, _, err = newcomer.run("--version", script=newcomer.base / "moved" / "muster")
    assert code == 0, err
    assert "creating" in err
    paths = list((newcomer.base / "moved" / ".venv").glob("lib/*/site-packages/muster.pth"))
    assert [path.read_text() for path in paths] == [f"{newcomer.base / 'moved'}\n"]


@pytest.mark.long
def test_an_environment_kept_elsewhere_follows_the_project(newcomer: Newcomer) -> None:
    newcomer.env["MUSTER_VENV"] = "kept/here/"
    code, _, err = newcomer.run("--version")
    assert code == 0, err
    assert f"creating {newcomer.base}/kept/here … " in err
    assert not newcomer.venv.exists()
    assert newcomer.run("--version")[2] == ""
    newcomer.project.rename(newcomer.base / "moved")
    code, _, err = newcomer.run("--version", script=newcomer.base / "moved" / "muster")
    assert code == 0, err


def test_an_environment_that_someone_else_made_is_used_and_not_cleared(newcomer: Newcomer) -> None:
    subprocess.run([any_python(), "-m", "venv", "--without-pip", newcomer.venv], check=True)
    (newcomer.venv / "notes.txt").touch()
    code, _, err = newcomer.run("--version")
    assert code == 0, err
    assert "creating" not in err
    assert (newcomer.venv / "notes.txt").exists()


def gate(newcomer: Newcomer) -> Path:
    """Make uv wait for a file and then fail: set-up can be held half way, and goes on with pip."""
    opened = newcomer.base / "opened"
    newcomer.tool("uv", f"touch '{newcomer.base}/reached'; until [ -e '{opened}' ]; do sleep 0.05; done; exit 1")
    (newcomer.bin / "python3").symlink_to(any_python())  # a pyenv shim would put its own uv before this one
    newcomer.path = f"{newcomer.bin}:{newcomer.path}"
    return opened


@pytest.mark.long
def test_of_two_launches_at_once_one_sets_up_and_the_other_waits(newcomer: Newcomer) -> None:
    opened = gate(newcomer)
    with newcomer.start("--version") as first:
        wait_until((newcomer.base / "reached").exists)
        with newcomer.start("--version") as second:
            assert second.stderr is not None
            said = second.stderr.readline()
            opened.touch()
            _, err = first.communicate(timeout=60)
            _, err_of_second = second.communicate(timeout=60)
    assert "another launch is setting up" in said
    assert (first.returncode, second.returncode) == (0, 0), err
    assert "uv failed" in err
    assert "(pip)" in err
    assert err_of_second == ""


@pytest.mark.long
def test_a_set_up_that_was_killed_is_finished_by_the_next_launch(newcomer: Newcomer) -> None:
    usual = newcomer.path
    gate(newcomer)
    killed = newcomer.start("--version")
    wait_until((newcomer.base / "reached").exists)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    newcomer.path = usual
    code, _, err = newcomer.run("--version")
    assert code == 0, err
    assert "creating" in err


def test_missing_tmux_is_told_with_the_exact_command(newcomer: Newcomer) -> None:
    newcomer.bare_machine("mosquitto", "mosquitto_sub")
    newcomer.tool("apt-get", f": >'{newcomer.base}/asked'")
    newcomer.env["MUSTER_NO_INSTALL"] = "1"
    code, out, err = newcomer.run("up")
    assert (code, out) == (69, "")
    assert re.search(r"tmux is missing.*Run `(sudo )?apt-get install -y tmux`", err, re.DOTALL)
    assert not (newcomer.base / "asked").exists()


def test_missing_programs_are_installed_where_that_is_allowed(newcomer: Newcomer) -> None:
    newcomer.bare_machine("ln", "true")
    asked = newcomer.base / "asked"
    installs = "".join(f"ln -s true '{newcomer.bin}/{name}'; " for name in ("tmux", "mosquitto", "mosquitto_sub"))
    newcomer.tool("apt-get", f"echo \"$@\" >>'{asked}'\ncase $* in *install*) {installs} ;; esac")
    newcomer.tool("sudo", 'shift; exec "$@"')
    code, _, err = newcomer.run("up", "--help")
    assert code == 0, err
    assert not asked.exists()
    code, _, err = newcomer.run("up")
    assert code == 0, err
    assert "installing tmux, mosquitto, mosquitto-clients with apt-get … " in err
    update, install = asked.read_text().splitlines()
    assert update.endswith(" update")
    assert install.endswith(" install -y --no-install-recommends tmux mosquitto mosquitto-clients")
    assert newcomer.run("up")[2] == ""


@pytest.mark.long
def test_without_mosquitto_the_nats_broker_is_put_into_the_environment(newcomer: Newcomer) -> None:
    newcomer.bare_machine("tmux")
    newcomer.tool("apt-get", "echo no network; exit 100")
    newcomer.tool("sudo", 'shift; exec "$@"')
    code, _, err = newcomer.run("up")
    assert code == 0, err
    assert re.search(r"the NATS broker will be used; `(sudo )?apt-get install -y mosquitto mosquitto-clients`", err)
    server = subprocess.run([newcomer.venv / "bin" / "nats-server", "--version"], capture_output=True, check=True)
    assert server.stdout.startswith(b"nats-server")
    assert newcomer.run("up")[2] == ""


def test_a_machine_without_python_is_told_what_to_run(newcomer: Newcomer) -> None:
    newcomer.bare_machine()
    (newcomer.bin / "python3").unlink()
    newcomer.tool("python3.12", "exit 127")  # a shim with nothing behind it
    newcomer.edit("muster", lambda text: text.replace("/usr/bin/python3 ", ""))
    code, _, err = newcomer.run("--version")
    assert code == 69
    assert re.search(r"needs Python 3\.11 or newer.*Run `.*python.*`", err)


def test_a_package_without_a_hash_is_refused_and_the_log_named(newcomer: Newcomer) -> None:
    newcomer.edit("requirements.lock", lambda text: text.split()[0])
    code, out, err = newcomer.run("--version")
    assert (code, out) == (69, "")
    assert f"The whole log is {newcomer.venv}/muster-setup.log" in err
    assert re.search(r"hash", err, re.IGNORECASE)


@pytest.fixture
def readable_by_all() -> Iterator[Path]:
    """A directory that other users may enter, which pytest's own are not."""
    base = Path(tempfile.mkdtemp(prefix="muster-launcher-"))
    base.chmod(0o755)
    yield base
    shutil.rmtree(base)


def test_a_project_that_can_not_be_written_is_set_up_in_the_cache(readable_by_all: Path) -> None:
    newcomer = make_newcomer(readable_by_all / "newcomer")
    newcomer.lock("annotated-types")
    newcomer.bare_machine("tmux", "mosquitto", "mosquitto_sub")
    newcomer.project.chmod(0o555)
    if os.geteuid() == 0:  # root may write anywhere
        newcomer.user = 65534
        os.chown(newcomer.base / "home", newcomer.user, -1)
    code, _, err = newcomer.run("status")
    assert code == 0, err
    assert re.search(r"creating \S+/home/\.cache/muster/project-\d+ …", err)
    assert newcomer.run("status")[2] == ""
    newcomer.env["HOME"] = ""
    code, _, err = newcomer.run("status")
    assert code == 69
    assert "Set MUSTER_VENV" in err
    newcomer.project.chmod(0o755)
