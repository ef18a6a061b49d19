"""Which conversation a running agent is in, according to the agent's own files. Read only, and never a guess.

`shared.agents.recognition.agent_in` finds the agent's process; the program's reader then finds its conversation.
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
    """The conversation that a process is in, by the agent's own files."""

    conversation: str
    transcript: Path | None = None
    """The file that keeps it, once it is there."""
    workspace: Path | None = None
    """Where the agent works, if it says so."""
    status: str | None = None
    """What the agent's live file says of it, in its own words: busy, idle, waiting, shell."""


IdentityReader = Callable[[Processes, Process, Path], ConversationIdentity | None]
"""From a look, the agent's process in it, and its workspace. None unless it is certain.

Never raises for what files hold.
"""


AT_MOST_BYTES = 4 << 20
"""The files that agents keep about themselves are smaller; what is not, is something else."""


def json_in(path: Path) -> Any:
    """What a small JSON file holds; None if it is not there, half written, or no JSON."""
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
    """An id that may stand for a conversation."""
    return found if isinstance(found, str) and is_conversation(found) else None


def path_of(found: Any) -> Path | None:
    """A path that a document names."""
    return Path(found) if isinstance(found, str) and found.startswith("/") and "\0" not in found else None


def home(env: Mapping[str, str], variable: str, below_home: str) -> Path | None:
    """Where an agent keeps its files: where a variable of its own says, else in its HOME; None if it has neither."""
    if env.get(variable):
        return Path(env[variable])
    return Path(env["HOME"]) / below_home if env.get("HOME") else None


def option(arguments: Sequence[str], *names: str) -> str | None:
    """What a command line gives for an option, `--name value` or `--name=value`; the last one counts."""
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
    """The agent's process, and those that it has put in its place: the program that a wrapper of its name started.

    Not what the agent runs as its work, though that may be an agent of the same kind: a shell stands between.
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
    """All other processes that are called as the agent is, wherever they run."""
    kernel_names = {process.name for process in own}
    names = {name for process in own for name in _telling(processes, process)}
    pids = {process.pid for process in own}
    for process in processes:
        # The kernel's name first: to read every command line of the machine would take too long.
        if process.name in kernel_names and process.pid not in pids and names & _telling(processes, process):
            yield process


def _telling(processes: Processes, process: Process) -> set[str]:
    return {name for name in processes.names(process) if name and not is_general(name)}


READERS: Parts[IdentityReader] = Parts("identity", "identify")
"""By the kind of agent: what its backend names as `transcript`, or the backend's own name."""


def reader_for(name: str, backend: Backend) -> IdentityReader | None:
    return READERS.get(backend.transcript or name)


def identify(
    name: str, backend: Backend, processes: Processes, agent: Process, workspace: Path
) -> ConversationIdentity | None:
    """The conversation that the process of an agent of this backend is in; None unless it is certain."""
    reader = reader_for(name, backend)
    return reader(processes, agent, workspace) if reader is not None else None
