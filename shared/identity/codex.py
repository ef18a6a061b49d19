"""Codex: the conversation whose writer's lock the process holds (measured with 0.166.0).

The program that the npm wrapper starts holds `thread-writer-locks/<id>.lock` open from its start, and from the first
prompt on the rollout file too. After `/new`, `/resume` or `/fork` it goes on holding those of before. A lock file is
made anew whenever its conversation is taken up, so the youngest is that of the conversation on the screen.

As it is shipped, a server does this for all Codex of one HOME: see `codex_daemon`.
"""

from collections.abc import Sequence
from pathlib import Path
from time import time

from shared.identity import codex_daemon
from shared.identity.codex_threads import Thread, held_by, is_server
from shared.identity.identity import Identity
from shared.identity.relatives import selves
from shared.processes import Process, Processes
from shared.transcripts import READERS

SETTLES_S = 2.0
"""An agent that the agent starts has a lock a moment before it has a file which says what it is."""


def identify(processes: Processes, agent: Process, workspace: Path) -> Identity | None:
    own = [process for process in selves(processes, agent) if not is_server(processes, process)]
    for process in own:
        if threads := held_by(processes, process):
            thread = _on_screen(threads)
            return _identity(processes, process, thread, workspace) if thread is not None else None
    thread = codex_daemon.thread_of(processes, own) if own else None
    return _identity(processes, own[-1], thread, workspace) if thread is not None else None


def _on_screen(threads: Sequence[Thread]) -> Thread | None:
    if len(threads) == 1:
        return threads[0]
    ours = sorted((thread for thread in threads if thread.is_of_people), key=lambda thread: thread.taken_up or 0.0)
    if not ours:
        return None
    youngest, since = ours[-1], ours[-1].taken_up or 0.0
    if youngest.rollout is None and time() - since < SETTLES_S:
        return None
    before = [thread.taken_up or since for thread in ours[:-1]]
    return youngest if all(earlier < since for earlier in before) else None


def _identity(processes: Processes, process: Process, thread: Thread, workspace: Path) -> Identity:
    env = processes.environment(process)
    transcript = thread.rollout or READERS["codex"].locate(env, workspace, thread.conversation)
    return Identity(thread.conversation, transcript, thread.workspace)
