"""What a program writes of its newest conversation: read from its HOME, long fields cut."""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

LONGEST, SHORTEST, LONGEST_LINE = 1000, 120, 3000
TRANSCRIPTS = {
    "claude": ".claude/projects/*/*.jsonl",
    "codex": ".codex/sessions/*/*/*/rollout-*.jsonl",
    "gemini": ".gemini/tmp/*/chats/*.jsonl",
}
SUBAGENTS = {
    "claude": ".claude/projects/*/*/subagents/*.jsonl",
    "gemini": ".gemini/tmp/*/chats/*/*.jsonl",
}
OPENCODE = ".local/share/opencode/opencode.db"

Trace = dict[str, Any]


def transcript(cli: str, home: Path) -> Trace | None:
    """The main conversation, or nothing where none was begun."""
    if cli == "opencode":
        return next(_opencode(home, "parent_id is null"), None)
    files = sorted(home.glob(TRANSCRIPTS[cli]))
    if cli == "codex":  # a subagent's conversation is a rollout like any other; names tell the order, and it came later
        return _jsonl(files[0], home) if files else None
    return _jsonl(max(files, key=lambda file: file.stat().st_mtime), home) if files else None


def subagents(cli: str, home: Path) -> dict[str, Trace]:
    if cli == "opencode":
        return {trace["path"]: trace for trace in _opencode(home, "parent_id is not null")}
    files = sorted(home.glob(TRANSCRIPTS[cli]))[1:] if cli == "codex" else sorted(home.glob(SUBAGENTS[cli]))
    return {str(file.relative_to(home)): _jsonl(file, home) for file in files}


def live(cli: str, home: Path) -> Trace | None:
    """What Claude Code keeps of itself while it runs; it removes it in the end, unless it is killed."""
    files = list((home / ".claude" / "sessions").glob("*.json")) if cli == "claude" else []
    return _document(files[0].read_text(encoding="utf-8")) if files else None


def _jsonl(file: Path, home: Path) -> Trace:
    lines = file.read_text(encoding="utf-8").splitlines()
    return {"path": str(file.relative_to(home)), "lines": [cut(_document(line)) for line in lines if line.strip()]}


def _opencode(home: Path, which: str) -> Iterator[Trace]:
    file = home / OPENCODE
    if not file.exists():
        return
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as base:
        for (session,) in base.execute(f"select id from session where {which} order by id").fetchall():  # noqa: S608
            lines = [
                {"message": {"id": ident, **json.loads(data)}, "parts": _parts(base, ident)}
                for ident, data in base.execute(
                    "select id, data from message where session_id = ? order by id", [session]
                )
            ]
            yield {"path": f"{OPENCODE}#{session}", "lines": [cut(line) for line in lines]}


def _parts(base: sqlite3.Connection, message: str) -> list[Trace]:
    rows = base.execute("select id, data from part where message_id = ? order by id", [message])
    return [{"id": ident, **json.loads(data)} for ident, data in rows]


def _document(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:  # caught while it was being written
        return {"unreadable": text[:LONGEST]}


def cut(value: Any) -> Any:
    """The same with nothing in it that is longer than anybody reads: prompts of the system, schemas of tools."""
    kept = _cut(value, LONGEST)
    return _cut(kept, SHORTEST, items=3) if len(json.dumps(kept)) > LONGEST_LINE else kept


def _cut(value: Any, longest: int, items: int | None = None) -> Any:
    match value:
        case str() if len(value) > longest:
            return f"{value[:longest]} [...]"
        case list():
            return [_cut(each, longest, items) for each in value[:items]]
        case dict():
            return {name: _cut(each, longest, items) for name, each in value.items()}
        case _:
            return value
