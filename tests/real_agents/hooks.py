"""How each program is made to tell what it does, for one run: every hook it has appends one line to a file.

A line is `{"at": epoch seconds, "payload": what the program gave the hook}`. Claude Code takes the hooks from a
settings file named on its command line, Codex from `hooks.json` in its HOME (with its question whether to trust them
answered on the command line), Gemini CLI from its settings. opencode has no hooks: its bus is listened to.
"""

import json
from pathlib import Path
from typing import Any

from tests.real_agents.clis import Cli, Place

SHARED = (
    *("SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "SubagentStart"),
    *("SubagentStop", "Stop", "PreCompact", "PostCompact", "SessionEnd"),
)
EVENTS = {
    "claude": (*SHARED, "PostToolUseFailure", "PermissionDenied", "StopFailure", "Notification"),
    "codex": (*SHARED, "Interrupt"),
    "gemini": (
        *("SessionStart", "SessionEnd", "BeforeAgent", "AfterAgent", "BeforeTool", "AfterTool", "Notification"),
        "PreCompress",
    ),
}
RECORDER = """\
#!/bin/sh
at=$(date +%s.%N)
printf '{"at": %s, "payload": %s}\\n' "$at" "$(tr -d '\\n')" >> '__FILE__'
"""


def listen(cli: Cli, place: Place, file: Path) -> tuple[str, ...]:
    """Have every hook told into that file; gives what the program has to be started with for it."""
    recorder = place.home / "hook"
    recorder.write_text(RECORDER.replace("__FILE__", str(file)))
    recorder.chmod(0o755)
    match cli.name:
        case "claude":
            settings = place.home / "hooks.json"
            settings.write_text(json.dumps({"hooks": _hooks(cli, recorder)}))
            return ("--settings", str(settings))
        case "codex":
            (place.home / ".codex" / "hooks.json").write_text(json.dumps({"hooks": _hooks(cli, recorder)}))
            return ("--dangerously-bypass-hook-trust",)
        case "gemini":
            own = place.home / ".gemini" / "settings.json"
            own.write_text(json.dumps({**json.loads(own.read_text()), "hooks": _hooks(cli, recorder)}))
            return ()
        case _:
            return ()


def _hooks(cli: Cli, recorder: Path) -> dict[str, Any]:
    run = {"hooks": [{"type": "command", "command": str(recorder), "name": "recorder"}]}
    return {event: [run] for event in EVENTS[cli.name]}


def told(file: Path) -> list[dict[str, Any]]:
    """What the hooks have said so far, in order; a line that is being written is not yet said."""
    if not file.exists():
        return []
    whole = file.read_text(encoding="utf-8").rpartition("\n")[0]
    return [json.loads(line, strict=False) for line in whole.splitlines()]
