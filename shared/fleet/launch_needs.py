"""What an agent needs to start: workspace, prompt, variables and program. Read for every start."""

import os
import re
import shutil
import stat
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import translate
from functools import lru_cache
from pathlib import Path

from shared.errors import MusterError
from shared.fleet.backend import Backend
from shared.fleet.check import outside
from shared.fleet.file import as_path
from shared.fleet.fleet import BadPath, Fleet
from shared.fleet.section import VARIABLE


def spliced(argv: Sequence[str], lists: Mapping[str, Sequence[str]]) -> list[str]:
    """Replace words such as `{model_args}` by the lists that they name."""
    named = {f"{{{name}}}": words for name, words in lists.items()}
    return [each for word in argv for each in named.get(word, [word])]


def fill(word: str, values: Mapping[str, str]) -> str:
    """Replace each `{name}` by its value, once; unknown names and other braces stay."""
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), word)


TMUX_SETS = ("TERM", "TERM_*", "TMUX", "TMUX_*")
"""tmux sets these in every pane."""


class BadEnvironmentFile(MusterError):
    """A file with a line that is not NAME=value."""


def environment(allowed: Iterable[str], own: Mapping[str, str], *given: Mapping[str, str]) -> dict[str, str]:
    """The allowed variables of `own`, overridden by those of `given` in their order.

    Variables about the terminal in which Muster was started are never passed on.
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
    """Parse NAME=value lines. Quotes around a value are removed, nothing is expanded. No error repeats a value."""
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


class CannotStart(MusterError):
    """The agent can't be started as it is declared."""


def workspace_of(fleet: Fleet, agent: str, directory: Path | None = None) -> Path:
    """The agent's workspace, checked again: links may have changed since the file was read. Raises CannotStart."""
    directory = directory or fleet.agents[agent].dir
    if said := outside(fleet, directory):
        raise CannotStart(f"agent {agent!r} can't be started: {said}")
    workspace = fleet.resolve(directory)
    try:
        str(workspace).encode()
    except UnicodeEncodeError:
        raise CannotStart(
            f"the workspace of agent {agent!r} has a name that is not UTF-8: {str(workspace)!r}"
        ) from None
    if not workspace.is_dir():
        raise CannotStart(f"the workspace {workspace} of agent {agent!r} is not a directory; make it or change `dir`")
    if not os.access(workspace, os.R_OK | os.X_OK):
        # tmux would silently start the program elsewhere.
        raise CannotStart(f"the workspace {workspace} of agent {agent!r} can't be entered; see to its permissions")
    return workspace


def prompt_of(fleet: Fleet, agent: str) -> str:
    declared = fleet.agents[agent]
    if declared.prompt_file is None:
        return declared.prompt
    try:
        return read_text(fleet.resolve(declared.prompt_file))
    except (BadPath, OSError, UnicodeDecodeError) as error:
        path = fleet.path.parent / declared.prompt_file
        raise CannotStart(f"the prompt_file {path} of agent {agent!r} can't be read: {_why(error)}") from error


def variables_of(fleet: Fleet, agent: str, backend: Backend, own: Mapping[str, str]) -> dict[str, str]:
    """The agent's environment; `own` is Muster's. Raises CannotStart."""
    declared = fleet.agents[agent]
    allowed = [*fleet.declared.environment.allow, *backend.env_from, *declared.env_from]
    revealed = [{name: value.get_secret_value() for name, value in env.items()} for env in (backend.env, declared.env)]
    return environment(allowed, own, revealed[0], _of_file(fleet, agent), revealed[1])


def read_text(path: Path) -> str:
    """The text of a file, not of a pipe, which might never end."""
    if stat.S_ISFIFO(path.stat().st_mode):
        raise OSError("it is a pipe and not a file")
    return path.read_text(encoding="utf-8")


def _of_file(fleet: Fleet, agent: str) -> dict[str, str]:
    env_file = fleet.agents[agent].env_file
    if env_file is None:
        return {}
    try:
        path = fleet.resolve(env_file)
        mode = path.stat().st_mode
        text = read_text(path)
    except (BadPath, OSError, UnicodeDecodeError) as error:
        # Without the path: people may write a secret where its file should be named.
        raise CannotStart(f"the env_file of agent {agent!r} can't be read: {_why(error)}") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise CannotStart(f"the env_file {path} can be read by others; make it private with: chmod 600 {path}")
    return read_variables(text, str(path))


def program_of(fleet: Fleet, name: str, backend: Backend, values: Mapping[str, str], path: str | None) -> str:
    """The program of a backend: its `binary`, else the first word of its command line, with `values` filled in.

    A path is relative to the fleet file; a name is looked up on the agent's PATH. Raises CannotStart.
    """
    binary = fill(backend.binary or backend.argv[0], values)
    if "/" in binary:
        # Links are not followed: some programs act by the name with which they are called.
        found: str | None = str(fleet.path.parent / as_path(binary))
        where = "" if _can_run(Path(found or "")) else ", and no such program can be run"
    else:
        found = shutil.which(binary, path=path)
        where = "" if found else ", and there is none on the PATH"
    if where or found is None:
        how = f"install it with: {backend.install}" if backend.install else "install it, or change `binary` of it"
        raise CannotStart(f"the backend {name!r} needs the program {binary!r}{where}; {how}")
    return found


def _can_run(path: Path) -> bool:
    try:
        return path.is_file() and os.access(path, os.X_OK)
    except (OSError, ValueError):
        return False


def _why(error: Exception) -> str:
    match error:
        case OSError():
            return error.strerror or str(error)
        case UnicodeDecodeError():
            return "it is no text in UTF-8"
        case _:
            return str(error)
