"""Which difference is a drift. Pure: one table in which every combination has a row."""

from collections.abc import Mapping
from enum import StrEnum

from registry import AgentRecord
from shared.states import Status
from shared.tmux import Pane


class Recorded(StrEnum):
    RUNNING = "running"
    ENDED = "ended"


class Seen(StrEnum):
    """What tmux shows of the recorded session."""

    ABSENT = "absent"
    ALIVE = "alive"
    DEAD = "dead"
    OTHER = "other"  # the agent has a session, but not the recorded one: its record is about to follow


class DriftKind(StrEnum):
    MISSING = "missing"
    PANE_DEAD = "pane_dead"


CLASSIFY: Mapping[tuple[Recorded, Seen], DriftKind | None] = {
    (Recorded.RUNNING, Seen.ABSENT): DriftKind.MISSING,
    (Recorded.RUNNING, Seen.ALIVE): None,
    (Recorded.RUNNING, Seen.DEAD): DriftKind.PANE_DEAD,
    (Recorded.RUNNING, Seen.OTHER): None,
    (Recorded.ENDED, Seen.ABSENT): None,
    (Recorded.ENDED, Seen.ALIVE): None,
    (Recorded.ENDED, Seen.DEAD): None,
    (Recorded.ENDED, Seen.OTHER): None,
}


def recorded(record: AgentRecord) -> Recorded:
    return Recorded.RUNNING if record.status is Status.RUNNING else Recorded.ENDED


def seen(record: AgentRecord, pane: Pane | None) -> Seen:
    if pane is None:
        return Seen.ABSENT
    if pane.spawn != record.spawn:
        return Seen.OTHER
    return Seen.DEAD if pane.dead else Seen.ALIVE


def drift_of(record: AgentRecord, pane: Pane | None) -> DriftKind | None:
    return CLASSIFY[recorded(record), seen(record, pane)]


def is_news(kind: DriftKind, spawn: str, told: Mapping[str, str] | None) -> bool:
    """Whether this was not said yet. A session whose program ended and that then went away is told once."""
    if told is None or told["spawn"] != spawn:
        return True
    return told["kind"] != kind and told["kind"] != DriftKind.PANE_DEAD
