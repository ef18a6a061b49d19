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
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        if directory.is_symlink():
            # A repository may bring such a link along: what lies where it leads is none of ours.
            raise CannotWrite(f"{directory} is a link; remove it, so that the message can be laid there")
        if not path.exists():
            _write(directory / ".gitignore", b"*\n")
            _write(path, text.encode())
            _tidy(directory)
    except OSError as error:
        raise CannotWrite(f"the message can't be laid into the workspace: {error}") from error
    return f"{DIRECTORY}/{path.name}"


def _write(path: Path, data: bytes) -> None:
    """A new file in place of whatever has the name, so that no link is followed."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    fresh.replace(path)


def _tidy(directory: Path) -> None:
    for old in directory.glob("*.txt"):
        if old.lstat().st_mtime < time.time() - KEPT_S:
            old.unlink(missing_ok=True)
