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
    return {"hooks": [{"type": "command", "command": command, "timeout": TIMEOUT_S}]}


def in_the_way(words: Sequence[str], _env: Mapping[str, str], _file: Path) -> str | None:
    """Why it can't get hooks: of several such options only the last one counts."""
    if any(word == FLAG or word.startswith(f"{FLAG}=") for word in words):
        return f"its command line has a {FLAG} of its own, and Claude Code heeds one only"
    return None


FORMAT = HookFormat(
    "Claude Code",
    EVENTS,
    entry,
    as_json(EVENTS, entry),
    in_the_way,
    "json",
    settings_below("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
)
