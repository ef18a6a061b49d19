"""Which difference is a drift. Pure: one table in which every combination has a row.

A drift is the class of its event, how that is built from a comparison, and what ends it if it lasts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from services.reconciler.comparison import (
    Aspect,
    Company,
    Comparison,
    ConversationState,
    PlaceState,
    ProgramState,
    Recorded,
    SessionState,
    conversation_of,
    recorded,
)
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


@dataclass(frozen=True)
class Drift:
    kind: type[DriftEvent]
    build: Callable[[Comparison], DriftEvent]
    ended_by: tuple[Aspect, ...] = ()
    """What ends one that lasts. Not to know is no reason to end it."""

    @property
    def name(self) -> str:
        return self.kind.name()


def _missing(it: Comparison) -> DriftEvent:
    return SessionMissing(agent=it.agent, spawn=it.spawn, session=it.known.session or it.agent)


def _pane_dead(it: Comparison) -> DriftEvent:
    status = it.observation.pane.dead_status if it.observation.pane is not None else None
    return PaneDead(agent=it.agent, spawn=it.spawn, session=it.session, exit_status=status)


def _unregistered(it: Comparison) -> DriftEvent:
    pane, examined = it.observation.pane, it.observation.examined
    if pane is None:
        raise ValueError(f"{it.agent} has no session that could be unregistered")
    backend = examined.found or (it.record.backend if it.record is not None else it.declared_backend)
    return unregistered(it.agent, pane, backend, examined.identity)


def unregistered(
    agent: str, pane: Pane, backend: str, identity: ConversationIdentity | None, *, adopts: bool = False
) -> Unregistered:
    """An agent that runs and is not recorded."""
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


def _identified(it: Comparison) -> DriftEvent:
    identity = it.observation.examined.identity
    file = identity.transcript if identity else it.observation.moved_to
    conversation = identity.conversation if identity else it.known.conversation
    return Identified(
        agent=it.agent,
        spawn=it.spawn,
        conversation=conversation or "unknown",
        transcript=str(file) if file else None,
        previous=it.known.conversation if it.known.conversation != conversation else None,
    )


def _stale_id(it: Comparison) -> DriftEvent:
    conversation, file = it.known.conversation or "unknown", it.known.transcript or ""
    return StaleId(agent=it.agent, spawn=it.known.spawn, conversation=conversation, transcript=file)


def _duplicate_id(it: Comparison) -> DriftEvent:
    conversation = conversation_of(it.known, it.observation) or "unknown"
    return DuplicateId(agent=it.agent, spawn=it.spawn, conversation=conversation, others=list(it.others))


def _wrong_backend(it: Comparison) -> DriftEvent:
    command = it.observation.pane.command if it.observation.pane is not None else ""
    found = it.observation.examined.found
    return WrongBackend(agent=it.agent, spawn=it.spawn, expected=it.known.backend, found=found, command=command)


def _moved(it: Comparison) -> DriftEvent:
    identity = it.observation.examined.identity
    place = identity.workspace if identity is not None else None
    return Moved(
        agent=it.agent,
        spawn=it.spawn,
        session=it.session,
        workspace=str(place) if place is not None else it.known.workspace,
        was_session=it.known.session or it.agent,
        was_workspace=it.known.workspace,
    )


MISSING = Drift(SessionMissing, _missing)
PANE_DEAD = Drift(PaneDead, _pane_dead)
UNREGISTERED = Drift(Unregistered, _unregistered)
IDENTIFIED = Drift(Identified, _identified)
STALE_ID = Drift(StaleId, _stale_id, ended_by=(ConversationState.SAME, ConversationState.NEW))
DUPLICATE_ID = Drift(DuplicateId, _duplicate_id, ended_by=(Company.ALONE,))
WRONG_BACKEND = Drift(WrongBackend, _wrong_backend, ended_by=(ProgramState.RIGHT,))
MOVED = Drift(Moved, _moved)

CLASSIFY: Mapping[tuple[Recorded, Aspect], Drift | None] = {
    # Its session.
    (Recorded.NOTHING, SessionState.ABSENT): None,
    (Recorded.NOTHING, SessionState.ALIVE): UNREGISTERED,
    (Recorded.NOTHING, SessionState.DEAD): None,  # the spawner tells how it ended
    (Recorded.NOTHING, SessionState.OTHER): None,  # there is no recorded one to be other than
    (Recorded.RUNNING, SessionState.ABSENT): MISSING,
    (Recorded.RUNNING, SessionState.ALIVE): None,
    (Recorded.RUNNING, SessionState.DEAD): PANE_DEAD,
    (Recorded.RUNNING, SessionState.OTHER): UNREGISTERED,
    (Recorded.ENDED, SessionState.ABSENT): None,
    (Recorded.ENDED, SessionState.ALIVE): UNREGISTERED,
    (Recorded.ENDED, SessionState.DEAD): None,
    (Recorded.ENDED, SessionState.OTHER): UNREGISTERED,
    # The program in it. Of what does not run, nothing is expected.
    (Recorded.NOTHING, ProgramState.RIGHT): None,
    (Recorded.NOTHING, ProgramState.WRONG): None,
    (Recorded.NOTHING, ProgramState.UNKNOWN): None,
    (Recorded.RUNNING, ProgramState.RIGHT): None,
    (Recorded.RUNNING, ProgramState.WRONG): WRONG_BACKEND,
    (Recorded.RUNNING, ProgramState.UNKNOWN): None,
    (Recorded.ENDED, ProgramState.RIGHT): None,
    (Recorded.ENDED, ProgramState.WRONG): None,
    (Recorded.ENDED, ProgramState.UNKNOWN): None,
    # Its conversation, which may be gone though nobody is in it.
    (Recorded.NOTHING, ConversationState.SAME): None,
    (Recorded.NOTHING, ConversationState.NEW): None,  # told with the session
    (Recorded.NOTHING, ConversationState.GONE): None,
    (Recorded.NOTHING, ConversationState.UNKNOWN): None,
    (Recorded.RUNNING, ConversationState.SAME): None,
    (Recorded.RUNNING, ConversationState.NEW): IDENTIFIED,
    (Recorded.RUNNING, ConversationState.GONE): STALE_ID,
    (Recorded.RUNNING, ConversationState.UNKNOWN): None,
    (Recorded.ENDED, ConversationState.SAME): None,
    (Recorded.ENDED, ConversationState.NEW): IDENTIFIED,  # it is kept in another place now
    (Recorded.ENDED, ConversationState.GONE): STALE_ID,
    (Recorded.ENDED, ConversationState.UNKNOWN): None,
    (Recorded.NOTHING, Company.ALONE): None,
    (Recorded.NOTHING, Company.SHARED): None,
    (Recorded.RUNNING, Company.ALONE): None,
    (Recorded.RUNNING, Company.SHARED): DUPLICATE_ID,
    (Recorded.ENDED, Company.ALONE): None,
    (Recorded.ENDED, Company.SHARED): None,
    # Where it is.
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
    about = recorded(compared.record)
    return [drift for aspect in compared.aspects if (drift := CLASSIFY[about, aspect]) is not None]
