"""Which backend runs in a session that somebody else started: told by its processes."""

from collections.abc import Mapping

from shared.fleet import Backend
from shared.processes import Processes, agent_in, recognised_by
from shared.tmux import Pane


def backend_of(backends: Mapping[str, Backend], pane: Pane) -> str | None:
    """The backend whose program runs in the pane; None if no name or several fit."""
    processes = Processes.look()
    if processes.below(pane.pid):
        found = agent_in(processes, backends, pane.pid)
        return found[0] if found is not None else None
    # Where the processes of others are hidden, tmux still has a name for what runs.
    fits = [name for name, backend in backends.items() if pane.command in recognised_by(backend)]
    return fits[0] if len(fits) == 1 else None
