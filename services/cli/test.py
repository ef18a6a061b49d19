"""`muster test`: what CI runs. With arguments, only pytest with them."""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from services.cli.fleet import say
from shared.errors import MusterError

ROOT = Path(__file__).parents[2]
CHECKS = (
    ("ruff", ["ruff", "check", "."]),
    ("format", ["ruff", "format", "--check", "."]),
    ("mypy", ["mypy"]),
    # Many wait for processes. What takes longest is shown, since the whole must not take too long.
    ("pytest", ["pytest", "-n", str((os.cpu_count() or 1) + 2), "--dist", "worksteal", "--durations", "25"]),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.usage = "muster test [pytest arguments]"


def run(options: argparse.Namespace) -> int:
    if not (ROOT / "tests").is_dir():
        raise MusterError("the tests come with the source tree, not with the installed program")
    if options.rest:
        return _check([sys.executable, "-m", "pytest", *options.rest])
    failed = []
    for name, command in CHECKS:
        started = time.monotonic()
        code = _check([sys.executable, "-m", *command])
        say(f"{name}: {'ok' if code == 0 else 'FAILED'} ({time.monotonic() - started:.0f} s)")
        if code:
            failed.append(name)
    if failed:
        say(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def _check(command: list[str]) -> int:
    return subprocess.run(command, cwd=ROOT, check=False).returncode
