"""Evidence from Claude Code's live file, `sessions/<pid>.json` (measured with 2.1.197).

It is written when the status changes, not during a turn: it is true until it changes, as long as its process lives. It
is not written atomically, so it may be read half written.
"""

from pathlib import Path
from typing import Any

from shared.agents.claude.identity import is_of
from shared.agents.evidence import Evidence, EvidenceSource
from shared.agents.identity import conversation, json_in
from shared.contract.states import Activity
from shared.system.files import FileState, state_of
from shared.system.processes import Process

Document = dict[str, Any]

MOST_UNREADABLE = 4
"""After so many unreadable reads in a row the file counts as broken."""
AT_MOST_MS = 1e14
MENU = "dialog open"
"""`waitingFor` with any menu: one that asks, one that a person opened, or one about a limit."""


def claim_of(document: Document) -> Evidence | None:
    """The evidence in a live file. Pure."""
    at = _at(document)
    waits_for = document.get("waitingFor")
    match document.get("status"):
        case "busy":
            return Evidence(EvidenceSource.LIVE_FILE, Activity.WORKING, at, "its live file says busy", "busy")
        case "idle":
            return Evidence(EvidenceSource.LIVE_FILE, Activity.WAITING, at, "its live file says idle", "idle")
        case "shell":  # its turn is over, and it takes a prompt; the command may run for days
            why = "its live file says idle, with a command of its own in the background"
            return Evidence(EvidenceSource.LIVE_FILE, Activity.WAITING, at, why, "shell")
        case "waiting":
            what = waits_for if isinstance(waits_for, str) and waits_for else "a person"
            why = f"its live file says waiting: {what[:100]}"
            # A person may have opened the menu: the screen shows which one it is.
            rule = "menu" if what == MENU else "waiting"
            return Evidence(EvidenceSource.LIVE_FILE, Activity.NEEDS_APPROVAL, at, why, rule, weak=what == MENU)
        case _:
            return None


def _at(document: Document) -> float:
    for name in ("statusUpdatedAt", "updatedAt", "startedAt"):
        found = document.get(name)
        if isinstance(found, int | float) and 0 <= found < AT_MOST_MS:  # also excludes NaN
            return found / 1000
    return 0.0


class LiveFileReader:
    """Reads the live file of one process. The caller must know whether that lives: a killed process leaves its file."""

    def __init__(self, path: Path, process: Process) -> None:
        self._path = path
        self._process = process
        self._seen: FileState | None = None
        self._unreadable = 0
        self._document: Document = {}
        self._claim: Evidence | None = None

    @property
    def version(self) -> str | None:
        """The version of the program, once its file says so."""
        found = self._document.get("version")
        return found if isinstance(found, str) else None

    @property
    def conversation(self) -> str | None:
        """The conversation that is on the screen, once its file says so."""
        return conversation(self._document.get("sessionId"))

    def read(self) -> Evidence | None:
        """The evidence now. An unchanged file costs one `stat`."""
        state = state_of(self._path)
        if state is None:
            self._forget()
        elif state != self._seen:
            document = json_in(self._path)
            if isinstance(document, dict):
                self._take(document, state)
            else:
                self._wait_for_the_rest()
        return self._claim

    def _take(self, document: Document, state: FileState) -> None:
        self._seen, self._unreadable = state if state.is_settled else None, 0
        self._document = document if is_of(document, self._process) else {}
        self._claim = claim_of(self._document)

    def _wait_for_the_rest(self) -> None:
        self._unreadable += 1
        if self._unreadable >= MOST_UNREADABLE:
            self._forget()

    def _forget(self) -> None:
        self._seen, self._unreadable, self._document, self._claim = None, 0, {}, None
