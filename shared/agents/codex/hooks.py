"""Codex CLI: hooks as configuration, given for one run with `-c`; the user's own run beside them. Pure.

Codex asks at its start about hooks that nobody has reviewed, and waits. So the command line also marks these hooks as
trusted, by a hash of each. Measured with 0.166.0.
"""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shared.agents.hooks.formats import HookFormat, settings_below

EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PermissionRequest",
    "PostToolUse",
    "SubagentStart",
    "SubagentStop",
    "Stop",
    "Interrupt",
    "SessionEnd",
)
TIMEOUT_S = 3
"""Codex allows the last two events no more."""
SOURCE = "/<session-flags>/config.toml"
"""Codex's name for its command line as a source of hooks."""


def entry(command: str) -> dict[str, Any]:
    return {"hooks": [{"type": "command", "command": command, "timeout": TIMEOUT_S}]}


def configuration(command: str) -> str:
    """The value of `hooks` on a command line, in TOML."""
    state = {f"{SOURCE}:{_snake(event)}:0:0": {"trusted_hash": trusted_hash(event, command)} for event in EVENTS}
    return _toml({**{event: [entry(command)] for event in EVENTS}, "state": state})


def trusted_hash(event: str, command: str) -> str:
    """Codex's hash of a hook: of its event and its whole definition."""
    known_by = {"event_name": _snake(event), "hooks": [{**entry(command)["hooks"][0], "async": False}]}
    text = json.dumps(known_by, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def in_the_way(words: Sequence[str], _env: Mapping[str, str], _file: Path) -> str | None:
    """Why it can't get hooks: an option of the user would override them."""
    if any(re.match(r"""(?:-c=?|--config=)?\s*(["']?)hooks\1\s*[.=]""", word) for word in words):
        return "its command line configures `hooks` itself"
    return None


def _snake(event: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", event).lower()


def _toml(value: Any) -> str:
    match value:
        case dict():
            return "{" + ",".join(f"{json.dumps(key)}={_toml(each)}" for key, each in value.items()) + "}"
        case list():
            return "[" + ",".join(map(_toml, value)) + "]"
        case _:
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


FORMAT = HookFormat(
    "Codex",
    EVENTS,
    entry,
    configuration,
    in_the_way,
    "toml",
    settings_below("CODEX_HOME", ".codex", "hooks.json"),
    "Codex asks once, also when Muster starts it, whether the new hooks are to be trusted; only then it runs them",
)
