"""Compares the record of an agent with what was observed, aspect by aspect, and names each difference. Pure.

`observation.py` makes the observations, `service.py` reports the drifts. `CLASSIFY` has a row for every combination.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from registry import AgentRecord
from shared.agents.identity import ConversationIdentity
from shared.contract.events.drift import (
    DriftEvent,
    DuplicateId,
    Identified,
    Moved,
    PaneDead,
    SessionMissing,
    StaleId,
    Unregistered,
    WrongBackend,
)
from shared.system.tmux import Pane

# --- the observation ---


class TranscriptFile(StrEnum):
    """Whether the file of the recorded conversation exists."""

    THERE = "there"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Examination:
    """What the processes in a pane and the agent's own files say about the agent."""

    runs_its_backend: bool | None = None
    """None: unknown."""
    found: str | None = None
    """The backend whose program runs in the pane."""
    identity: ConversationIdentity | None = None


@dataclass(frozen=True)
class Observation:
    pane: Pane | None = None
    """The pane with the agent's stamp."""
    examined: Examination = Examination()
    transcript: TranscriptFile = TranscriptFile.UNKNOWN
    moved_to: Path | None = None
    """Where the file of the recorded conversation is now, if it has moved."""


# --- the aspects ---


class Recorded(StrEnum):
    """What the registry says about the agent."""

    NOTHING = "nothing"
    RUNNING = "running"
    ENDED = "ended"


class SessionState(StrEnum):
    """What tmux shows of the recorded session."""

    ABSENT = "absent"
    ALIVE = "alive"
    DEAD = "dead"  # the pane is there, its program has ended
    OTHER = "other"  # the agent has a session that is not the recorded one


class ProgramState(StrEnum):
    """Whether the processes in the pane are those of the recorded backend."""

    RIGHT = "right"
    WRONG = "wrong"
    UNKNOWN = "unknown program"


class ConversationState(StrEnum):
    """How the conversation in the agent's own files compares with the recorded one."""

    SAME = "same conversation"
    NEW = "new conversation"  # not the recorded one, or in another file
    GONE = "gone"  # the recorded one is no longer on disk
    UNKNOWN = "unknown conversation"


class ConversationUse(StrEnum):
    """Whether other agents run on the same conversation."""

    EXCLUSIVE = "exclusive"
    SHARED = "shared"


class PlaceState(StrEnum):
    """Whether the session's name and the agent's directory are as recorded."""

    SAME = "same place"
    MOVED = "moved"
    UNKNOWN = "unknown place"


Aspect = SessionState | ProgramState | ConversationState | ConversationUse | PlaceState
ASPECTS: tuple[type[StrEnum], ...] = (SessionState, ProgramState, ConversationState, ConversationUse, PlaceState)


# --- the comparison ---


def recorded(record: AgentRecord | None) -> Recorded:
    if record is None:
        return Recorded.NOTHING
    return Recorded.RUNNING if record.is_running else Recorded.ENDED


def conversation_of(record: AgentRecord, observation: Observation) -> str | None:
    """The observed conversation; the recorded one where none was observed."""
    identity = observation.examined.identity
    return identity.conversation if identity is not None else record.conversation


def aspects(record: AgentRecord | None, observation: Observation, others: Sequence[str] = ()) -> tuple[Aspect, ...]:
    """One value of each aspect. `others` are agents that run on the same conversation."""
    session = _session(record, observation.pane)
    if record is None or session is not SessionState.ALIVE:
        conversation = ConversationState.UNKNOWN if record is None else _conversation_by_file(record, observation)
        return (session, ProgramState.UNKNOWN, conversation, ConversationUse.EXCLUSIVE, PlaceState.UNKNOWN)
    use = ConversationUse.SHARED if others else ConversationUse.EXCLUSIVE
    program, conversation = _program(observation.examined), _conversation(record, observation)
    return (session, program, conversation, use, _place(record, observation))


