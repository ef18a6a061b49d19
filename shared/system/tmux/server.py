"""A tmux server as a process: its version, its socket, and the end of a private one."""

import re
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil

from shared.system.tmux.change_lock import directory_of
from shared.system.tmux.errors import TmuxMissing, TmuxUnavailable

ANSWERS_WITHIN_S = 10.0
START_TIMES_DIFFER_S = 2.0
SOCKET_RESTORED_WITHIN_S = 0.5
ENDS_WITHIN_S = 2.0


def tmux_version() -> tuple[str, tuple[int, int]]:
    """The output of `tmux -V`, and the version in it; (0, 0) if there is none."""
    text = _run("-V").stdout.strip()
    found = re.search(r"(\d+)\.(\d+)", text)
    return text, (int(found[1]), int(found[2])) if found else (0, 0)


def end_server(socket: str) -> None:
    """End a private server with all its sessions, and remove its socket, which tmux leaves behind."""
    where = ("-S", socket) if "/" in socket else ("-L", socket)
    pid = _run(*where, "display-message", "-p", "#{pid}", ";", "kill-server").stdout.strip()
    if pid.isdecimal():
        _ensure_end(int(pid))
    socket_of(socket).unlink(missing_ok=True)


def _ensure_end(pid: int) -> None:
    """Kill a server that does not end: it waits until its control clients have read everything, but one may be dead."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        if not _ends(process) and process.name().startswith("tmux"):
            process.kill()
            _ends(process)


def _ends(process: psutil.Process) -> bool:
    """Whether it ends in time; a zombie has ended."""
    deadline = time.monotonic() + ENDS_WITHIN_S
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.005)
    return True


def socket_of(socket: str) -> Path:
    return Path(socket).absolute() if "/" in socket else directory_of(socket) / socket


def restore_socket(server: str, socket: Path) -> bool:
    """Make a server (`pid-start_time`) create its removed socket again; False if it does not live, or not there."""
    process = _process(server)
    if process is None or not _listens_at(process, socket):
        return False
    with suppress(psutil.Error):
        process.send_signal(signal.SIGUSR1)
    deadline = time.monotonic() + SOCKET_RESTORED_WITHIN_S
    while time.monotonic() < deadline and not socket.exists():
        if _process(server) is None:
            return False  # it was ending
        time.sleep(0.005)
    return True


def _process(server: str) -> psutil.Process | None:
    """The process of a server (`pid-start_time`), if it lives."""
    pid, _, started = server.partition("-")
    with suppress(psutil.Error, ValueError):
        process = psutil.Process(int(pid))
        is_same = abs(process.create_time() - int(started)) <= START_TIMES_DIFFER_S
        return process if is_same and process.status() != psutil.STATUS_ZOMBIE else None
    return None


def _listens_at(process: psutil.Process, socket: Path) -> bool:
    """Whether the server was bound to this socket. If that can't be read, it counts as bound."""
    try:
        bound = [Path(str(each.laddr)) for each in process.net_connections("unix") if each.laddr]
    except psutil.Error:
        return True
    return any(each.name == socket.name and each.parent.resolve() == socket.parent.resolve() for each in bound)


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["tmux", *arguments], capture_output=True, text=True, timeout=ANSWERS_WITHIN_S, check=False
        )
    except FileNotFoundError as error:
        raise TmuxMissing from error
    except subprocess.TimeoutExpired as error:
        raise TmuxUnavailable(" ".join(arguments), f"no answer within {ANSWERS_WITHIN_S:g} s") from error
