"""Antigravity CLI: the database of a conversation that the process holds open.

Not measured: the program is not available here. By reports, its files are `conversations/<id>.db` and
`cache/last_conversations.json`, with one conversation per directory. So there is an answer only if the process has one
database open, or if its command line and that file name the same one and no other process can have written it.
"""

from collections.abc import Sequence
from pathlib import Path

from shared.agents.identity import ConversationIdentity, conversation, document, home, option, others, selves
from shared.system.processes import Process, Processes

ROOT = Path(".gemini") / "antigravity-cli"
STORE = "conversations"


def identify(processes: Processes, agent: Process, workspace: Path) -> ConversationIdentity | None:
    own = selves(processes, agent)
    held = {path for process in own for path, _ in processes.open_files(process, ".db") if _is_conversation(path)}
    if len(held) == 1:
        path = held.pop()
        return ConversationIdentity(path.stem, path, processes.cwd(own[-1]))
    return None if held else _named(processes, own, workspace)


def _is_conversation(path: Path) -> bool:
    return path.suffix == ".db" and path.parent.name == STORE and conversation(path.stem) is not None


def _named(processes: Processes, own: Sequence[Process], workspace: Path) -> ConversationIdentity | None:
    if not own or (root := _root(processes, own[-1])) is None:
        return None
    place = processes.cwd(own[-1]) or workspace
    for other in others(processes, own):
        if _root(processes, other) in (root, None) and processes.cwd(other) in (place, None):
            return None
    named = conversation(option(processes.arguments(own[-1]), "--conversation"))
    last = document(root / "cache" / "last_conversations.json").get(str(place))
    path = root / STORE / f"{named}.db"
    return ConversationIdentity(named, path, place) if named is not None and named == last and path.is_file() else None


def _root(processes: Processes, process: Process) -> Path | None:
    place = home(processes.environment(process), "", "")
    return place / ROOT if place is not None else None
