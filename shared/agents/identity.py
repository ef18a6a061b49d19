"""Which conversation a running agent is in, by the agent's own files. Read only, and never a guess.

`recognition.agent_in` finds the agent's process, the program's `identify` its conversation.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shared.agents.parts import Parts
from shared.contract.ids import is_conversation
from shared.fleet import Backend
from shared.system.processes import Process, Processes, is_general


@dataclass(frozen=True)
class ConversationIdentity:
    """The conversation that a process is in."""

    conversation: str
    transcript: Path | None = None
    """Its file, once it exists."""
    workspace: Path | None = None
    """Where the agent works, if it says so."""
    status: str | None = None
    """The status in the agent's live file: busy, idle, waiting, shell."""


IdentityReader = Callable[[Processes, Process, Path], ConversationIdentity | None]
"""From all processes, the agent's process and its workspace. None unless it is certain. Never raises for the contents
of files."""


AT_MOST_BYTES = 4 << 20
"""Larger files are not read: what agents keep about themselves is smaller."""


def json_in(path: Path) -> Any:
    """The content of a small JSON file; None if it is missing, half written, or no JSON."""
    try:
        with path.open("rb") as file:
            content = file.read(AT_MOST_BYTES + 1)
        return json.loads(content) if len(content) <= AT_MOST_BYTES else None
    except (OSError, ValueError, RecursionError):
        return None


def document(path: Path) -> dict[str, Any]:
    found = json_in(path)
    return found if isinstance(found, dict) else {}


def conversation(found: Any) -> str | None:
    """The value, if it can be the id of a conversation."""
    return found if isinstance(found, str) and is_conversation(found) else None


def path_of(found: Any) -> Path | None:
    """The value as a path, if it is an absolute one."""
    return Path(found) if isinstance(found, str) and found.startswith("/") and "\0" not in found else None


def home(env: Mapping[str, str], variable: str, below_home: str) -> Path | None:
    """The directory of an agent's files: from its variable, else below HOME; None if both are missing."""
    if env.get(variable):
        return Path(env[variable])
    return Path(env["HOME"]) / below_home if env.get("HOME") else None


def option(arguments: Sequence[str], *names: str) -> str | None:
    """The value of an option, `--name value` or `--name=value`; the last one counts."""
    found = None
    for place, word in enumerate(arguments):
        if word == "--":
            break
        name, given, value = word.partition("=")
        if name in names:
            found = value if given else next(iter(arguments[place + 1 : place + 2]), None)
    return found


def changed(path: Path) -> float | None:
    """When a file was last written, in seconds since 1970."""
    try:
        return path.stat().st_mtime
    except (OSError, ValueError):
        return None


def selves(processes: Processes, agent: Process) -> list[Process]:
    """The agent's process, and below it the programs of the same name that a wrapper started.

    Not what the agent runs as its work, even an agent of the same kind: a shell is between them.
    """
    below = processes.below(agent.pid)
    found = below[:1]
    known = {agent.pid: _telling(processes, agent)}
    for process in below[1:]:
        names = _telling(processes, process)
        if names & known.get(process.parent, set()):
            known[process.pid] = names
            found.append(process)
    return found


def others(processes: Processes, own: Sequence[Process]) -> Iterator[Process]:
    """All other processes with the agent's names, wherever they run."""
    kernel_names = {process.name for process in own}
    names = {name for process in own for name in _telling(processes, process)}
    pids = {process.pid for process in own}
    for process in processes:
        # The kernel's name first: reading every command line of the machine would take too long.
        if process.name in kernel_names and process.pid not in pids and names & _telling(processes, process):
            yield process


def _telling(processes: Processes, process: Process) -> set[str]:
    return {name for name in processes.names(process) if name and not is_general(name)}


IDENTITY_READERS: Parts[IdentityReader] = Parts("identity", "identify")
"""By program: what a backend names as `transcript`, or its own name."""


def identity_reader_for(name: str, backend: Backend) -> IdentityReader | None:
    return IDENTITY_READERS.get(backend.transcript or name)


def identify(
    name: str, backend: Backend, processes: Processes, agent: Process, workspace: Path
) -> ConversationIdentity | None:
    """The conversation that the process of an agent of this backend is in; None unless it is certain."""
    reader = identity_reader_for(name, backend)
    return reader(processes, agent, workspace) if reader is not None else None
