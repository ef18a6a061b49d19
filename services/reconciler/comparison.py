"""What is seen of an agent beside its record, and how the two compare: one aspect at a time. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from registry import AgentRecord
from shared.agents.identity import ConversationIdentity
from shared.system.tmux import Pane


class Recorded(StrEnum):
    """What the registry says of the agent."""

    NOTHING = "nothing"
    RUNNING = "running"
    ENDED = "ended"


class SessionState(StrEnum):
    """What tmux shows of the recorded session."""

    ABSENT = "absent"
    ALIVE = "alive"
    DEAD = "dead"  # it is there, but its program has ended
    OTHER = "other"  # the agent has a session, but another one than is recorded


class ProgramState(StrEnum):
    """What runs in the pane, by its processes."""

    RIGHT = "right"
    WRONG = "wrong"
    UNKNOWN = "unknown program"


class ConversationState(StrEnum):
    """What the agent's own files say it is in."""

    SAME = "same conversation"
    NEW = "new conversation"  # another than is recorded, or kept in another place
    GONE = "gone"  # recorded, but no longer on disk
    UNKNOWN = "unknown conversation"


class Company(StrEnum):
    """Who else runs on the same conversation."""

    ALONE = "alone"
    SHARED = "shared"


class PlaceState(StrEnum):
    """Where it is: the name of its session, and the directory it works in."""

    SAME = "same place"
    MOVED = "moved"
    UNKNOWN = "unknown place"


Aspect = SessionState | ProgramState | ConversationState | Company | PlaceState
ASPECTS: tuple[type[StrEnum], ...] = (SessionState, ProgramState, ConversationState, Company, PlaceState)


class TranscriptFile(StrEnum):
    """Whether the recorded conversation is where it was."""

    THERE = "there"
    GONE = "gone"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Examination:
    """What the processes in a pane, and the agent's own files, say of it."""

    runs_its_backend: bool | None = None
    """None: that can't be told."""
    found: str | None = None
    """The backend whose program runs there, if it is another."""
    identity: ConversationIdentity | None = None


@dataclass(frozen=True)
class Observation:
    pane: Pane | None = None
    """The session with the agent's stamp."""
    examined: Examination = Examination()
    transcript: TranscriptFile = TranscriptFile.UNKNOWN
    moved_to: Path | None = None
    """Where the recorded conversation is now, if it is no longer where it was."""


def recorded(record: AgentRecord | None) -> Recorded:
    if record is None:
        return Recorded.NOTHING
    return Recorded.RUNNING if record.is_running else Recorded.ENDED


def conversation_of(record: AgentRecord, sight: Observation) -> str | None:
    """What the agent is in, as far as that is known."""
    identity = sight.examined.identity
    return identity.conversation if identity is not None else record.conversation


def aspects(record: AgentRecord | None, sight: Observation, others: Sequence[str] = ()) -> tuple[Aspect, ...]:
    """What is to be classified. `others` run on the same conversation."""
    session = _session(record, sight.pane)
    if record is None:
        return (session, ProgramState.UNKNOWN, ConversationState.UNKNOWN, Company.ALONE, PlaceState.UNKNOWN)
    if session is not SessionState.ALIVE:
        return (session, ProgramState.UNKNOWN, _kept(record, sight), Company.ALONE, PlaceState.UNKNOWN)
    company = Company.SHARED if others else Company.ALONE
    return (session, _program(sight.examined), _conversation(record, sight), company, _place(record, sight))


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


def _conversation(record: AgentRecord, sight: Observation) -> ConversationState:
    identity = sight.examined.identity
    if identity is None:
        return _kept(record, sight)
    if identity.conversation != record.conversation:
        return ConversationState.NEW
    if identity.transcript is None:
        return _kept(record, sight) if record.transcript else ConversationState.SAME
    return ConversationState.SAME if str(identity.transcript) == record.transcript else ConversationState.NEW


def _kept(record: AgentRecord, sight: Observation) -> ConversationState:
    """By the file alone. One that never was there is not gone: no agent writes before the first prompt."""
    if record.transcript is None or record.conversation is None:
        return ConversationState.UNKNOWN
    if sight.moved_to is not None:
        return ConversationState.NEW
    match sight.transcript:
        case TranscriptFile.THERE:
            return ConversationState.SAME
        case TranscriptFile.GONE:
            return ConversationState.GONE
        case TranscriptFile.UNKNOWN:
            return ConversationState.UNKNOWN


def _place(record: AgentRecord, sight: Observation) -> PlaceState:
    if sight.pane is not None and sight.pane.session != record.session:
        return PlaceState.MOVED
    identity = sight.examined.identity
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


def shared_conversations(records: Mapping[str, AgentRecord], sights: Mapping[str, Observation]) -> dict[str, list[str]]:
    """For each agent that runs, who else runs on its conversation."""
    users: dict[str, list[str]] = {}
    for agent, record in records.items():
        sight = sights.get(agent, Observation())
        runs = record.is_running and _session(record, sight.pane) is SessionState.ALIVE
        runs = runs and sight.examined.runs_its_backend is not False  # who left a shell behind is in no conversation
        if runs and (conversation := conversation_of(record, sight)):
            users.setdefault(conversation, []).append(agent)
    return {
        agent: [other for other in together if other != agent]
        for together in users.values()
        if len(together) > 1
        for agent in together
    }


@dataclass(frozen=True)
class Comparison:
    """One agent: its record, what was seen of it, and what follows from the two."""

    agent: str
    record: AgentRecord | None
    observation: Observation
    others: tuple[str, ...] = ()
    """Who else runs on its conversation."""
    declared_backend: str = "unknown"

    @cached_property
    def aspects(self) -> tuple[Aspect, ...]:
        return aspects(self.record, self.observation, self.others)

    @property
    def known(self) -> AgentRecord:
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
        """Whether nothing changed; records and examinations stay the same objects for as long as they are good."""
        one, two = self.observation, other.observation
        return (
            self.record is other.record
            and one.examined is two.examined
            and one.pane == two.pane
            and (one.transcript, one.moved_to) == (two.transcript, two.moved_to)
            and self.others == other.others
        )