def _session(record: AgentRecord | None, pane: Pane | None) -> SessionState:
    if pane is None:
        return SessionState.ABSENT
    if record is not None and pane.spawn != record.spawn:
        return SessionState.OTHER if not pane.dead else SessionState.ABSENT
    return SessionState.DEAD if pane.dead else SessionState.ALIVE


def _program(examined: Examination) -> ProgramState:
    if examined.runs_its_backend is None:
        return ProgramState.UNKNOWN
    return ProgramState.RIGHT if examined.runs_its_backend else ProgramState.WRONG


def _conversation(record: AgentRecord, observation: Observation) -> ConversationState:
    identity = observation.examined.identity
    if identity is None:
        return _conversation_by_file(record, observation)
    if identity.conversation != record.conversation:
        return ConversationState.NEW
    if identity.transcript is None:
        return _conversation_by_file(record, observation) if record.transcript else ConversationState.SAME
    return ConversationState.SAME if str(identity.transcript) == record.transcript else ConversationState.NEW


def _conversation_by_file(record: AgentRecord, observation: Observation) -> ConversationState:
    """By the file alone. Without a recorded file it is not gone: agents write none before the first prompt."""
    if record.transcript is None or record.conversation is None:
        return ConversationState.UNKNOWN
    if observation.moved_to is not None:
        return ConversationState.NEW
    match observation.transcript:
        case TranscriptFile.THERE:
            return ConversationState.SAME
        case TranscriptFile.GONE:
            return ConversationState.GONE
        case TranscriptFile.UNKNOWN:
            return ConversationState.UNKNOWN


def _place(record: AgentRecord, observation: Observation) -> PlaceState:
    if observation.pane is not None and observation.pane.session != record.session:
        return PlaceState.MOVED
    identity = observation.examined.identity
    if identity is None or identity.workspace is None:
        return PlaceState.UNKNOWN
    return PlaceState.SAME if _same_directory(identity.workspace, Path(record.workspace)) else PlaceState.MOVED


def _same_directory(one: Path, other: Path) -> bool:
    if one == other:
        return True
    try:
        return one.resolve() == other.resolve()
    except (OSError, RuntimeError):
        return False


def shared_conversations(
    records: Mapping[str, AgentRecord], observations: Mapping[str, Observation]
) -> dict[str, list[str]]:
    """The agents that run on one conversation: by agent, the others."""
    users: dict[str, list[str]] = {}
    for agent, record in records.items():
        observation = observations.get(agent, Observation())
        runs = record.is_running and _session(record, observation.pane) is SessionState.ALIVE
        runs = runs and observation.examined.runs_its_backend is not False  # its shell is in no conversation
        if runs and (conversation := conversation_of(record, observation)):
            users.setdefault(conversation, []).append(agent)
    return {
        agent: [other for other in together if other != agent]
        for together in users.values()
        if len(together) > 1
        for agent in together
    }


@dataclass(frozen=True)
class Comparison:
    """One agent: its record and what was observed, side by side."""

    agent: str
    record: AgentRecord | None
    observation: Observation
    others: tuple[str, ...] = ()
    """The other agents that run on its conversation."""
    declared_backend: str = "unknown"

    @cached_property
    def aspects(self) -> tuple[Aspect, ...]:
        return aspects(self.record, self.observation, self.others)

    @property
    def known(self) -> AgentRecord:
        """The record, for drifts that only a recorded agent can have."""
        if self.record is None:
            raise ValueError(f"{self.agent} has no record to differ from")
        return self.record

    @property
    def spawn(self) -> str:
        return self.known.spawn or "unknown"

    @property
    def session(self) -> str:
        pane = self.observation.pane
        return pane.session if pane is not None else self.known.session or self.agent

    def is_same(self, other: "Comparison") -> bool:
        """Whether nothing changed. Records and examinations are the same objects for as long as they are valid."""
        one, two = self.observation, other.observation
        return (
            self.record is other.record
            and one.examined is two.examined
            and one.pane == two.pane
            and (one.transcript, one.moved_to) == (two.transcript, two.moved_to)
            and self.others == other.others
        )


# --- the drifts ---


