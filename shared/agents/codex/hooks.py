"""Codex CLI: hooks as configuration, given for one run with `-c`; the user's own run beside them. Pure.

Codex runs no hook that nobody has reviewed: at its start it asks, and waits. So what is given on the command line says
that it is trusted, by a hash of each hook: of these and no others. Measured with 0.166.0.
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
"""Codex grants the last two no more."""
SOURCE = "/<session-flags>/config.toml"
"""What Codex calls its command line where it names hooks."""


def entry(command: str) -> dict[str, Any]:
    """What stands under each event."""
    return {"hooks": [{"type": "command", "command": command, "timeout": TIMEOUT_S}]}


def document(command: str) -> dict[str, Any]:
    """For a `hooks.json`."""
    return {"hooks": {event: [entry(command)] for event in EVENTS}}


def configuration(command: str) -> str:
    """The value of `hooks` on a command line, in TOML."""
    state = {f"{SOURCE}:{_snake(event)}:0:0": {"trusted_hash": trusted_hash(event, command)} for event in EVENTS}
    return _toml({**document(command)["hooks"], "state": state})


def trusted_hash(event: str, command: str) -> str:
    """By which Codex knows a hook again: of its event and all that it does."""
    known_by = {"event_name": _snake(event), "hooks": [{**entry(command)["hooks"][0], "async": False}]}
    text = json.dumps(known_by, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def in_the_way(words: Sequence[str], _env: Mapping[str, str], _file: Path) -> str | None:
    """Why no hooks can be given: an option of the user's would be laid over them, in part or as a whole."""
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
