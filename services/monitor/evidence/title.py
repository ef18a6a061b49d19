"""What the title of an agent's terminal tells, and since when it does."""

from services.monitor.evidence.evidence import Evidence, Source
from shared.fleet.backend import Backend
from shared.screen import read_title
from shared.states import Activity


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
        return Evidence(Source.TITLE, seen.says, self._since, seen.why, rule=seen.rule, weak=seen.weak)
