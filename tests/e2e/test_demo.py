"""The demo, as a newcomer runs it."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.e2e.test_lifecycle import processes_about


def test_the_demo_shows_drift_record_and_restart_and_leaves_nothing(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-P", "-m", "services.cli", "demo", "--seconds", "15"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    story = [line.split()[2:5] for line in done.stdout.splitlines()]
    for step in (
        ["builder", "drift", "missing"],
        ["builder", "state", "terminated"],
        ["builder", "lifecycle", "restarted"],
    ):
        assert step in story
    assert "saw the drift and its healing" in done.stderr
    assert list(tmp_path.glob("muster-demo-*")) == []
    assert processes_about(str(tmp_path)) == []
    sockets = Path(os.environ.get("TMUX_TMPDIR", tempfile.gettempdir())) / f"tmux-{os.getuid()}"
    assert list(sockets.glob("muster-demo-*")) == []


@pytest.mark.long
def test_a_demo_cut_short_says_what_was_missing_and_fails(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-m", "services.cli", "demo", "--seconds", "0"],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 1
    assert "ended early" in done.stderr
    assert list(tmp_path.glob("muster-demo-*")) == []
