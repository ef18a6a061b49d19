"""People's edits of the registry file, merged with what happened meanwhile.

An editor saves the version that it opened, so the observed fields in it may be old. The edit is compared with that
version, and only the differences count. A version is identified by its session, its status and the status's time:
people have no reason to change these. A changed `desired` becomes a command to the spawner, followed until its reply.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from registry import AgentRecord
from registry.records import ACTIVITY_FIELDS
from services.registrar.ledger import Ledger
from shared.contract.commands import Spawn, Stop
from shared.contract.states import Desired
from shared.runtime.memory import MemoryTable
from shared.runtime.turn import Turn

EDITABLE_FIELDS = ("reason", "role", "parent", "level", "job")
"""What people may change. `desired` becomes a command, and the rest is what Muster observes."""
OBSERVED_FIELDS = tuple(
    name for name in AgentRecord.model_fields if name not in (*EDITABLE_FIELDS, *ACTIVITY_FIELDS, "desired")
)
"""People are told when one of these was put back; not for the activity, which changes again at once."""


@dataclass(frozen=True)
class MergedEdit:
    record: AgentRecord
    wish: Desired | None = None
    """The new `desired`, if a person changed it."""
    put_back: tuple[str, ...] = ()
    """Observed fields that a person changed."""
    unknown: bool = False
    """Whether the editor had opened a version that is not known any more: nothing was taken up."""


def merge(versions: Sequence[AgentRecord], theirs: AgentRecord, ours: AgentRecord) -> MergedEdit:
    """Merge a person's edit. `versions`: what the file said before, the newest last; `theirs`: what it says now."""
    base = next((each for each in reversed(versions) if _key(each) == _key(theirs)), None)
    if base is None:
        return MergedEdit(ours, unknown=True, put_back=_differing(theirs, ours))
    edited = [name for name in AgentRecord.model_fields if getattr(theirs, name) != getattr(base, name)]
    taken = {name: getattr(theirs, name) for name in edited if name in EDITABLE_FIELDS}
    wish = theirs.desired if "desired" in edited and theirs.desired is not ours.desired else None
    if wish is not None:
        taken["desired"] = wish
    exact = any(_facts(each) == _facts(theirs) for each in versions)
    put_back = () if exact else tuple(name for name in _differing(theirs, ours) if name in edited)
    return MergedEdit(ours.model_copy(update=taken), wish, put_back)


def _key(record: AgentRecord) -> tuple[object, ...]:
    return (record.spawn, record.status, record.since)


def _facts(record: AgentRecord) -> list[object]:
    return [getattr(record, name) for name in OBSERVED_FIELDS]


def _differing(theirs: AgentRecord, ours: AgentRecord) -> tuple[str, ...]:
    return tuple(name for name in OBSERVED_FIELDS if getattr(theirs, name) != getattr(ours, name))


# --- a changed `desired` ---

REPLY_POLL_INTERVAL = timedelta(seconds=1)
CAUSE = "typed into registry.yaml"


@dataclass(frozen=True)
class Wish:
    """A `desired` that a person changed in the file; remembered until the spawner has replied to its command."""

    command_id: str
    desired: Desired
    before: Desired


WISHES = MemoryTable("wish:", Wish)
"""By agent."""


@dataclass(frozen=True)
class RefusedWish:
    agent: str
    said: str


def send_wish(turn: Turn, agent: str, desired: Desired, before: Desired) -> None:
    """Ask the spawner for what a person wrote behind `desired`."""
    command = Stop(agent=agent) if desired is Desired.STOPPED else Spawn(agent=agent)
    turn.memory.put(WISHES, Wish(turn.send_command(command, CAUSE), desired, before), agent)
    turn.look_again_at(turn.now + REPLY_POLL_INTERVAL)


def follow_wishes(turn: Turn, ledger: Ledger) -> list[RefusedWish]:
    """Look for the replies. A refused wish is taken back, in the file too."""
    refused = []
    for agent, wish in turn.memory.all(WISHES).items():
        reply = turn.reply_for(wish.command_id)
        if reply is None:
            turn.look_again_at(turn.now + REPLY_POLL_INTERVAL)
            continue
        record = ledger.records.get(agent)
        still_wanted = record is not None and record.desired is wish.desired
        if reply.code == "expired" and still_wanted:
            # The spawner was down. What the file says is wanted until it is changed.
            send_wish(turn, agent, wish.desired, wish.before)
            continue
        turn.memory.put(WISHES, None, agent)
        if record is not None and still_wanted and not reply.ok:
            ledger.put(agent, record.model_copy(update={"desired": wish.before}))
            refused.append(RefusedWish(agent, reply.said))
    return refused
