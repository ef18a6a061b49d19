"""The background processes of a fleet, under supervisord: its configuration, how they are started and stopped.

No control socket is opened: signals are enough, and the locks of the processes show which of them live.
"""

import os
import select
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from shared.client.processes import BROKER, SUPERVISOR, last_good, pids, programs
from shared.contract.services import SERVICES
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.messaging.broker import ensure_credentials
from shared.system.files import make_directory, write

__all__ = [
    "SUPERVISOR",
    "configuration",
    "foreground",
    "log_of",
    "make_home",
    "pids",
    "run_once",
    "start",
    "stop",
]

STOPS_WITHIN_S = 15.0


def log_of(fleet: Fleet, program: str) -> Path:
    return fleet.home / "logs" / f"{program}.log"


def make_home(fleet: Fleet) -> None:
    """Make the private directory beside the fleet file; git ignores it."""
    try:
        for directory in (fleet.home, fleet.home / "run", fleet.home / "logs"):
            make_directory(directory)
        write(fleet.home / ".gitignore", "*\n")
    except OSError as error:
        raise MusterError(
            f"{fleet.home} can't be written: {error.strerror or error}; Muster keeps its files there"
        ) from error
    ensure_credentials(fleet.home)


def configuration(fleet: Fleet) -> str:
    """supervisord's file. It holds no path of the user's: `%`, `;` and `#` can't be quoted there.

    supervisord runs in the fleet's `.muster` directory, and the services get the fleet file by `MUSTER_FLEET`.
    """
    parts = [
        "[supervisord]\nnodaemon = true\nsilent = true\numask = 077\npidfile = run/supervisord.pid\n"
        f"logfile = logs/{SUPERVISOR}.log\nlogfile_maxbytes = 1MB\nlogfile_backups = 2\nchildlogdir = logs\n"
    ]
    for name in programs(fleet):
        command = " ".join(shlex.quote(word).replace("%", "%%") for word in _command(fleet, name))
        parts.append(
            f"[program:{name}]\ncommand = {command}\n"
            "autorestart = true\nstartsecs = 3\nstartretries = 1000000\n"
            "stopsignal = TERM\nstopwaitsecs = 10\n"
            # The broker starts first and ends last: services publish their end through it.
            f"priority = {1 if name == BROKER else 10}\n"
            f"redirect_stderr = true\nstdout_logfile = logs/{name}.log\n"
            "stdout_logfile_maxbytes = 5MB\nstdout_logfile_backups = 3\n"
        )
    return "\n".join(parts)


def _command(fleet: Fleet, name: str) -> list[str]:
    command = [sys.executable, "-P", "-m", f"services.{name}"]
    if name != BROKER:
        return command
    settings, space = fleet.declared.broker, fleet.space
    command += ["--home", ".", "--host", space.host, "--prefix", space.prefix]
    for option, port in (("--port", settings.port), ("--websocket-port", settings.websocket_port)):
        if port is not None:
            command += [option, str(port)]
    return command


def start(fleet: Fleet) -> Callable[[], bool]:
    """Start the supervisor, which starts the rest. Call it only when none runs. Returns whether it has ended."""
    make_home(fleet)
    file = fleet.home / "run" / "supervisord.conf"
    write(file, configuration(fleet))
    write(last_good(fleet), fleet.path.read_text())
    log = os.open(log_of(fleet, SUPERVISOR), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "services.cli.supervisor_process", f"run/{SUPERVISOR}.lock", f"run/{file.name}"],
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
        cwd=fleet.home,
        env={**os.environ, "MUSTER_FLEET": str(fleet.path)},
    )
    os.close(log)
    return lambda: process.poll() is not None


def run_once(fleet: Fleet, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a service as a child that looks once and ends; its output is captured."""
    return subprocess.run(foreground(fleet, name, *arguments), capture_output=True, text=True, check=False)


def run_alone(fleet: Fleet, name: str, *arguments: str, tell: Callable[[str], None], silent_s: float) -> int | None:
    """Run a service as a child, and tell each line that it prints; it logs as ever.

    Returns its exit code; None if it was killed because it said nothing for too long.
    """
    make_home(fleet)
    argv = foreground(fleet, name, *arguments)
    with (
        log_of(fleet, name).open("a") as log,
        subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=log, bufsize=0) as process,
    ):
        out = process.stdout
        try:
            while out is not None and select.select([out], [], [], silent_s)[0]:
                if not (line := out.readline()):
                    return process.wait()
                tell(line.decode().strip())
        finally:
            process.kill()
    return None


def foreground(fleet: Fleet, name: str, *arguments: str) -> list[str]:
    """The command line that runs a service without a supervisor."""
    return [sys.executable, "-P", "-m", f"services.{name}", "--fleet", str(fleet.path), *arguments]


def stop(fleet: Fleet) -> list[str]:
    """End the supervisor and all it started, orphans too; returns what was ended."""
    ended = list(pids(fleet))
    for group in ((SUPERVISOR,), SERVICES, (BROKER,)):  # in this order: services publish their end through the broker
        for number in (signal.SIGTERM, signal.SIGKILL):
            for name, pid in pids(fleet).items():
                if name in group:
                    _signal(pid, number)
            _wait_until_gone(fleet, set(group))
    left = pids(fleet)
    if left:
        raise MusterError(f"these processes did not end: {left}; look at {fleet.home / 'logs'}")
    return ended


def _signal(pid: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _wait_until_gone(fleet: Fleet, names: set[str]) -> None:
    deadline = time.monotonic() + STOPS_WITHIN_S
    while names & pids(fleet).keys() and time.monotonic() < deadline:
        time.sleep(0.02)
