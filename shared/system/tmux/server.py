"""What concerns a tmux server as a whole: which version, and the end of a private one."""

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
SAME_START_S = 2.0
CALLED_BACK_WITHIN_S = 0.5
ENDS_WITHIN_S = 2.0


def tmux_version() -> tuple[str, tuple[int, int]]:
    """tmux's own words, and the numbers in them; (0, 0) for a build that tells none."""
    text = _run("-V").stdout.strip()
    found = re.search(r"(\d+)\.(\d+)", text)
    return text, (int(found[1]), int(found[2])) if found else (0, 0)


def end_server(socket: str) -> None:
    """End a private server with all its sessions, and take away its socket, which tmux leaves behind."""
    where = ("-S", socket) if "/" in socket else ("-L", socket)
    pid = _run(*where, "display-message", "-p", "#{pid}", ";", "kill-server").stdout.strip()
    if pid.isdecimal():
        _see_it_end(int(pid))
    socket_of(socket).unlink(missing_ok=True)


def _see_it_end(pid: int) -> None:
    """A server waits for its control clients to have read all it said, and one that was killed never will."""
    with suppress(psutil.Error):
        process = psutil.Process(pid)
        if not _ends(process) and process.name().startswith("tmux"):
            process.kill()
            _ends(process)


def _ends(process: psutil.Process) -> bool:
    """Whether it is gone in time; one that nobody has waited for yet is gone too."""
    deadline = time.monotonic() + ENDS_WITHIN_S
    while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
        if time.monotonic() >= deadline:
            return False
        time.sleep(0.005)
    return True


def socket_of(socket: str) -> Path:
    return Path(socket).absolute() if "/" in socket else directory_of(socket) / socket


def call_back(server: str, socket: Path) -> bool:
    """Have a server (`pid-start_time`) whose socket was removed make it anew; False if it does not live there."""
    process = _process(server)
    if process is None or not _listens_at(process, socket):
        return False
    with suppress(psutil.Error):
        process.send_signal(signal.SIGUSR1)
    deadline = time.monotonic() + CALLED_BACK_WITHIN_S
    while time.monotonic() < deadline and not socket.exists():
        if _process(server) is None:
            return False  # it was ending
        time.sleep(0.005)
    return True


def _process(server: str) -> psutil.Process | None:
    """The process of a server, if it lives."""
    pid, _, started = server.partition("-")
    with suppress(psutil.Error, ValueError):
        process = psutil.Process(int(pid))
        is_same = abs(process.create_time() - int(started)) <= SAME_START_S
        return process if is_same and process.status() != psutil.STATUS_ZOMBIE else None
    return None


def _listens_at(process: psutil.Process, socket: Path) -> bool:
    """Whether the server was bound there: another socket may be named since. Where that can't be told, it was."""
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
