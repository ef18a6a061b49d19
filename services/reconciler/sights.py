"""What is seen of an agent beside its record, and how the two compare. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from registry import AgentRecord
from services.reconciler.decide import (
    Aspect,
    Company,
    Conversation,
    DriftKind,
    Place,
    Program,
    Recorded,
    Session,
)
from shared.events import (
    AgentEvent,
    DuplicateId,
    Identified,
    Moved,
    PaneDead,
    SessionMissing,
    StaleId,
    Unregistered,
    WrongBackend,
)
from shared.identity import Identity
from shared.tmux import Pane


class Transcript(StrEnum):
    """Whether the recorded conversation is where it was."""

    THERE = "there"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Examined:
    """What the processes in a pane, and the agent's own files, say of it."""

    runs_its_backend: bool | None = None
    """None: that can't be told."""
    found: str | None = None
    """The backend whose program runs there, if it is another."""
    identity: Identity | None = None


@dataclass(frozen=True)
class Sight:
    pane: Pane | None = None
    """The session with the agent's stamp."""
    examined: Examined = Examined()
    transcript: Transcript = Transcript.UNKNOWN
    moved_to: Path | None = None
    """Where the recorded conversation is now, if it is no longer where it was."""


def recorded(record: AgentRecord | None) -> Recorded:
    if record is None:
        return Recorded.NOTHING
    return Recorded.RUNNING if record.is_running else Recorded.ENDED


def conversation_of(record: AgentRecord, sight: Sight) -> str | None:
    """What the agent is in, as far as that is known."""
    identity = sight.examined.identity
    return identity.conversation if identity is not None else record.conversation


def aspects(record: AgentRecord | None, sight: Sight, others: Sequence[str] = ()) -> tuple[Aspect, ...]:
    """What is to be classified. `others` run on the same conversation."""
    session = _session(record, sight.pane)
    if record is None:
        return (session, Program.UNKNOWN, Conversation.UNKNOWN, Company.ALONE, Place.UNKNOWN)
    if session is not Session.ALIVE:
        return (session, Program.UNKNOWN, _kept(record, sight), Company.ALONE, Place.UNKNOWN)
    company = Company.SHARED if others else Company.ALONE
    return (session, _program(sight.examined), _conversation(record, sight), company, _place(record, sight))


def _session(record: AgentRecord | None, pane: Pane | None) -> Session:
    if pane is None:
        return Session.ABSENT
    if record is not None and pane.spawn != record.spawn:
        return Session.OTHER if not pane.dead else Session.ABSENT
    return Session.DEAD if pane.dead else Session.ALIVE


def _program(examined: Examined) -> Program:
    if examined.runs_its_backend is None:
        return Program.UNKNOWN
    return Program.RIGHT if examined.runs_its_backend else Program.WRONG


def _conversation(record: AgentRecord, sight: Sight) -> Conversation:
    identity = sight.examined.identity
    if identity is None:
        return _kept(record, sight)
    if identity.conversation != record.conversation:
        return Conversation.NEW
    if identity.transcript is None:
        return _kept(record, sight) if record.transcript else Conversation.SAME
    return Conversation.SAME if str(identity.transcript) == record.transcript else Conversation.NEW


def _kept(record: AgentRecord, sight: Sight) -> Conversation:
    """By the file alone. One that never was there is not gone: no agent writes before the first prompt."""
    if record.transcript is None or record.conversation is None:
        return Conversation.UNKNOWN
    if sight.moved_to is not None:
        return Conversation.NEW
    match sight.transcript:
        case Transcript.THERE:
            return Conversation.SAME
        case Transcript.GONE:
            return Conversation.GONE
        case Transcript.UNKNOWN:
            return Conversation.UNKNOWN


def _place(record: AgentRecord, sight: Sight) -> Place:
    if sight.pane is not None and sight.pane.session != record.session:
        return Place.MOVED
    identity = sight.examined.identity
    if identity is None or identity.workspace is None:
        return Place.UNKNOWN
    return Place.SAME if _same_directory(identity.workspace, Path(record.workspace)) else Place.MOVED


def _same_directory(one: Path, other: Path) -> bool:
    if one == other:
        return True
    try:
        return one.resolve() == other.resolve()
    except (OSError, RuntimeError):
        return False


def shared_conversations(records: Mapping[str, AgentRecord], sights: Mapping[str, Sight]) -> dict[str, list[str]]:
    """For each agent that runs, who else runs on its conversation."""
    users: dict[str, list[str]] = {}
    for agent, record in records.items():
        sight = sights.get(agent, Sight())
        runs = record.is_running and _session(record, sight.pane) is Session.ALIVE
        runs = runs and sight.examined.runs_its_backend is not False  # who left a shell behind is in no conversation
        if runs and (conversation := conversation_of(record, sight)):
            users.setdefault(conversation, []).append(agent)
    return {
        agent: [other for other in together if other != agent]
        for together in users.values()
        if len(together) > 1
        for agent in together
    }


def unregistered(
    agent: str, pane: Pane, backend: str, identity: Identity | None, *, adopts: bool = False
) -> Unregistered:
    """An agent that runs and is not recorded, as it is told."""
    return Unregistered(
        agent=agent,
        spawn=pane.spawn,
        backend=backend,
        workspace=str(identity.workspace) if identity and identity.workspace else pane.path,
        session=pane.session,
        pane=pane.pane_id,
        pid=pane.pid,
        command=pane.command,
        conversation=identity.conversation if identity else None,
        adopts=adopts,
    )


def event_for(kind: DriftKind, agent: str, record: AgentRecord, sight: Sight, others: Sequence[str] = ()) -> AgentEvent:
    """Any other drift as it is told."""
    pane, identity = sight.pane, sight.examined.identity
    spawn = record.spawn or "unknown"
    session = pane.session if pane is not None else record.session or agent
    match kind:
        case DriftKind.MISSING:
            return SessionMissing(agent=agent, spawn=spawn, session=record.session or agent)
        case DriftKind.PANE_DEAD:
            status = pane.dead_status if pane is not None else None
            return PaneDead(agent=agent, spawn=spawn, session=session, exit_status=status)
        case DriftKind.IDENTIFIED:
            kept = identity.transcript if identity else sight.moved_to
            conversation = identity.conversation if identity else record.conversation
            previous = record.conversation if record.conversation != conversation else None
            return Identified(
                agent=agent,
                spawn=spawn,
                conversation=conversation or "unknown",
                transcript=str(kept) if kept else None,
                previous=previous,
            )
        case DriftKind.STALE_ID:
            return StaleId(
                agent=agent,
                spawn=record.spawn,
                conversation=record.conversation or "unknown",
                transcript=record.transcript or "",
            )
        case DriftKind.DUPLICATE_ID:
            conversation = conversation_of(record, sight)
            return DuplicateId(agent=agent, spawn=spawn, conversation=conversation or "unknown", others=list(others))
        case DriftKind.WRONG_BACKEND:
            command = pane.command if pane is not None else ""
            found = sight.examined.found
            return WrongBackend(agent=agent, spawn=spawn, expected=record.backend, found=found, command=command)
        case DriftKind.MOVED:
            place = identity.workspace if identity is not None else None
            return Moved(
                agent=agent,
                spawn=spawn,
                session=session,
                workspace=str(place) if place is not None else record.workspace,
                was_session=record.session or agent,
                was_workspace=record.workspace,
            )
        case _:
            raise ValueError(f"{kind} is told of a session, not of a record")
