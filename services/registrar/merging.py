"""A person's edit of a record and what has become of the agent meanwhile, put together. Pure.

An editor saves what it once read: what it holds of facts may be old by then. So an edit is held against the version of
the record that it most likely began with, and counts only where it differs from that.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from registry import AgentRecord
from shared.states import Desired

PEOPLES = ("reason", "role", "parent", "level", "job")
"""What anybody may write. The rest are facts, and `desired` is a wish."""


@dataclass(frozen=True)
class Merged:
    record: AgentRecord
    wish: Desired | None = None
    """What somebody typed behind `desired`, if it is news."""
    put_back: tuple[str, ...] = ()
    """Facts that somebody changed: they are what Muster sees, not what people want."""


def merge(bases: Sequence[AgentRecord], theirs: AgentRecord, ours: AgentRecord) -> Merged:
    """`bases`: the record as it was written before, newest last; `theirs`: as it stands in the file now."""
    base = _began_with(bases, theirs) if bases else ours
    edited = [name for name in AgentRecord.model_fields if getattr(theirs, name) != getattr(base, name)]
    taken = {name: getattr(theirs, name) for name in edited if name in PEOPLES}
    wish = theirs.desired if "desired" in edited and theirs.desired is not ours.desired else None
    if wish is not None:
        taken["desired"] = wish
    put_back = tuple(
        name
        for name in edited
        if name not in PEOPLES and name != "desired" and getattr(theirs, name) != getattr(ours, name)
    )
    return Merged(ours.model_copy(update=taken), wish, put_back)


def _began_with(bases: Sequence[AgentRecord], theirs: AgentRecord) -> AgentRecord:
    """The version that differs least from what was saved; the newest of those."""
    return min(reversed(bases), key=lambda base: sum(value != getattr(base, name) for name, value in theirs))
