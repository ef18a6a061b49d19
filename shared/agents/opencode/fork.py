"""opencode's fork runs on a copy of its database of all conversations: else it would be added there (1.18.33)."""

import json
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from shared.agents.fork import (
    LIMITED,
    CannotAsk,
    Fork,
    ForkAnswer,
    ForkFailed,
    ForkSetup,
    OriginalConversation,
    failed,
    last_line,
    no_turn_yet,
    objects,
    text_at,
)
from shared.agents.opencode.transcript import open_read_only
from shared.system.child_process import ProgramResult

COPY = "copy.db"
BUSY_TIMEOUT_S = 5.0
CONFIG = "OPENCODE_CONFIG_CONTENT"
PEEK: dict[str, Any] = {
    "mode": "primary",
    "description": "answers a side question",
    "prompt": "You answer a question about a conversation. You have no tools.",
    "permission": {"*": "deny"},
    "tools": {"*": False},
}
"""An opencode agent that can only answer."""
_LOGGED = re.compile(r'error(?:\.\w+)*="(?:\w+: )?(?P<why>[^"]+)"')


def prepare(original: OriginalConversation, scratch: Path) -> ForkSetup:
    database = original.transcript
    if database is None or not database.is_file():
        raise CannotAsk(no_turn_yet().reason)
    size, free = database.stat().st_size, shutil.disk_usage(scratch).free
    if 2 * size > free:
        raise CannotAsk(
            f"a copy of {database} ({size >> 20} MB) would leave too little room: {free >> 20} MB are free;"
            " remove old conversations with `opencode session delete`"
        )
    try:
        _copy(database, scratch / COPY)
    except sqlite3.Error as error:
        raise CannotAsk(f"the database {database} can't be copied: {error}") from error
    return ForkSetup({CONFIG: _config(original.env.get(CONFIG, ""))})


def _copy(database: Path, copy: Path) -> None:
    with closing(open_read_only(database, BUSY_TIMEOUT_S)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)
    copy.chmod(0o600)


def _config(own: str) -> str:
    """The agent's own configuration in this variable, with the agent that only answers."""
    try:
        known = json.loads(own) if own else {}
    except (ValueError, RecursionError):
        known = {}
    known = known if isinstance(known, dict) else {}
    agents = known.get("agent")
    return json.dumps({**known, "agent": {**(agents if isinstance(agents, dict) else {}), "peek": PEEK}})


def read(ended: ProgramResult) -> ForkAnswer | ForkFailed | None:
    texts, why = [], ""
    for found in objects(ended.out):
        match found.get("type"):
            case "text":
                texts.append(text_at(found, "part", "text"))
            case "error":
                why = text_at(found, "error", "data", "message") or text_at(found, "error", "name") or "an error"
    if why:
        return failed(why)
    if any(texts):
        return ForkAnswer("\n".join(texts))
    if "Session not found" in ended.err:
        return no_turn_yet()
    logged = _logged(ended.err)
    said = logged[-1] if logged else last_line(ended.err) if ended.status else ""
    return failed(said) if said else None


def _logged(complaints: str) -> list[str]:
    """The errors in its log, which is the only place where it says that it waits for a limit."""
    return [each["why"] for each in _LOGGED.finditer(complaints)]


def is_hopeless(complaints: str) -> bool:
    return any(LIMITED.search(why) for why in _logged(complaints))


FORK = Fork(read, prepare, is_hopeless)
