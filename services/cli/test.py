"""`muster test`: checks and quick tests, the checks alone, or what CI runs; also writes the generated files."""

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
GENERATORS = (
    ("shared/agents/profiles.json", ["shared.agents", "--write"]),
    ("docs/asyncapi.yaml", ["shared.contract.asyncapi", "--write"]),
    ("docs/fleet.schema.json", ["shared.fleet.schema", "--write"]),
    ("mosquitto/acl", ["shared.messaging.broker.acl", "--write"]),
    ("docs/confusion.md", ["tests.real_agents.matrix"]),
    ("docs/reliability.md", ["tests.reliability"]),
)
"""The committed files that are made from code and data. Tests fail while one is outdated."""
QUICK = "not real_agent and not long"
"""Tests that need no program from npm and do not take long. The markers are declared in pyproject.toml."""


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "muster test [--all | --checks | --write | pytest arguments]"
    parser.epilog = "Other arguments go to pytest: muster test tests/unit/test_docs.py -q"
    parser.allow_abbrev = False  # what begins like ours is pytest's
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--all", action="store_true", help="also the long runs and the real agents, as CI does")
    which.add_argument("--checks", action="store_true", help="only ruff, format and mypy, no tests")
    which.add_argument("--write", action="store_true", help="write the generated files, such as docs/asyncapi.yaml")


def run(options: argparse.Namespace) -> int:
    if not (ROOT / "tests").is_dir():
        raise MusterError("the tests come with the source tree, not with the installed program")
    if options.rest and (options.checks or options.write):
        raise MusterError("--checks and --write run no tests, so they take no arguments for pytest")
    if options.write:
        return _run_each(GENERATORS)
    if options.checks:
        return _run_each(CHECKS)
    if options.rest:
        return _run(["pytest", *options.rest])
    code = _run_each((*CHECKS, ("pytest", pytest_command(everything=options.all))))
    if not options.all:
        say("left out: long runs and real agents (muster test --all)")
    return code


def pytest_command(*, everything: bool) -> list[str]:
    """More workers than cores, since many tests wait for processes. The slowest tests are listed."""
    workers = (os.cpu_count() or 1) + 2
    command = ["pytest", "-n", str(workers), "--dist", "worksteal", "--durations", "25"]
    return command if everything else [*command, "-m", QUICK]


def _run_each(programs: Sequence[tuple[str, list[str]]]) -> int:
    """Run all of them, also after one that fails."""
    failed = []
    for name, command in programs:
        started = time.monotonic()
        code = _run(command)
        say(f"{name}: {'ok' if code == 0 else 'FAILED'} ({time.monotonic() - started:.0f} s)")
        if code:
            failed.append(name)
    if failed:
        say(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def _run(command: Sequence[str]) -> int:
    return subprocess.run([sys.executable, "-m", *command], cwd=ROOT, check=False).returncode
