"""Spreading starts out: a few at once, then one after every gap. Pure, but for what it remembers between calls."""

from shared.fleet.host import StartSettings


class Stagger:
    """Says when the next agent may start. A clock that is set back holds nobody up."""

    def __init__(self) -> None:
        self._full_at = 0.0
        """When as many may start at once again as ever."""

    def due(self, settings: StartSettings, now: float) -> float:
        """When one more may start; not after `now` if it may at once."""
        self._full_at = min(max(self._full_at, now), now + settings.at_once * settings.gap_s)
        return self._full_at - (settings.at_once - 1) * settings.gap_s

    def started(self, settings: StartSettings, now: float) -> None:
        self._full_at = max(self._full_at, now) + settings.gap_s
