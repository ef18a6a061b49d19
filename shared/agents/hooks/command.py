"""The shell command that runs the hook program, for an agent's settings. Pure."""

import shlex
import sys
from itertools import pairwise
from pathlib import Path

PROGRAM = Path(__file__).with_name("program.py")
GIVEN = "MUSTER_HOOKS"
"""Set for an agent that was started with hooks: those in its user's settings then do nothing."""
_ELSE = ">/dev/null 2>&1 || cat >/dev/null 2>&1 || :"
"""Whatever fails, even without the interpreter: print nothing, read the payload and succeed."""


NO_TEXT = "the path of the fleet is not UTF-8"


def is_text(directory: Path) -> bool:
    """Whether a settings file can hold the path: settings are UTF-8, a path may hold any bytes."""
    try:
        str(directory).encode()
    except UnicodeEncodeError:
        return False
    return True


def interpreter() -> str:
    """This process's Python outside of its virtual environment: it starts faster, and outlives the environment."""
    return str(Path(sys.executable).resolve())


def spawned(directory: Path, python: str | None = None) -> str:
    """The command for an agent that Muster starts: every event goes into the spool below `directory`."""
    return f"{_call(directory, python)} {_ELSE}"


def installed(directory: Path, python: str | None = None) -> str:
    """The command for a user's own settings: the same, but it does nothing in agents that were started with hooks.

    So no event is stored twice, and an agent that another agent starts is not taken for it.
    """
    return f'[ -z "${GIVEN}" ] && {_call(directory, python)} {_ELSE}'


def installed_for(command: str) -> Path | None:
    """The directory in an installed command; None if the command is not Muster's."""
    if f"${GIVEN}" not in command:
        return None
    try:
        words = shlex.split(command)
    except ValueError:
        return None
    return next((Path(after) for word, after in pairwise(words) if word.endswith(f"/{PROGRAM.name}")), None)


def _call(directory: Path, python: str | None) -> str:
    words = (python or interpreter(), "-I", "-S", str(PROGRAM), str(directory))
    # $PPID: the shell's parent is the agent.
    return " ".join([*map(_quoted, words), '"$PPID"'])


def _quoted(word: str) -> str:
    """Quoted for sh. Gemini CLI expands `$NAME` even inside quotes, so no name follows a `$`."""
    return shlex.quote(word).replace("$", "$''")
