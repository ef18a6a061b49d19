"""The command line of the hook program, as an agent's settings hold it: agents hand it to a shell. Pure."""

import shlex
import sys
from itertools import pairwise
from pathlib import Path

PROGRAM = Path(__file__).with_name("program.py")
GIVEN = "MUSTER_HOOKS"
"""Set for an agent that was started with hooks: those in the settings of its user then keep silent."""
_ELSE = ">/dev/null 2>&1 || cat >/dev/null 2>&1 || :"
"""Whatever happens, nothing is said, the payload is taken and the end is a good one: also without the interpreter."""


NO_TEXT = "the path of the fleet is not UTF-8"


def is_text(directory: Path) -> bool:
    """Whether a settings file can name it: all are UTF-8, and a path may hold any bytes."""
    try:
        str(directory).encode()
    except UnicodeEncodeError:
        return False
    return True


def interpreter() -> str:
    """This process's Python, without its virtual environment: it starts sooner, and stays when that is made anew."""
    return str(Path(sys.executable).resolve())


def spawned(directory: Path, python: str | None = None) -> str:
    """For an agent that Muster starts: tells the spool below `directory` of everything."""
    return f"{_call(directory, python)} {_ELSE}"


def installed(directory: Path, python: str | None = None) -> str:
    """For a user's own settings: the same, but silent in agents that were given their hooks when they were started.

    So nothing is told twice, and an agent that another one starts is not taken for it.
    """
    return f'[ -z "${GIVEN}" ] && {_call(directory, python)} {_ELSE}'


def installed_for(command: str) -> Path | None:
    """The directory that an installed command tells; None for commands of others."""
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
    """For sh. Gemini CLI puts variables in place of `$NAME` even inside quotes, so no name follows a `$`."""
    return shlex.quote(word).replace("$", "$''")
