"""Events, states and tables in the words and colours of a terminal."""

import json
from collections.abc import Sequence
from datetime import datetime
from typing import Any, TextIO

from shared.topics import Topic

GOOD = {"running", "online", "up", "spawned", "restarted", "ok"}
BAD = {"terminated", "gave_up", "offline", "down", "missing", "pane_dead", "exited", "error"}


class Paint:
    """Colours, where the output is a terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._on = stream.isatty()

    def _wrap(self, code: str, text: str) -> str:
        return f"\x1b[{code}m{text}\x1b[0m" if self._on else text

    def good(self, text: str) -> str:
        return self._wrap("32", text)

    def bad(self, text: str) -> str:
        return self._wrap("31", text)

    def dim(self, text: str) -> str:
        return self._wrap("2", text)

    def bold(self, text: str) -> str:
        return self._wrap("1", text)

    def status(self, text: str) -> str:
        if text in GOOD:
            return self.good(text)
        return self.bad(text) if text in BAD else text


def ago(seconds: float) -> str:
    """A length of time in its one telling unit."""
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f}{unit}"
    return f"{max(0.0, seconds):.0f}s"


def _width(text: str) -> int:
    """How many columns a text takes, colours not counted."""
    while (start := text.find("\x1b[")) >= 0:
        text = text[:start] + text[text.index("m", start) + 1 :]
    return len(text)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    everything = [head, *rows]
    widths = [max(_width(row[column]) for row in everything) for column in range(len(head))]
    lines = []
    for row in everything:
        cells = [cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def event_line(row: Topic, host: str, document: dict[str, Any], paint: Paint) -> str:
    """One event, state or reply as one line."""
    if "verb" in document:
        outcome = "ok" if document["ok"] else "error"
        return _line(document["time"], host, document["verb"], "reply", outcome, document["said"], paint)
    data = document["data"]
    what = data.get("kind") or data.get("status", "")
    family = row.pattern.rpartition("/")[2]
    return _line(document["time"], host, document["subject"], family, what, describe(data), paint)


def describe(data: dict[str, Any]) -> str:
    """What a person wants to know of a document beside its kind."""
    match data:
        case {"kind": "restarted"}:
            return f"{data['reason']}; session {data['session']}, pid {data['pid']}, attempt {data['attempt']}"
        case {"kind": "spawned"}:
            return f"session {data['session']}, pid {data['pid']}, in {data['workspace']}"
        case {"kind": "missing"}:
            return f"recorded as running, but tmux has no session {data['session']}"
        case {"kind": "pane_dead" | "exited"}:
            return f"its program ended with status {data.get('exit_status')}"
        case {"agent": _, "status": _}:
            return str(data["reason"])
        case {"service": _, "status": _}:
            return data.get("reason") or f"pid {data['pid']}, connection {data['connection']}"
        case _:
            return str(data.get("reason") or json.dumps({k: v for k, v in data.items() if k not in ("kind", "agent")}))


def _line(time: str, host: str, subject: str, family: str, what: str, more: str, paint: Paint) -> str:
    clock = datetime.fromisoformat(time).astimezone().strftime("%H:%M:%S.%f")[:-3]
    padded = paint.status(what) + " " * max(0, 11 - len(what))
    return f"{paint.dim(clock)} {paint.dim(host)} {paint.bold(f'{subject:<12}')} {family:<9} {padded} {more}"
