"""Making a session for an agent: from the fleet file's words to an argv, with no shell in between."""

import re
import sys
from dataclasses import dataclass
from pathlib import Path

from shared.backends import DIRECTORY
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.tmux import Pane, Tmux


class CannotStart(MusterError):
    """The agent can't be started as it is declared."""


@dataclass(frozen=True)
class Launch:
    """All that tmux needs to be told."""

    agent: str
    backend: str
    argv: list[str]
    workspace: Path
    env: dict[str, str]
    fleet: Path


def plan(fleet: Fleet, agent: str) -> Launch:
    """Work out how to start an agent, or say why it can't be."""
    declared = fleet.declared.agents[agent]
    backend = fleet.backend(declared.backend)
    if backend is None:
        raise CannotStart(f"agent {agent!r} names the backend {declared.backend!r}, which the fleet file does not have")
    try:
        workspace = workspace_of(fleet, agent)
        there = workspace.is_dir()
    except (RuntimeError, ValueError, OSError) as error:
        raise CannotStart(f"the workspace {str(declared.dir)!r} of agent {agent!r} can't be: {error}") from error
    if not there:
        raise CannotStart(f"the workspace {workspace} of agent {agent!r} is not a directory; make it or change `dir`")
    values = {"python": sys.executable, "backends": str(DIRECTORY), "agent": agent, "prompt": declared.prompt}
    return Launch(
        agent=agent,
        backend=declared.backend,
        argv=[fill(word, values) for word in backend.argv],
        workspace=workspace,
        env={**backend.env, **declared.env},
        fleet=fleet.path,
    )


def workspace_of(fleet: Fleet, agent: str) -> Path:
    return (fleet.path.parent / fleet.declared.agents[agent].dir.expanduser()).resolve()


def fill(word: str, values: dict[str, str]) -> str:
    """Put values in place of `{name}`, once; other braces stay, for a command line may need them."""
    return re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), word)


def launch(tmux: Tmux, order: Launch, *, spawn: str, stamp: str) -> Pane:
    try:
        return tmux.start(
            session=order.agent,
            argv=order.argv,
            cwd=order.workspace,
            env={**order.env, "MUSTER_AGENT": order.agent, "MUSTER_SPAWN": spawn, "MUSTER_FLEET": str(order.fleet)},
            agent=order.agent,
            spawn=spawn,
            fleet=stamp,
        )
    except ValueError as error:
        raise CannotStart(f"agent {order.agent!r} can't be started as it is declared: {error}") from error
