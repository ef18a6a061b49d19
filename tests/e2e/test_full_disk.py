"""A command while the journal can't be written: it is accepted and pending, or it is not carried out. Never both.

The disk of the sender is full by a limit on the size of its files: SQLite gets an error from each write, as on a
full one.
"""

import shlex
import signal
import subprocess
import sys

from tests.fixtures.broker import wait_until
from tests.fixtures.fleet import RunningFleet


def cli_on_a_full_disk(fleet: RunningFleet, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-m", "services.cli", "--fleet", str(fleet.path), *arguments]
    limited = f"ulimit -f 1; exec {shlex.join(command)}"
    return subprocess.run(["sh", "-c", limited], capture_output=True, text=True, timeout=60, check=False, cwd="/")


def test_a_command_that_the_broker_was_given_is_pending(fleet: RunningFleet) -> None:
    fleet.signal("spawner", signal.SIGSTOP)
    try:
        sent = cli_on_a_full_disk(fleet, "stop", "reviewer")
    finally:
        fleet.signal("spawner", signal.SIGCONT)
    assert sent.returncode == 75, sent.stdout + sent.stderr
    assert "could not be used" in sent.stderr
    assert "was sent all the same" in sent.stderr
    fleet.wait_for_status("reviewer", "stopped")


def test_a_command_that_nobody_was_given_is_not_carried_out(fleet: RunningFleet) -> None:
    with fleet.broker_down():
        sent = cli_on_a_full_disk(fleet, "stop", "builder")
        assert sent.returncode == 1, sent.stdout + sent.stderr
        assert "could not be used" in sent.stderr
        assert "was sent all the same" not in sent.stderr
        # One that comes later and is carried out: the spawner has taken up all there was.
        assert fleet.cli("spawn", "builder").stdout == "builder runs already\n"
    wait_until(lambda: fleet.cli("status", code=None).returncode == 0, "all is up again", 30.0)
    assert fleet.pane("builder") is not None
