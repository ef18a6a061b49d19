"""`muster test`: checks and quick tests; with `--all` what CI runs; other arguments go to pytest."""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from services.cli.fleet_option import say
from shared.errors import MusterError

ROOT = Path(__file__).parents[2]
CHECKS = (
    ("ruff", ["ruff", "check", "."]),
    ("format", ["ruff", "format", "--check", "."]),
    ("mypy", ["mypy"]),
)
QUICK = "not real_agent and not long"
"""Tests that need no program from npm and do not take long. The markers are declared in pyproject.toml."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "muster test [--all] [pytest arguments]"
    parser.allow_abbrev = False  # what begins like ours is pytest's
    parser.add_argument("--all", action="store_true", help="also the long runs and the real agents, as CI does")


def run(options: argparse.Namespace) -> int:
    if not (ROOT / "tests").is_dir():
        raise MusterError("the tests come with the source tree, not with the installed program")
    if options.rest:
        return _check(["pytest", *options.rest])
    failed = []
    for name, command in (*CHECKS, ("pytest", pytest_command(everything=options.all))):
        started = time.monotonic()
        code = _check(command)
        say(f"{name}: {'ok' if code == 0 else 'FAILED'} ({time.monotonic() - started:.0f} s)")
        if code:
            failed.append(name)
    if failed:
        say(f"failed: {', '.join(failed)}")
    if not options.all:
        say("left out: long runs and real agents (muster test --all)")
    return 1 if failed else 0


def pytest_command(*, everything: bool) -> list[str]:
    """More workers than cores, since many tests wait for processes. The slowest tests are listed."""
    workers = (os.cpu_count() or 1) + 2
    command = ["pytest", "-n", str(workers), "--dist", "worksteal", "--durations", "25"]
    return command if everything else [*command, "-m", QUICK]


def _check(command: Sequence[str]) -> int:
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode
