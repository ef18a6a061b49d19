"""Reads what agents leave on disk and on their command lines. Nothing here raises for what is there."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.ids import is_conversation

AT_MOST_BYTES = 4 << 20
"""The files that agents keep about themselves are smaller; what is not, is something else."""


def json_in(path: Path) -> Any:
    """What a small JSON file holds; None if it is not there, half written, or no JSON."""
    try:
        with path.open("rb") as file:
            content = file.read(AT_MOST_BYTES + 1)
        return json.loads(content) if len(content) <= AT_MOST_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None


def document(path: Path) -> dict[str, Any]:
    found = json_in(path)
    return found if isinstance(found, dict) else {}


def conversation(found: Any) -> str | None:
    """An id that may stand for a conversation."""
    return found if isinstance(found, str) and is_conversation(found) else None


def path_of(found: Any) -> Path | None:
    """A path that a document names."""
    return Path(found) if isinstance(found, str) and found.startswith("/") and "\0" not in found else None


def home(env: Mapping[str, str], variable: str, below_home: str) -> Path | None:
    """Where an agent keeps its files: where a variable of its own says, else in its HOME; None if it has neither."""
    if env.get(variable):
        return Path(env[variable])
    return Path(env["HOME"]) / below_home if env.get("HOME") else None


def option(arguments: Sequence[str], *names: str) -> str | None:
    """What a command line gives for an option, `--name value` or `--name=value`; the last one counts."""
    found = None
    for place, word in enumerate(arguments):
        if word == "--":
            break
        name, given, value = word.partition("=")
        if name in names:
            found = value if given else next(iter(arguments[place + 1 : place + 2]), None)
    return found


def changed(path: Path) -> float | None:
    """When a file was last written, in seconds since 1970."""
    try:
        return path.stat().st_mtime
    except (OSError, ValueError):
        return None
