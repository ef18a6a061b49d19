"""Codex: the conversation whose writer's lock the process holds (measured with 0.166.0).

The program that the npm wrapper starts holds `thread-writer-locks/<id>.lock` open from its start, and the rollout file
too from the first prompt on. After `/new`, `/resume` or `/fork` it keeps the earlier ones open. A lock file is created
again whenever its conversation is resumed, so the newest belongs to the conversation on the screen.

As shipped, one server process holds the locks for every Codex of one HOME. It is a child of whichever Codex came first
and outlives it. Nothing on disk ties a conversation of the server to a terminal, so there is an answer only where
exactly one conversation and one Codex can belong together.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import time
from typing import Any

from shared.agents.codex.transcript import conversation_in
from shared.agents.identity import ConversationIdentity, changed, conversation, home, option, others, path_of, selves
from shared.agents.transcript import READERS, first
from shared.system.processes import Process, Processes

LOCKS = "thread-writer-locks"


@dataclass(frozen=True)
class CodexThread:
    """A loaded conversation. It has a rollout file from its first prompt on, and in older versions no lock."""

    conversation: str
    lock: Path | None = None
    rollout: Path | None = None

    @cached_property
    def taken_up(self) -> float | None:
        """When it was loaded."""
        return changed(self.lock) if self.lock is not None else None

    @cached_property
    def _head(self) -> dict[str, Any]:
        about = first(self.rollout).get("payload") if self.rollout is not None else None
        return about if isinstance(about, dict) else {}

    @property
    def workspace(self) -> Path | None:
        return path_of(self._head.get("cwd"))

    @property
    def is_of_people(self) -> bool:
        """Whether it is a person's conversation, and not one of a subagent."""
        return not isinstance(self._head.get("source"), dict)


def held_by(processes: Processes, process: Process) -> list[CodexThread]:
    locks: dict[str, Path] = {}
    rollouts: dict[str, Path] = {}
    for path, _ in processes.open_files(process, ".lock", ".jsonl"):
        if path.parent.name == LOCKS and path.suffix == ".lock" and conversation(path.stem):
            locks[path.stem] = path
        elif ident := conversation(conversation_in(path, path.parent)):
            rollouts[ident] = path
    return [CodexThread(ident, locks.get(ident), rollouts.get(ident)) for ident in dict.fromkeys((*locks, *rollouts))]


def is_server(processes: Processes, process: Process) -> bool:
    """Whether it serves other processes: its open files do not show an agent's conversation."""
    return "app-server" in processes.arguments(process)[1:]


ELSEWHERE = ("-C", "--cd")
SLACK_S = 1.0


def thread_of(processes: Processes, own: Sequence[Process]) -> CodexThread | None:
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
        return None  # before its first prompt its workspace is unknown
    here = [thread for thread in threads if thread.is_of_people and thread.workspace == place]
    return here[0] if len(here) == 1 and (here[0].taken_up or 0.0) >= agent.started - SLACK_S else None


def _may_be_here(processes: Processes, process: Process, root: Path, place: Path) -> bool:
    if option(processes.arguments(process), *ELSEWHERE):
        return True
    return _root(processes, process) in (root, None) and processes.cwd(process) in (place, None)


def _root(processes: Processes, process: Process) -> Path | None:
    return home(processes.environment(process), "CODEX_HOME", ".codex")


SETTLES_S = 2.0
"""A subagent has its lock a moment before the file that shows that it is one."""


def identify(processes: Processes, agent: Process, workspace: Path) -> ConversationIdentity | None:
    own = [process for process in selves(processes, agent) if not is_server(processes, process)]
    for process in own:
        if threads := held_by(processes, process):
            thread = _on_screen(threads)
            return _identity(processes, process, thread, workspace) if thread is not None else None
    thread = thread_of(processes, own) if own else None
    return _identity(processes, own[-1], thread, workspace) if thread is not None else None


def _on_screen(threads: Sequence[CodexThread]) -> CodexThread | None:
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


def _identity(processes: Processes, process: Process, thread: CodexThread, workspace: Path) -> ConversationIdentity:
    env = processes.environment(process)
    transcript = thread.rollout or READERS["codex"].locate(env, workspace, thread.conversation)
    return ConversationIdentity(thread.conversation, transcript, thread.workspace)
