"""The supervisor on a disk that can't be written: it goes on without its logs, and starts again what ended.

A limit on the size of files stands for the disk: each write beyond it fails.
"""

import shlex
import subprocess
import sys
from pathlib import Path

from tests.fixtures.broker import wait_until

CONFIGURATION = """
[supervisord]
nodaemon = true
silent = true
pidfile = supervisord.pid
logfile = supervisor.log
childlogdir = .
[program:loud]
command = sh -c 'mktemp life-XXXXXX; seq 1000; sleep 0.1'
autorestart = true
startsecs = 0
redirect_stderr = true
stdout_logfile = loud.log
"""


def test_what_ended_is_started_again_while_no_log_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "supervisord.conf").write_text(CONFIGURATION)
    command = [sys.executable, "-P", "-m", "services.cli.supervisor_process", "supervisor.lock", "supervisord.conf"]
    with (tmp_path / "errors.log").open("wb") as errors:
        supervisor = subprocess.Popen(
            ["sh", "-c", f"ulimit -f 1; exec {shlex.join(command)}"], cwd=tmp_path, stdout=errors, stderr=errors
        )
    try:
        wait_until(lambda: len(list(tmp_path.glob("life-*"))) > 3, "four lives of the program", 30.0)
        assert supervisor.poll() is None
        assert (tmp_path / "loud.log").stat().st_size <= 1024
    finally:
        supervisor.terminate()
        supervisor.wait()