@dataclass(frozen=True)
class Drift:
    """A kind of drift: the class of its event, how that is built, and what ends it."""

    event_class: type[DriftEvent]
    build: Callable[[Comparison], DriftEvent]
    ended_by: tuple[Aspect, ...] = ()
    """The aspects that resolve a drift that stays open. An unknown aspect resolves nothing."""

    @property
    def name(self) -> str:
        return self.event_class.name()


def _missing(compared: Comparison) -> DriftEvent:
    return SessionMissing(agent=compared.agent, spawn=compared.spawn, session=compared.known.session or compared.agent)


def _pane_dead(compared: Comparison) -> DriftEvent:
    status = compared.observation.pane.dead_status if compared.observation.pane is not None else None
    return PaneDead(agent=compared.agent, spawn=compared.spawn, session=compared.session, exit_status=status)


def _unregistered(compared: Comparison) -> DriftEvent:
    pane, examined = compared.observation.pane, compared.observation.examined
    if pane is None:
        raise ValueError(f"{compared.agent} has no session that could be unregistered")
    backend = examined.found or (compared.record.backend if compared.record is not None else compared.declared_backend)
    return unregistered(compared.agent, pane, backend, examined.identity)


def unregistered(
    agent: str, pane: Pane, backend: str, identity: ConversationIdentity | None, *, adopts: bool = False
) -> Unregistered:
    """The event for an agent that runs and is not recorded."""
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


def _identified(compared: Comparison) -> DriftEvent:
    identity = compared.observation.examined.identity
    file = identity.transcript if identity else compared.observation.moved_to
    conversation = identity.conversation if identity else compared.known.conversation
    return Identified(
        agent=compared.agent,
        spawn=compared.spawn,
        conversation=conversation or "unknown",
        transcript=str(file) if file else None,
        previous=compared.known.conversation if compared.known.conversation != conversation else None,
    )


def _stale_id(compared: Comparison) -> DriftEvent:
    conversation, file = compared.known.conversation or "unknown", compared.known.transcript or ""
    return StaleId(agent=compared.agent, spawn=compared.known.spawn, conversation=conversation, transcript=file)


def _duplicate_id(compared: Comparison) -> DriftEvent:
    conversation = conversation_of(compared.known, compared.observation) or "unknown"
    return DuplicateId(
        agent=compared.agent, spawn=compared.spawn, conversation=conversation, others=list(compared.others)
    )


def _wrong_backend(compared: Comparison) -> DriftEvent:
    command = compared.observation.pane.command if compared.observation.pane is not None else ""
    found = compared.observation.examined.found
    return WrongBackend(
        agent=compared.agent, spawn=compared.spawn, expected=compared.known.backend, found=found, command=command
    )


def _moved(compared: Comparison) -> DriftEvent:
    identity = compared.observation.examined.identity
    place = identity.workspace if identity is not None else None
    return Moved(
        agent=compared.agent,
        spawn=compared.spawn,
        session=compared.session,
        workspace=str(place) if place is not None else compared.known.workspace,
        was_session=compared.known.session or compared.agent,
        was_workspace=compared.known.workspace,
    )


MISSING = Drift(SessionMissing, _missing)
PANE_DEAD = Drift(PaneDead, _pane_dead)
UNREGISTERED = Drift(Unregistered, _unregistered)
IDENTIFIED = Drift(Identified, _identified)
STALE_ID = Drift(StaleId, _stale_id, ended_by=(ConversationState.SAME, ConversationState.NEW))
DUPLICATE_ID = Drift(DuplicateId, _duplicate_id, ended_by=(ConversationUse.EXCLUSIVE,))
WRONG_BACKEND = Drift(WrongBackend, _wrong_backend, ended_by=(ProgramState.RIGHT,))
MOVED = Drift(Moved, _moved)

