"""The agents that have hooks, and how each wants to be told of them."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.agents.parts import Parts


@dataclass(frozen=True)
class HookFormat:
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


def as_json(document: Callable[[str], dict[str, Any]]) -> Callable[[str], str]:
    return lambda command: json.dumps(document(command), indent=2, ensure_ascii=False) + "\n"


def settings_below(variable: str, usual: str, name: str) -> Callable[[Mapping[str, str]], Path]:
    return lambda env: Path(env.get(variable) or Path(env["HOME"], usual)) / name


FORMATS: Parts[HookFormat] = Parts("hooks", "FORMAT")
"""By the program whose hooks they are."""
