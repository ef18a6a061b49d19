"""Messages that no terminal can carry are laid into the workspace, where the agent may read without asking."""

import os
import time
from pathlib import Path

from shared.errors import MusterError

DIRECTORY = ".muster-messages"
KEPT_S = 7 * 24 * 3600.0


class CannotWrite(MusterError):
    """The workspace takes no file."""


def write_message(workspace: Path, name: str, text: str) -> str:
    """Write a message, and answer the path as the agent sees it from its workspace. Git does not see the directory."""
    directory = workspace / DIRECTORY
    path = directory / f"{name}.txt"
    if path.exists():
        return f"{DIRECTORY}/{path.name}"
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        (directory / ".gitignore").write_text("*\n")
        fresh = path.with_suffix(".new")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(text.encode())
        fresh.replace(path)
        _tidy(directory)
    except OSError as error:
        raise CannotWrite(f"the message can't be laid into the workspace: {error}") from error
    return f"{DIRECTORY}/{path.name}"


def _tidy(directory: Path) -> None:
    for old in directory.glob("*.txt"):
        if old.stat().st_mtime < time.time() - KEPT_S:
            old.unlink(missing_ok=True)