CLASSIFY: Mapping[tuple[Recorded, Aspect], Drift | None] = {
    # The session.
    (Recorded.NOTHING, SessionState.ABSENT): None,
    (Recorded.NOTHING, SessionState.ALIVE): UNREGISTERED,
    (Recorded.NOTHING, SessionState.DEAD): None,  # the spawner reports how it ended
    (Recorded.NOTHING, SessionState.OTHER): None,  # no session is recorded
    (Recorded.RUNNING, SessionState.ABSENT): MISSING,
    (Recorded.RUNNING, SessionState.ALIVE): None,
    (Recorded.RUNNING, SessionState.DEAD): PANE_DEAD,
    (Recorded.RUNNING, SessionState.OTHER): UNREGISTERED,
    (Recorded.ENDED, SessionState.ABSENT): None,
    (Recorded.ENDED, SessionState.ALIVE): UNREGISTERED,
    (Recorded.ENDED, SessionState.DEAD): None,
    (Recorded.ENDED, SessionState.OTHER): UNREGISTERED,
    # The program in it. Only a running agent is expected to have one.
    (Recorded.NOTHING, ProgramState.RIGHT): None,
    (Recorded.NOTHING, ProgramState.WRONG): None,
    (Recorded.NOTHING, ProgramState.UNKNOWN): None,
    (Recorded.RUNNING, ProgramState.RIGHT): None,
    (Recorded.RUNNING, ProgramState.WRONG): WRONG_BACKEND,
    (Recorded.RUNNING, ProgramState.UNKNOWN): None,
    (Recorded.ENDED, ProgramState.RIGHT): None,
    (Recorded.ENDED, ProgramState.WRONG): None,
    (Recorded.ENDED, ProgramState.UNKNOWN): None,
    # The conversation. It can be gone or moved after the agent has ended, too.
    (Recorded.NOTHING, ConversationState.SAME): None,
    (Recorded.NOTHING, ConversationState.NEW): None,  # reported with the session
    (Recorded.NOTHING, ConversationState.GONE): None,
    (Recorded.NOTHING, ConversationState.UNKNOWN): None,
    (Recorded.RUNNING, ConversationState.SAME): None,
    (Recorded.RUNNING, ConversationState.NEW): IDENTIFIED,
    (Recorded.RUNNING, ConversationState.GONE): STALE_ID,
    (Recorded.RUNNING, ConversationState.UNKNOWN): None,
    (Recorded.ENDED, ConversationState.SAME): None,
    (Recorded.ENDED, ConversationState.NEW): IDENTIFIED,  # its file has moved
    (Recorded.ENDED, ConversationState.GONE): STALE_ID,
    (Recorded.ENDED, ConversationState.UNKNOWN): None,
    (Recorded.NOTHING, ConversationUse.EXCLUSIVE): None,
    (Recorded.NOTHING, ConversationUse.SHARED): None,
    (Recorded.RUNNING, ConversationUse.EXCLUSIVE): None,
    (Recorded.RUNNING, ConversationUse.SHARED): DUPLICATE_ID,
    (Recorded.ENDED, ConversationUse.EXCLUSIVE): None,
    (Recorded.ENDED, ConversationUse.SHARED): None,
    # The place.
    (Recorded.NOTHING, PlaceState.SAME): None,
    (Recorded.NOTHING, PlaceState.MOVED): None,
    (Recorded.NOTHING, PlaceState.UNKNOWN): None,
    (Recorded.RUNNING, PlaceState.SAME): None,
    (Recorded.RUNNING, PlaceState.MOVED): MOVED,
    (Recorded.RUNNING, PlaceState.UNKNOWN): None,
    (Recorded.ENDED, PlaceState.SAME): None,
    (Recorded.ENDED, PlaceState.MOVED): None,
    (Recorded.ENDED, PlaceState.UNKNOWN): None,
}

DRIFTS: Mapping[str, Drift] = {drift.name: drift for drift in CLASSIFY.values() if drift is not None}


def drifts_of(compared: Comparison) -> list[Drift]:
    """The drifts that an agent has now, in the order of the aspects."""
    about = recorded(compared.record)
    return [drift for aspect in compared.aspects if (drift := CLASSIFY[about, aspect]) is not None]
