"""Which processes are the agent itself, and which are others of its kind."""

from collections.abc import Iterator, Sequence

from shared.processes import Process, Processes, is_general


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
