"""Events, states and tables in the words and colours of a terminal."""

from collections.abc import Sequence
from typing import Any, TextIO

from services.cli.fitting import Column, fitted
from services.cli.loop_words import describe_loop
from shared.commands import Reply
from shared.events import (
    AgentDeleted,
    AgentExited,
    AgentFinished,
    AgentProgress,
    AgentRestarted,
    AgentResumed,
    AgentSent,
    Data,
    DriftResolved,
    DuplicateId,
    Envelope,
    Event,
    Identified,
    LoopEvent,
    Moved,
    PaneDead,
    Running,
    ServiceState,
    SessionMissing,
    StaleId,
    StatusChanged,
    Unregistered,
    WrongBackend,
)
from shared.topics import Topic

GOOD = {
    *("running", "online", "up", "spawned", "restarted", "resumed", "adopted", "sent", "ok"),
    *("identified", "resolved", "working", "done", "finished"),
    *("phase_advanced", "sequence_complete", "kicked_off", "remote_reachable"),
}
BAD = {
    *("terminated", "gave_up", "offline", "down", "exited", "error"),
    *("missing", "pane_dead", "stale_id", "duplicate_id", "wrong_backend"),
    *("needs_approval", "approval_needed", "limited", "stalled", "failed"),
    *("kickoff_failed", "remote_unreachable", "rewritten", "branch_gone", "message_dropped"),
}
KIND_COLUMNS = 18
"""As wide as the longest kind of event."""


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


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    return "\n".join(fitted([Column(title) for title in head], rows))


def event_line(host: str, row: Topic, document: Envelope[Any] | Reply, paint: Paint) -> str:
    """One event, state or reply as one line."""
    if isinstance(document, Reply):
        what = "ok" if document.ok else "error" if document.final else "waiting"
        subject, family, more = document.verb, "reply", document.said
    else:
        data = document.data
        subject, family = document.subject, row.pattern.rpartition("/")[2]
        what, more = _kind(data), describe(data)
    clock = document.time.astimezone().strftime("%H:%M:%S.%f")[:-3]
    padded = paint.status(plain(what)) + " " * max(0, KIND_COLUMNS - len(what))
    name = paint.bold(f"{plain(subject):<12}")
    return f"{paint.dim(clock)} {paint.dim(plain(host))} {name} {family:<9} {padded} {plain(more)}"


def _kind(data: Any) -> str:
    """The one word for a document: of what an agent is doing, just that."""
    return str(data.kind if isinstance(data, Event) and not isinstance(data, StatusChanged) else data.status)


def describe(data: Data) -> str:  # noqa: PLR0912 - a branch for each kind
    """What a person wants to know of a document beside its kind."""
    match data:
        case AgentRestarted():
            return f"{data.reason}; session {data.session}, pid {data.pid}, attempt {data.attempt}"
        case AgentResumed():
            return f"{data.reason}; conversation {data.conversation or 'the newest'}, session {data.session}"
        case AgentSent():
            size = f"{data.size} bytes" if data.what in ("text", "prompt") else f"{data.size} keys"
            return f"{data.what}, {size}; {data.reason}; confirmed by {data.confirmed}"
        case AgentDeleted():
            left = "; its session goes on" if data.session_left else ""
            return data.reason + left + (f"; removed {data.purged}" if data.purged else "")
        case Running():
            return f"session {data.session}, pid {data.pid}, in {data.workspace}"
        case SessionMissing():
            return f"recorded as running, but tmux has no session {data.session}"
        case AgentExited(last_words=words) if words:
            return f"its program ended with status {data.exit_status}; its last words: {words}"
        case PaneDead() | AgentExited():
            return f"its program ended with status {data.exit_status}"
        case DriftResolved():
            return f"{data.drift}: {data.reason}"
        case Unregistered() | Identified() | StaleId() | DuplicateId() | WrongBackend() | Moved():
            return _describe_drift(data)
        case StatusChanged():
            was = f"; was {data.was.value}" if data.was is not None else ""
            return f"{data.reason}; by {data.decided_by or 'nothing'}{was}"
        case AgentProgress():
            return f"{data.state}: {data.summary}"
        case AgentFinished():
            return data.summary + (f"; its result is in {data.file}" if data.file else "")
        case LoopEvent():
            return describe_loop(data)
        case ServiceState(reason=""):
            return f"pid {data.pid}, connection {data.connection}"
        case _:
            return str(getattr(data, "reason", ""))


def _describe_drift(drift: Unregistered | Identified | StaleId | DuplicateId | WrongBackend | Moved) -> str:
    match drift:
        case Unregistered(adopts=adopts):
            then = "; the spawner is asked to adopt it" if adopts else ""
            return f"runs {drift.backend} in session {drift.session}, pid {drift.pid}, and no record said so{then}"
        case Identified(previous=None):
            return f"is in conversation {drift.conversation}"
        case Identified():
            return f"went on to conversation {drift.conversation}; it was {drift.previous}"
        case StaleId():
            return f"its conversation {drift.conversation} is no longer at {drift.transcript}"
        case DuplicateId():
            return f"runs on conversation {drift.conversation}, and so does {', '.join(drift.others)}"
        case WrongBackend():
            found = f"{drift.found} ({drift.command})" if drift.found else drift.command
            return f"recorded as {drift.expected}, but its pane runs {found}"
        case Moved():
            return _moved(drift)


def _moved(moved: Moved) -> str:
    """Only what is another than before."""
    told = []
    if moved.session != moved.was_session:
        told.append(f"recorded as session {moved.was_session}, but it is called {moved.session}")
    if moved.workspace != moved.was_workspace:
        told.append(f"recorded in {moved.was_workspace}, but it works in {moved.workspace}")
    return "; ".join(told)


def plain(text: str) -> str:
    """Text from elsewhere, with what would command the terminal made visible."""
    return "".join(letter if letter.isprintable() else repr(letter)[1:-1] for letter in text)
