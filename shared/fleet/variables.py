"""What an agent sees of the environment: what is allowed by name, and what its fleet file gives it. Pure."""

import re
from collections.abc import Iterable, Mapping
from fnmatch import translate
from functools import lru_cache

from shared.errors import MusterError
from shared.fleet.section import VARIABLE

TMUX_SETS = ("TERM", "TERM_*", "TMUX", "TMUX_*")
"""tmux puts these into every pane, from what it knows of the pane."""


class BadEnvironmentFile(MusterError):
    """A file of NAME=value lines that can't be used."""


def environment(allowed: Iterable[str], own: Mapping[str, str], *given: Mapping[str, str]) -> dict[str, str]:
    """The variables of `own` whose names are allowed, and over them what was given; the last of these counts most.

    Of another terminal, the one in which Muster itself was started, nothing is passed on.
    """
    patterns = tuple(allowed)
    env = {name: value for name, value in own.items() if matches(name, patterns) and not matches(name, TMUX_SETS)}
    for each in given:
        env.update(each)
    return env


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    return _any_of(patterns).match(name) is not None


@lru_cache(maxsize=256)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(translate, patterns)) or "(?!)")


def read_variables(text: str, where: str) -> dict[str, str]:
    """NAME=value lines. Nothing is expanded; a pair of quotes around a value is taken off. No fault repeats a value."""
    found = {}
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        words = line.strip().removeprefix("export ").lstrip()
        if not words or words.startswith("#"):
            continue
        name, equals, value = words.partition("=")
        if not equals or re.fullmatch(VARIABLE, name) is None:
            raise BadEnvironmentFile(f"{where}, line {number}: not NAME=value")
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        if "\0" in value:
            raise BadEnvironmentFile(f"{where}, line {number}: {name} holds a NUL character, which no variable can")
        found[name] = value
    return found
