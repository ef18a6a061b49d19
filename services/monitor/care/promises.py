"""Until when an agent said that it waits: `WAITING-UNTIL: <ISO time>` in its last words. Pure."""

from collections.abc import Iterable
from datetime import UTC, datetime, tzinfo

from services.monitor.evidence import Evidence
from shared.states import Activity

LATEST = datetime(2200, 1, 1, tzinfo=UTC).timestamp()
"""What lies beyond no calendar has to be asked about."""


def promised(evidence: Iterable[Evidence], zone: tzinfo) -> float | None:
    """The newest promise, in seconds since 1970. A time without a zone is of the agent's own."""
    pieces = [each for each in evidence if each.promise and each.says is Activity.WAITING]
    newest = max(pieces, key=lambda each: each.at, default=None)
    return None if newest is None else _read(newest.promise, zone)


def _read(words: str, zone: tzinfo) -> float | None:
    try:
        found = datetime.fromisoformat(words.strip().upper().rstrip("."))
    except ValueError:
        return None
    try:
        moment = (found if found.tzinfo is not None else found.replace(tzinfo=zone)).timestamp()
    except (OverflowError, OSError, ValueError):
        return None
    return moment if 0 < moment < LATEST else None
