"""A text as an agent's input box can take it. A text that can't be pasted becomes a file in the workspace."""

import os
import re
import time
import unicodedata
from pathlib import Path

from shared.errors import MusterError
from shared.fleet.backend import Backend, TypingRules


class TakenForCommand(MusterError):
    """The agent's program would carry out this text itself instead of giving it to its model."""


def must_be_no_command(typing: TypingRules, text: str) -> None:
    if typing.command and re.search(typing.command, text):
        raise TakenForCommand(
            "the agent's program would take this text as an order to itself and not show it to its model; if that is"
            " meant, send it with `as_command` (muster send --command), else begin it with another word"
        )


def needs_file(backend: Backend, text: str) -> bool:
    """Whether a paste would change the text, or would look like the hint in an empty box."""
    typing = backend.typing
    if any(re.fullmatch(ghost, text) for ghost in backend.screen.ghost):
        return True
    if typing.composes and not unicodedata.is_normalized("NFC", text):
        return True
    return bool(typing.unpasteable and re.search(typing.unpasteable, text))


def completed(typing: TypingRules, text: str) -> str:
    """The text as it is pasted."""
    return f"{text} " if typing.completes and re.search(typing.completes, text) else text


DIRECTORY = ".muster-messages"
MESSAGES_STAY_S = 7 * 24 * 3600.0


class CannotWrite(MusterError):
    """No file can be written in the workspace."""


def write_message(workspace: Path, name: str, text: str) -> str:
    """Write a message; returns its path relative to the workspace. Git ignores the directory."""
    directory = workspace / DIRECTORY
    path = directory / f"{name}.txt"
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        if directory.is_symlink():
            # A repository may contain such a link: where it leads is not ours.
            raise CannotWrite(f"{directory} is a link; remove it, so that the message can be laid there")
        if not path.exists():
            _write(directory / ".gitignore", b"*\n")
            _write(path, text.encode())
            _tidy(directory)
    except OSError as error:
        raise CannotWrite(f"the message can't be laid into the workspace: {error}") from error
    return f"{DIRECTORY}/{path.name}"


def _write(path: Path, data: bytes) -> None:
    """Replace whatever has the name, so that no link is followed."""
    fresh = path.with_name(f".{path.name}.new")
    fresh.unlink(missing_ok=True)
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
    fresh.replace(path)


def _tidy(directory: Path) -> None:
    for old in directory.glob("*.txt"):
        if old.lstat().st_mtime < time.time() - MESSAGES_STAY_S:
            old.unlink(missing_ok=True)
