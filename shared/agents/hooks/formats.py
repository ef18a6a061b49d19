"""How each agent program is given hooks."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.agents.parts import Parts


@dataclass(frozen=True)
class HookFormat:
    program: str
    """Its name for people."""
    events: Sequence[str]
    entry: Callable[[str], dict[str, Any]]
    """The settings of one event, for a command."""
    given: Callable[[str], str]
    """The text for one run, for a command."""
    in_the_way: Callable[[Sequence[str], Mapping[str, str], Path], str | None]
    """Why one run can't get hooks, by its command line, its environment and the file for them; None if it can."""
    suffix: str
    """The suffix of that file."""
    settings: Callable[[Mapping[str, str]], Path]
    """The user's settings file, by an environment with HOME."""
    then: str = ""
    """What a person has to do after an installation."""


def as_json(events: Sequence[str], entry: Callable[[str], dict[str, Any]]) -> Callable[[str], str]:
    """A settings document with an entry for each event."""

    def text(command: str) -> str:
        document = {"hooks": {event: [entry(command)] for event in events}}
        return json.dumps(document, indent=2, ensure_ascii=False) + "\n"

    return text


def settings_below(variable: str, usual: str, name: str) -> Callable[[Mapping[str, str]], Path]:
    return lambda env: Path(env.get(variable) or Path(env["HOME"], usual)) / name


FORMATS: Parts[HookFormat] = Parts("hooks", "FORMAT")
"""By program."""
