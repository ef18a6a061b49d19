"""Claude Code: hooks in a settings document, given for one run with `--settings`; the user's own run beside them. Pure.

Measured with 2.1.197 and 2.1.325.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.agents.hooks.formats import HookFormat, as_json, settings_below

EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "PostToolUseFailure",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "StopFailure",
    "SessionEnd",
)
TIMEOUT_S = 5
FLAG = "--settings"


def entry(command: str) -> dict[str, Any]:
    """What stands under each event."""
    return {"hooks": [{"type": "command", "command": command, "timeout": TIMEOUT_S}]}


def document(command: str) -> dict[str, Any]:
    return {"hooks": {event: [entry(command)] for event in EVENTS}}


def in_the_way(words: Sequence[str], _env: Mapping[str, str], _file: Path) -> str | None:
    """Why no hooks can be given: of several such options the last one alone counts."""
    if any(word == FLAG or word.startswith(f"{FLAG}=") for word in words):
        return f"its command line has a {FLAG} of its own, and Claude Code heeds one only"
    return None


FORMAT = HookFormat(
    "Claude Code",
    EVENTS,
    entry,
    as_json(document),
    in_the_way,
    "json",
    settings_below("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
)
