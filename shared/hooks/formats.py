"""The agents that have hooks, and how each wants to be told of them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.hooks import claude, codex, gemini


@dataclass(frozen=True)
class Format:
    program: str
    """What people call it."""
    events: Sequence[str]
    entry: Callable[[str], dict[str, Any]]
    """What stands under each event, for a command."""
    given: Callable[[str], str]
    """The text that is given to one run, for a command."""
    in_the_way: Callable[[Sequence[str], Mapping[str, str], Path], str | None]
    """Why nothing can be given to one run; asked with its command line, its environment and the file for it."""
    suffix: str
    """Of that file."""
    settings: Callable[[Mapping[str, str]], Path]
    """Where a user's own hooks are, in an environment with HOME."""
    then: str = ""
    """What is left for a person to do after hooks were installed."""


def _json(document: Callable[[str], dict[str, Any]]) -> Callable[[str], str]:
    return lambda command: json.dumps(document(command), indent=2, ensure_ascii=False) + "\n"


def _below(variable: str, usual: str, name: str) -> Callable[[Mapping[str, str]], Path]:
    return lambda env: Path(env.get(variable) or Path(env["HOME"], usual)) / name


FORMATS: Mapping[str, Format] = {
    "claude": Format(
        "Claude Code",
        claude.EVENTS,
        claude.entry,
        _json(claude.document),
        claude.in_the_way,
        "json",
        _below("CLAUDE_CONFIG_DIR", ".claude", "settings.json"),
    ),
    "codex": Format(
        "Codex",
        codex.EVENTS,
        codex.entry,
        codex.configuration,
        codex.in_the_way,
        "toml",
        _below("CODEX_HOME", ".codex", "hooks.json"),
        "Codex asks once, also when Muster starts it, whether the new hooks are to be trusted; only then it runs them",
    ),
    "gemini": Format(
        "Gemini CLI",
        gemini.EVENTS,
        gemini.entry,
        _json(gemini.document),
        gemini.in_the_way,
        "json",
        lambda env: Path(env.get("GEMINI_CLI_HOME") or env["HOME"]) / ".gemini" / "settings.json",
    ),
}
