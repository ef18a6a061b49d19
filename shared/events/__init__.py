"""What services say: typed events and states inside a CloudEvents 1.0 envelope.

Events are in the past tense and never change once told. States are retained: the newest one is the truth.
"""

from shared.events.activity import ActivityEvent, ApprovalNeeded, StatusChanged
from shared.events.drift import (
    Drift,
    DriftResolved,
    DuplicateId,
    Identified,
    Moved,
    PaneDead,
    SessionMissing,
    StaleId,
    Unregistered,
    WrongBackend,
)
from shared.events.envelope import MAX_SEQ, SOURCE_PATTERN, AgentEvent, Data, Envelope, Event
from shared.events.lifecycle import (
    AgentAdopted,
    AgentDeleted,
    AgentExited,
    AgentGaveUp,
    AgentRestarted,
    AgentResumed,
    AgentSent,
    AgentSpawned,
    AgentStopped,
    Lifecycle,
    Running,
)
from shared.events.states import AgentFacts, AgentState, ServiceState

__all__ = [
    "MAX_SEQ",
    "SOURCE_PATTERN",
    "ActivityEvent",
    "AgentAdopted",
    "AgentDeleted",
    "AgentEvent",
    "AgentExited",
    "AgentFacts",
    "AgentGaveUp",
    "AgentRestarted",
    "AgentResumed",
    "AgentSent",
    "AgentSpawned",
    "AgentState",
    "AgentStopped",
    "ApprovalNeeded",
    "Data",
    "Drift",
    "DriftResolved",
    "DuplicateId",
    "Envelope",
    "Event",
    "Identified",
    "Lifecycle",
    "Moved",
    "PaneDead",
    "Running",
    "ServiceState",
    "SessionMissing",
    "StaleId",
    "StatusChanged",
    "Unregistered",
    "WrongBackend",
]
