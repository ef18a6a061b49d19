"""What an agent's screen tells, and since when it does."""

import re
from dataclasses import replace

from services.monitor.evidence.evidence import Evidence, LimitSaid, Source
from shared.fleet.backend import Backend
from shared.screen import Sighting, read_signs, read_warning
from shared.states import Activity

CHOICE = re.compile(r"[❯›●○>]")
"""Marks what is chosen in a dialog: moving it does not make another dialog of it."""


class ScreenReader:
    """Reads the screens of one agent, one after the other, and remembers since when they say the same."""

    def __init__(self) -> None:
        self.sighting: Sighting | None = None
        """What the last screen told; for a limit, its groups say when it is reset."""
        self.warning = ""
        """What the last screen warned of: a usage limit that is near."""
        self._same: tuple[Activity, str, str] | None = None
        self._since = 0.0
        self._said: LimitSaid | None = None

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
            Source.SCREEN,
            seen.says,
            self._since,
            seen.why,
            rule=seen.rule,
            weak=seen.weak,
            dialog=seen.dialog,
            limit=self._limit(seen, now) if seen.says is Activity.LIMITED else None,
            trouble=seen.trouble,
        )

    def _limit(self, seen: Sighting, now: float) -> LimitSaid:
        """What it says of its limit. A countdown says something else all the time, and each of it when it is seen."""
        said = LimitSaid(
            now,
            seen.why,
            scope=seen.groups.get("scope", ""),
            reset=seen.groups.get("reset", ""),
            continues=seen.groups.get("continues", ""),
        )
        if self._said is None or replace(self._said, at=now) != said:
            self._said = said
        return self._said
