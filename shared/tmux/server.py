"""What concerns a tmux server as a whole: which version, and the end of a private one."""

import re
import subprocess
from pathlib import Path

from shared.tmux.calm import directory_of
from shared.tmux.errors import TmuxMissing, TmuxUnavailable

ANSWERS_WITHIN_S = 10.0


def tmux_version() -> tuple[str, tuple[int, int]]:
    """tmux's own words, and the numbers in them; (0, 0) for a build that tells none."""
    text = _run("-V").stdout.strip()
    found = re.search(r"(\d+)\.(\d+)", text)
    return text, (int(found[1]), int(found[2])) if found else (0, 0)


def end_server(socket: str) -> None:
    """End a private server with all its sessions, and take away its socket, which tmux leaves behind."""
    where = ("-S", socket) if "/" in socket else ("-L", socket)
    _run(*where, "kill-server")
    path = Path(socket) if "/" in socket else directory_of(socket) / socket
    path.unlink(missing_ok=True)


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            ["tmux", *arguments], capture_output=True, text=True, timeout=ANSWERS_WITHIN_S, check=False
        )
    except FileNotFoundError as error:
        raise TmuxMissing from error
    except subprocess.TimeoutExpired as error:
        raise TmuxUnavailable(" ".join(arguments), f"no answer within {ANSWERS_WITHIN_S:g} s") from error
