"""What an agent sees of the environment: what is allowed by name, and what its fleet file gives it. Pure."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

from shared.errors import MusterError

TMUX_SETS = ("TERM", "TERM_*", "TMUX", "TMUX_*")
"""tmux puts these into every pane, from what it knows of the pane."""


class BadEnvironmentFile(MusterError):
    """A file of NAME=value lines that can't be used."""


def environment(allowed: Iterable[str], own: Mapping[str, str], *given: Mapping[str, str]) -> dict[str, str]:
    """The variables of `own` whose names are allowed, and over them what was given, the last one first."""
    patterns = list(allowed)
    env = {name: value for name, value in own.items() if _matches(name, patterns)}
    for each in given:
        env.update(each)
    return env


def to_hide(server: Iterable[str], env: Mapping[str, str]) -> list[str]:
    """What a tmux server would pass on and the agent is not to see."""
    return sorted(name for name in server if name not in env and not _matches(name, TMUX_SETS))


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def read_variables(text: str, where: str) -> dict[str, str]:
    """NAME=value lines. Nothing is expanded; a pair of quotes around a value is taken off. No fault repeats a value."""
    found = {}
    for number, line in enumerate(text.splitlines(), start=1):
        words = line.strip().removeprefix("export ").lstrip()
        if not words or words.startswith("#"):
            continue
        name, equals, value = words.partition("=")
        if not equals or not name.isidentifier() or not name.isascii():
            raise BadEnvironmentFile(f"{where}, line {number}: not NAME=value")
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
            value = value[1:-1]
        found[name] = value
    return found
