"""Which conversation a running agent is in, by the agents' own files. Nothing here writes, and nothing guesses.

`shared.processes.agent_in` finds the agent's process; a reader of its kind then says which conversation it is in.
"""

from collections.abc import Mapping
from pathlib import Path

from shared.fleet import Backend
from shared.identity import agy, claude, codex, demo, gemini, opencode
from shared.identity.identity import Identity, IdentityReader
from shared.processes import Process, Processes

READERS: Mapping[str, IdentityReader] = {
    "agy": agy.identify,
    "claude": claude.identify,
    "codex": codex.identify,
    "demo": demo.identify,
    "gemini": gemini.identify,
    "opencode": opencode.identify,
}
"""By the kind of agent: what its backend names as `transcript`, or the backend's own name."""


def reader_for(name: str, backend: Backend) -> IdentityReader | None:
    return READERS.get(backend.transcript or name)


def identify(name: str, backend: Backend, processes: Processes, agent: Process, workspace: Path) -> Identity | None:
    """The conversation that the process of an agent of this backend is in; None unless it is certain."""
    reader = reader_for(name, backend)
    return reader(processes, agent, workspace) if reader is not None else None


__all__ = ["READERS", "Identity", "IdentityReader", "identify", "reader_for"]
