"""The programs at their pinned versions, out of the npm registry: installed once per machine and user.

A test is skipped only where npm is missing or the registry can't be reached; a version that is gone is a failure.
"""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.fixtures.packages import OFFLINE
from tests.real_agents.clis import Cli

INSTALLS_WITHIN_S = 400


def installed(cli: Cli) -> Path:
    """The program, ready to be run. Tests that want the same one at the same time wait for one installation."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "muster-tests" / "agents"
    there = cache / f"{cli.name}-{cli.version}"
    program = there / "node_modules" / ".bin" / cli.name
    if not there.exists():
        cache.mkdir(parents=True, exist_ok=True)
        with _alone(cache / f".{there.name}.lock"):
            if not there.exists():
                _install(cli, cache, there)
    assert program.exists(), f"{cli.package}@{cli.version} has no program {cli.name} in {there}"
    return program


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    with lock.open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        yield


def _install(cli: Cli, cache: Path, there: Path) -> None:
    """Made aside and moved, so that no test sees half of it. Of all scripts only the program's own is run, by us:
    what npm does with them changes from version to version.
    """
    npm, node = shutil.which("npm"), shutil.which("node")
    if npm is None or node is None:
        pytest.skip(f"npm is not installed, and {cli.package} comes from its registry")
    with tempfile.TemporaryDirectory(dir=cache, prefix=f".{there.name}-") as aside:
        fresh = Path(aside) / "fresh"
        fresh.mkdir()
        quiet = ["--no-audit", "--no-fund", "--ignore-scripts", "--fetch-retries=1", "--fetch-retry-mintimeout=1000"]
        _run([npm, "install", "--prefix", str(fresh), *quiet, f"{cli.package}@{cli.version}"], fresh, cli)
        if cli.setup is not None:
            _run([node, cli.setup], fresh / "node_modules" / cli.package, cli)
        fresh.rename(there)


def _run(command: list[str], cwd: Path, cli: Cli) -> None:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=INSTALLS_WITHIN_S, check=False)
    except subprocess.TimeoutExpired:
        pytest.skip(f"the registry did not give {cli.package} within {INSTALLS_WITHIN_S} s")
    if done.returncode and (found := OFFLINE.search(done.stderr)):
        pytest.skip(f"the registry that has {cli.package} can't be reached: {found[0]}")
    assert done.returncode == 0, f"{' '.join(command)} failed:\n{done.stdout}{done.stderr}"
