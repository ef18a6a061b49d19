"""The conversations that a Codex process holds, by the files that it has open."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from shared.identity.reading import changed, conversation, path_of
from shared.processes import Process, Processes
from shared.transcripts.codex import conversation_in
from shared.transcripts.json_lines import first

LOCKS = "thread-writer-locks"


@dataclass(frozen=True)
class Thread:
    """A conversation that is loaded. It has a rollout file from its first prompt on, and in older versions no lock."""

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
        """Whether people talk there; agents that an agent starts have files of their own."""
        return not isinstance(self._head.get("source"), dict)


def held_by(processes: Processes, process: Process) -> list[Thread]:
    locks: dict[str, Path] = {}
    rollouts: dict[str, Path] = {}
    for path, _ in processes.open_files(process, ".lock", ".jsonl"):
        if path.parent.name == LOCKS and path.suffix == ".lock" and conversation(path.stem):
            locks[path.stem] = path
        elif ident := conversation(conversation_in(path, path.parent)):
            rollouts[ident] = path
    return [Thread(ident, locks.get(ident), rollouts.get(ident)) for ident in dict.fromkeys((*locks, *rollouts))]


def is_server(processes: Processes, process: Process) -> bool:
    """Whether it works for others: an agent's conversation is not told by what it holds."""
    return "app-server" in processes.arguments(process)[1:]
