"""A person's edit of a record and what has become of the agent meanwhile, put together. Pure.

An editor saves what it once read: what it holds of facts may be old by then. So an edit is held against the version of
the record that it began with, and counts only where it differs from that. A version is known by its session, its
status and since when it has had it: people have no reason to change these, and we never change them otherwise.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from registry import AgentRecord
from registry.records import MOVING
from shared.states import Desired

PEOPLES = ("reason", "role", "parent", "level", "job")
"""What anybody may write. The rest are facts, and `desired` is a wish."""
FACTS = tuple(name for name in AgentRecord.model_fields if name not in (*PEOPLES, *MOVING, "desired"))
"""What people are told of when it was put back. What an agent is doing has changed again by then anyhow."""


@dataclass(frozen=True)
class Merged:
    record: AgentRecord
    wish: Desired | None = None
    """What somebody typed behind `desired`, if it is news."""
    put_back: tuple[str, ...] = ()
    """Facts that somebody changed: they are what Muster sees, not what people want."""
    unknown: bool = False
    """Whether the save began with a version that is not known any more: nothing of it was taken up."""


def merge(versions: Sequence[AgentRecord], theirs: AgentRecord, ours: AgentRecord) -> Merged:
    """`versions`: the record as it stood in the file before, the newest last; `theirs`: as it stands there now."""
    base = next((each for each in reversed(versions) if _key(each) == _key(theirs)), None)
    if base is None:
        return Merged(ours, unknown=True, put_back=_differing(theirs, ours))
    edited = [name for name in AgentRecord.model_fields if getattr(theirs, name) != getattr(base, name)]
    taken = {name: getattr(theirs, name) for name in edited if name in PEOPLES}
    wish = theirs.desired if "desired" in edited and theirs.desired is not ours.desired else None
    if wish is not None:
        taken["desired"] = wish
    exact = any(_facts(each) == _facts(theirs) for each in versions)
    put_back = () if exact else tuple(name for name in _differing(theirs, ours) if name in edited)
    return Merged(ours.model_copy(update=taken), wish, put_back)


def _key(record: AgentRecord) -> tuple[object, ...]:
    return (record.spawn, record.status, record.since)


def _facts(record: AgentRecord) -> list[object]:
    return [getattr(record, name) for name in FACTS]


def _differing(theirs: AgentRecord, ours: AgentRecord) -> tuple[str, ...]:
    return tuple(name for name in FACTS if getattr(theirs, name) != getattr(ours, name))
