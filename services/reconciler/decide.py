"""Which difference is a drift. Pure: one table in which every combination has a row."""

from collections.abc import Mapping
from enum import StrEnum


class Recorded(StrEnum):
    """What the registry says of the agent."""

    NOTHING = "nothing"
    RUNNING = "running"
    ENDED = "ended"


class Session(StrEnum):
    """What tmux shows of the recorded session."""

    ABSENT = "absent"
    ALIVE = "alive"
    DEAD = "dead"  # it is there, but its program has ended
    OTHER = "other"  # the agent has a session, but another one than is recorded


class Program(StrEnum):
    """What runs in the pane, by its processes."""

    RIGHT = "right"
    WRONG = "wrong"
    UNKNOWN = "unknown program"


class Conversation(StrEnum):
    """What the agent's own files say it is in."""

    SAME = "same conversation"
    NEW = "new conversation"  # another than is recorded, or kept in another place
    GONE = "gone"  # recorded, but no longer on disk
    UNKNOWN = "unknown conversation"


class Company(StrEnum):
    """Who else runs on the same conversation."""

    ALONE = "alone"
    SHARED = "shared"


class Place(StrEnum):
    """Where it is: the name of its session, and the directory it works in."""

    SAME = "same place"
    MOVED = "moved"
    UNKNOWN = "unknown place"


Aspect = Session | Program | Conversation | Company | Place
ASPECTS: tuple[type[StrEnum], ...] = (Session, Program, Conversation, Company, Place)


class DriftKind(StrEnum):
    MISSING = "missing"
    PANE_DEAD = "pane_dead"
    UNREGISTERED = "unregistered"
    IDENTIFIED = "identified"
    STALE_ID = "stale_id"
    DUPLICATE_ID = "duplicate_id"
    WRONG_BACKEND = "wrong_backend"
    MOVED = "moved"


CLASSIFY: Mapping[tuple[Recorded, Aspect], DriftKind | None] = {
    # Its session.
    (Recorded.NOTHING, Session.ABSENT): None,
    (Recorded.NOTHING, Session.ALIVE): DriftKind.UNREGISTERED,
    (Recorded.NOTHING, Session.DEAD): None,  # the spawner tells how it ended
    (Recorded.NOTHING, Session.OTHER): None,  # there is no recorded one to be other than
    (Recorded.RUNNING, Session.ABSENT): DriftKind.MISSING,
    (Recorded.RUNNING, Session.ALIVE): None,
    (Recorded.RUNNING, Session.DEAD): DriftKind.PANE_DEAD,
    (Recorded.RUNNING, Session.OTHER): DriftKind.UNREGISTERED,
    (Recorded.ENDED, Session.ABSENT): None,
    (Recorded.ENDED, Session.ALIVE): DriftKind.UNREGISTERED,
    (Recorded.ENDED, Session.DEAD): None,
    (Recorded.ENDED, Session.OTHER): DriftKind.UNREGISTERED,
    # The program in it. Of what does not run, nothing is expected.
    (Recorded.NOTHING, Program.RIGHT): None,
    (Recorded.NOTHING, Program.WRONG): None,
    (Recorded.NOTHING, Program.UNKNOWN): None,
    (Recorded.RUNNING, Program.RIGHT): None,
    (Recorded.RUNNING, Program.WRONG): DriftKind.WRONG_BACKEND,
    (Recorded.RUNNING, Program.UNKNOWN): None,
    (Recorded.ENDED, Program.RIGHT): None,
    (Recorded.ENDED, Program.WRONG): None,
    (Recorded.ENDED, Program.UNKNOWN): None,
    # Its conversation, which may be gone though nobody is in it.
    (Recorded.NOTHING, Conversation.SAME): None,
    (Recorded.NOTHING, Conversation.NEW): None,  # told with the session
    (Recorded.NOTHING, Conversation.GONE): None,
    (Recorded.NOTHING, Conversation.UNKNOWN): None,
    (Recorded.RUNNING, Conversation.SAME): None,
    (Recorded.RUNNING, Conversation.NEW): DriftKind.IDENTIFIED,
    (Recorded.RUNNING, Conversation.GONE): DriftKind.STALE_ID,
    (Recorded.RUNNING, Conversation.UNKNOWN): None,
    (Recorded.ENDED, Conversation.SAME): None,
    (Recorded.ENDED, Conversation.NEW): DriftKind.IDENTIFIED,  # it is kept in another place now
    (Recorded.ENDED, Conversation.GONE): DriftKind.STALE_ID,
    (Recorded.ENDED, Conversation.UNKNOWN): None,
    (Recorded.NOTHING, Company.ALONE): None,
    (Recorded.NOTHING, Company.SHARED): None,
    (Recorded.RUNNING, Company.ALONE): None,
    (Recorded.RUNNING, Company.SHARED): DriftKind.DUPLICATE_ID,
    (Recorded.ENDED, Company.ALONE): None,
    (Recorded.ENDED, Company.SHARED): None,
    # Where it is.
    (Recorded.NOTHING, Place.SAME): None,
    (Recorded.NOTHING, Place.MOVED): None,
    (Recorded.NOTHING, Place.UNKNOWN): None,
    (Recorded.RUNNING, Place.SAME): None,
    (Recorded.RUNNING, Place.MOVED): DriftKind.MOVED,
    (Recorded.RUNNING, Place.UNKNOWN): None,
    (Recorded.ENDED, Place.SAME): None,
    (Recorded.ENDED, Place.MOVED): None,
    (Recorded.ENDED, Place.UNKNOWN): None,
}


LASTING: Mapping[DriftKind, tuple[Aspect, ...]] = {
    DriftKind.WRONG_BACKEND: (Program.RIGHT,),
    DriftKind.DUPLICATE_ID: (Company.ALONE,),
    DriftKind.STALE_ID: (Conversation.SAME, Conversation.NEW),
}
"""Drifts that stay open until something else is seen, and what that is. Not to know is no reason to close one."""


def drifts_of(recorded: Recorded, seen: tuple[Aspect, ...]) -> list[DriftKind]:
    return [kind for aspect in seen if (kind := CLASSIFY[recorded, aspect]) is not None]


def is_over(kind: DriftKind, seen: tuple[Aspect, ...]) -> bool:
    """Whether a lasting drift is so no longer."""
    return any(aspect in LASTING[kind] for aspect in seen)
