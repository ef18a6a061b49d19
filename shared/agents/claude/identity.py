"""Claude Code: the conversation in its live file, `sessions/<pid>.json` (measured with 2.1.197).

The file exists from the first input box on, before the first prompt, but not before the directory is trusted. It names
the next conversation after `/clear`, and is removed at an orderly end. `procStart` tells processes with one pid apart.
The command line is no evidence: `/clear` and `/resume` change the conversation.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shared.agents.identity import ConversationIdentity, conversation, document, home, path_of, selves
from shared.agents.transcript import READERS
from shared.system.processes import Process, Processes

SLACK_S = 2.0
"""A live file may seem older than its process by so much, since some clocks count whole seconds."""


def identify(processes: Processes, agent: Process, workspace: Path) -> ConversationIdentity | None:
    # The topmost one: a Claude that another one runs has its own file.
    found = (_live(processes, process, workspace) for process in selves(processes, agent))
    return next((identity for identity in found if identity is not None), None)


def live_files(processes: Processes, agent: Process) -> Iterator[tuple[Process, Path]]:
    """The paths at which the live file may appear, with their processes, the likeliest first."""
    for process in selves(processes, agent):
        if (path := _file_of(processes, process)) is not None:
            yield process, path


def _file_of(processes: Processes, process: Process) -> Path | None:
    root = home(processes.environment(process), "CLAUDE_CONFIG_DIR", ".claude")
    return None if root is None else root / "sessions" / f"{process.pid}.json"


def _live(processes: Processes, process: Process, workspace: Path) -> ConversationIdentity | None:
    env, path = processes.environment(process), _file_of(processes, process)
    if path is None:
        return None
    live = document(path)
    said = conversation(live.get("sessionId"))
    if said is None or not is_of(live, process):
        return None
    works, status = path_of(live.get("cwd")), live.get("status")
    transcript = READERS["claude"].locate(env, works or workspace, said)
    return ConversationIdentity(said, transcript, works, status if isinstance(status, str) else None)


def is_of(live: dict[str, Any], process: Process) -> bool:
    """Whether a live file is of this process, and not of an earlier one with its pid."""
    if live.get("pid") != process.pid:
        return False
    if process.ticks is not None and "procStart" in live:
        return str(live["procStart"]) == str(process.ticks)
    started = live.get("startedAt")
    return isinstance(started, int | float) and started / 1000 >= process.started - SLACK_S
