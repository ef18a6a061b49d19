"""What an agent's screen and the title of its terminal say, and since when.

`ScreenReader` and `TitleReader` read. `CapturedScreen` and `ShownTitle` have them read again only after a change.
"""

import re
from dataclasses import replace

from shared.agents.evidence import Evidence, EvidenceSource, LimitStatement
from shared.contract.states import Activity
from shared.fleet.backend import Backend
from shared.screen import ScreenActivity, read_signs_and_warning, read_title
from shared.system.tmux import Pane

CHOICE = re.compile(r"[❯›●○>]")
"""Marks the selected row of a dialog: a dialog stays the same when it moves."""
NEVER = float("-inf")


class ScreenReader:
    """Reads one agent's screens, one after the other, and remembers since when they say the same."""

    def __init__(self) -> None:
        self.warning = ""
        self._same: tuple[Activity, str, str] | None = None
        self._since = 0.0
        self._limit: LimitStatement | None = None

    def read(self, backend: Backend, screen: str, version: str | None, now: float) -> Evidence | None:
        """What a styled screen says that was captured now; None when it says nothing."""
        seen, self.warning = read_signs_and_warning(backend, screen, version)
        if seen is None:
            self._same = None
            return None
        rule = "" if seen.says is Activity.WORKING else seen.rule  # work shows in several ways
        same = (seen.says, rule, "".join(CHOICE.sub("", seen.dialog).split()))
        if same != self._same:
            self._same, self._since = same, now
        if seen.says is not Activity.LIMITED:
            self._limit = None
        return Evidence(
            EvidenceSource.SCREEN,
            seen.says,
            self._since,
            seen.why,
            rule=seen.rule,
            weak=seen.weak,
            dialog=seen.dialog,
            limit=self._limit_in(seen, now) if seen.says is Activity.LIMITED else None,
            trouble=seen.trouble,
        )

    def _limit_in(self, seen: ScreenActivity, now: float) -> LimitStatement:
        """What it says of its limit, dated when these words were first seen. A countdown changes all the time."""
        limit = LimitStatement(
            now,
            seen.why,
            scope=seen.groups.get("scope", ""),
            reset=seen.groups.get("reset", ""),
            continues=seen.groups.get("continues", ""),
        )
        if self._limit is None or replace(self._limit, at=now) != limit:
            self._limit = limit
        return self._limit


class TitleReader:
    """Reads the titles of one agent's terminal, one after the other, and remembers since when they say the same."""

    def __init__(self) -> None:
        self._same: tuple[Activity, str] | None = None
        self._since = 0.0

    def read(self, backend: Backend, title: str, version: str | None, now: float) -> Evidence | None:
        """What a title says that was seen now; None when it says nothing."""
        seen = read_title(backend, title, version)
        if seen is None:
            self._same = None
            return None
        if (seen.says, seen.rule) != self._same:
            self._same, self._since = (seen.says, seen.rule), now
        return Evidence(EvidenceSource.TITLE, seen.says, self._since, seen.why, rule=seen.rule, weak=seen.weak)


class CapturedScreen:
    """One agent's screen as it was last captured."""

    def __init__(self) -> None:
        self.text = ""
        self.captured_at = NEVER
        self._shown_since = NEVER
        self._reader = ScreenReader()
        self._evidence: Evidence | None = None
        self._read_by: tuple[Backend, str | None] | None = None
        """The rules by which this text was read. They may be edited, and the version may become known later."""

    @property
    def warning(self) -> str:
        """What it warns of: a usage limit that is near."""
        return self._reader.warning

    def capture(self, pane: Pane, text: str, now: float) -> None:
        """Take what the screen shows now. What the first capture shows was there since the pane last changed."""
        if text == self.text and self.captured_at != NEVER:
            self.captured_at = now  # many are captured though they did not change: see `LookSchedule.is_due`
            return
        self._shown_since = min(now, pane.activity + 1) if self.captured_at == NEVER else now
        self.text, self.captured_at, self._read_by = text, now, None

    def read(self, backend: Backend, version: str | None, now: float) -> Evidence | None:
        if self.captured_at != NEVER and self._read_by != (backend, version):
            since = self._shown_since if self._read_by is None else now
            self._evidence = self._reader.read(backend, self.text, version, since)
            self._read_by = (backend, version)
        return self._evidence


class ShownTitle:
    """The title of one agent's terminal."""

    def __init__(self) -> None:
        self._reader = TitleReader()
        self._evidence: Evidence | None = None
        self._read_by: tuple[str, Backend, str | None] | None = None

    def read(self, backend: Backend, pane: Pane, version: str | None, now: float) -> Evidence | None:
        by = (pane.title, backend, version)
        if self._read_by != by:
            since = min(now, pane.activity + 1) if self._read_by is None else now
            self._evidence = self._reader.read(backend, pane.title, version, since)
            self._read_by = by
        return self._evidence
