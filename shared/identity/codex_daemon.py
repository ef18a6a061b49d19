"""Codex with its server: one process keeps the conversations of all Codex of one HOME (measured with 0.166.0).

It is a child of whichever Codex came first and outlives it. Nothing on disk ties a conversation of the server to a
terminal, so there is an answer only where one conversation and one Codex can belong together.
"""

from collections.abc import Sequence
from pathlib import Path

from shared.identity.codex_threads import Thread, held_by, is_server
from shared.identity.reading import home, option
from shared.identity.relatives import others
from shared.processes import Process, Processes

ELSEWHERE = ("-C", "--cd")
SLACK_S = 1.0


def thread_of(processes: Processes, own: Sequence[Process]) -> Thread | None:
    agent = own[-1]
    root, place = _root(processes, agent), processes.cwd(agent)
    if root is None or place is None or option(processes.arguments(agent), *ELSEWHERE):
        return None
    around = list(others(processes, own))
    if any(_may_be_here(processes, each, root, place) for each in around if not is_server(processes, each)):
        return None
    servers = [each for each in around if is_server(processes, each) and _root(processes, each) == root]
    threads = [thread for server in servers for thread in held_by(processes, server)]
    if any(thread.rollout is None for thread in threads):
        return None  # nobody has prompted it yet, and so nobody knows where it is
    here = [thread for thread in threads if thread.is_of_people and thread.workspace == place]
    return here[0] if len(here) == 1 and (here[0].taken_up or 0.0) >= agent.started - SLACK_S else None


def _may_be_here(processes: Processes, process: Process, root: Path, place: Path) -> bool:
    if option(processes.arguments(process), *ELSEWHERE):
        return True
    return _root(processes, process) in (root, None) and processes.cwd(process) in (place, None)


def _root(processes: Processes, process: Process) -> Path | None:
    return home(processes.environment(process), "CODEX_HOME", ".codex")
