"""What an agent's screen and the title of its terminal say, and since when."""

import re
from dataclasses import replace

from shared.agents.evidence import Evidence, EvidenceSource, LimitStatement
from shared.contract.states import Activity
from shared.fleet.backend import Backend
from shared.screen import ScreenActivity, read_signs, read_title, read_warning

CHOICE = re.compile(r"[❯›●○>]")
"""Marks what is chosen in a dialog: moving it does not make another dialog of it."""


class ScreenReader:
    """Reads the screens of one agent, one after the other, and remembers since when they say the same."""

    def __init__(self) -> None:
        self.sighting: ScreenActivity | None = None
        """What the last screen told; for a limit, its groups say when it is reset."""
        self.warning = ""
        """What the last screen warned of: a usage limit that is near."""
        self._same: tuple[Activity, str, str] | None = None
        self._since = 0.0
        self._said: LimitStatement | None = None

    def read(self, backend: Backend, screen: str, version: str | None, now: float) -> Evidence | None:
        """What a styled screen, captured now, tells; None when it tells nothing."""
        self.sighting = seen = read_signs(backend, screen, version)
        self.warning = read_warning(backend, screen, version)
        if seen is None:
            self._same = None
            return None
        rule = "" if seen.says is Activity.WORKING else seen.rule  # work shows now in one way, now in another
        same = (seen.says, rule, "".join(CHOICE.sub("", seen.dialog).split()))
        if same != self._same:
            self._same, self._since = same, now
        if seen.says is not Activity.LIMITED:
            self._said = None
        return Evidence(
            EvidenceSource.SCREEN,
            seen.says,
            self._since,
            seen.why,
            rule=seen.rule,
            weak=seen.weak,
            dialog=seen.dialog,
            limit=self._limit(seen, now) if seen.says is Activity.LIMITED else None,
            trouble=seen.trouble,
        )

    def _limit(self, seen: ScreenActivity, now: float) -> LimitStatement:
        """What it says of its limit. A countdown says something else all the time, and each of it when it is seen."""
        said = LimitStatement(
            now,
            seen.why,
            scope=seen.groups.get("scope", ""),
            reset=seen.groups.get("reset", ""),
            continues=seen.groups.get("continues", ""),
        )
        if self._said is None or replace(self._said, at=now) != said:
            self._said = said
        return self._said


class TitleReader:
    """Reads the titles of one agent's terminal, one after the other, and remembers since when they say the same."""

    def __init__(self) -> None:
        self._same: tuple[Activity, str] | None = None
        self._since = 0.0

    def read(self, backend: Backend, title: str, version: str | None, now: float) -> Evidence | None:
        """What a title, seen now, tells; None when it tells nothing."""
        seen = read_title(backend, title, version)
        if seen is None:
            self._same = None
            return None
        if (seen.says, seen.rule) != self._same:
            self._same, self._since = (seen.says, seen.rule), now
        return Evidence(EvidenceSource.TITLE, seen.says, self._since, seen.why, rule=seen.rule, weak=seen.weak)
