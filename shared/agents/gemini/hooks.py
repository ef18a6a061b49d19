"""Gemini CLI: hooks in a settings document; the user's own run beside them. Measured with 0.61.0.

One run can get them as the system's defaults, but only from a file that, with all directories above it, only root can
change: in a container, for example. Elsewhere they must be installed. It has no option for more settings, and takes
extensions only from the user's home.
"""

import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.agents.hooks.formats import HookFormat, as_json

EVENTS = ("SessionStart", "BeforeAgent", "BeforeTool", "Notification", "AfterTool", "AfterAgent", "SessionEnd")
TIMEOUT_MS = 5000
NAME = "muster"
DEFAULTS = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH"
SYSTEM = Path("/etc/gemini-cli/system-defaults.json")
"""The defaults without that variable."""


def entry(command: str) -> dict[str, Any]:
    return {"hooks": [{"name": NAME, "type": "command", "command": command, "timeout": TIMEOUT_MS}]}


def in_the_way(_words: Sequence[str], env: Mapping[str, str], file: Path) -> str | None:
    """Why it can't get hooks from this file, whose directory exists."""
    if DEFAULTS in env:
        return f"its environment has a {DEFAULTS} of its own"
    if SYSTEM.exists():
        return f"{SYSTEM} is there, and Gemini CLI heeds one such file only"
    if not all(map(_is_roots_alone, file.absolute().parents)):
        return "Gemini CLI takes hooks for one run only from directories of root's; muster hooks install gives it them"
    return None


def _is_roots_alone(directory: Path) -> bool:
    try:
        found = directory.stat()
    except OSError:
        return False
    return found.st_uid == 0 and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


FORMAT = HookFormat(
    "Gemini CLI",
    EVENTS,
    entry,
    as_json(EVENTS, entry),
    in_the_way,
    "json",
    lambda env: Path(env.get("GEMINI_CLI_HOME") or env["HOME"]) / ".gemini" / "settings.json",
)
