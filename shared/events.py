"""What services say: typed events and states inside a CloudEvents 1.0 envelope.

Events are in the past tense and never change once told. States are retained: the newest one is the truth.
"""

from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from shared.ids import Id
from shared.states import Desired, Presence, Status

MAX_SEQ = 2**63 - 1
"""What a journal can count to."""
SOURCE_PATTERN = r"^/[a-z0-9_-]+/[a-z0-9_-]+$"
"""`/<host>/<service>`"""


class Data(BaseModel):
    """The inside of an envelope. A reader passes over fields it does not know: hosts may differ in version."""

    model_config = ConfigDict(frozen=True, extra="ignore")


D = TypeVar("D", bound=Data)


class Envelope(BaseModel, Generic[D]):
    """CloudEvents 1.0 in JSON, what a person reads first in front."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    type: str = Field(examples=["muster.drift.missing"])
    subject: str = Field(description="The id of the agent or service it is about.")
    time: AwareDatetime
    data: D
    cause: str | None = Field(default=None, description="The id of the event or command that led to this one.")
    source: str = Field(pattern=SOURCE_PATTERN, examples=["/box/reconciler"])
    seq: int = Field(
        ge=0,
        le=MAX_SEQ,
        description="Events: one more than the source's last in this epoch. States: the source's last event so far.",
    )
    epoch: str = Field(description="The life of the source's journal; a new journal counts anew.")
    id: str
    specversion: Literal["1.0"] = "1.0"


class Event(Data):
    """Something that happened."""

    kind: str


# --- lifecycle: what the spawner did ---------------------------------------------------------------------


class AgentEvent(Event):
    agent: Id


class Running(AgentEvent):
    """The facts about a session that has just been made."""

    spawn: Id
    backend: Id
    workspace: str
    session: str
    pane: str
    pid: int
    conversation: str | None = Field(default=None, description="The agent's own id of it, where that is known.")


class AgentSpawned(Running):
    """A session was started for the agent."""

    kind: Literal["spawned"] = "spawned"


class AgentRestarted(Running):
    """A new session took the place of one that ended."""

    kind: Literal["restarted"] = "restarted"
    replaces: Id | None = None
    reason: str
    attempt: int = Field(
        ge=0, description="How many restarts in the burst window, this one included; 0 when asked for."
    )


class AgentResumed(Running):
    """A session was started that takes up an earlier conversation, on request."""

    kind: Literal["resumed"] = "resumed"
    reason: str


class AgentAdopted(Running):
    """A session that somebody else had started is kept as an agent from now on."""

    kind: Literal["adopted"] = "adopted"


class AgentStopped(AgentEvent):
    """The agent's session was ended on request."""

    kind: Literal["stopped"] = "stopped"
    spawn: Id | None = None
    reason: str
    for_now: bool = Field(default=False, description="Only until the services are started again: it is still wanted.")


class AgentExited(AgentEvent):
    """The agent's program ended by itself."""

    kind: Literal["exited"] = "exited"
    spawn: Id
    exit_status: int | None = None
    last_words: str = Field(default="", description="The last line on its screen, where it did not end well.")


class AgentGaveUp(AgentEvent):
    """The agent died more often than its restart policy allows; it stays down until a person starts it."""

    kind: Literal["gave_up"] = "gave_up"
    reason: str


class AgentDeleted(AgentEvent):
    """The agent's record is no longer kept."""

    kind: Literal["deleted"] = "deleted"
    spawn: Id | None = None
    reason: str
    session_left: bool = Field(default=False, description="Its session goes on, and nobody keeps it.")
    purged: str | None = Field(default=None, description="The file of its conversation that was removed.")


class AgentSent(AgentEvent):
    """A text was typed into the agent's input box and submitted, or keys were pressed."""

    kind: Literal["sent"] = "sent"
    spawn: Id
    what: Literal["text", "prompt", "keys", "interrupt", "approve", "deny"]
    size: int = Field(ge=0, description="Bytes of the text, or how many keys.")
    confirmed: Literal["transcript", "screen", "none"] = Field(description="By what it is known to have arrived.")
    reason: str


Lifecycle = Annotated[
    AgentSpawned
    | AgentRestarted
    | AgentResumed
    | AgentAdopted
    | AgentStopped
    | AgentExited
    | AgentGaveUp
    | AgentDeleted
    | AgentSent,
    Field(discriminator="kind"),
]


# --- drift: where the registry and the world differ ------------------------------------------------------


class SessionMissing(AgentEvent):
    """Recorded as running, but tmux has no such session."""

    kind: Literal["missing"] = "missing"
    spawn: Id
    session: str


class PaneDead(AgentEvent):
    """Recorded as running, but the program in its pane has ended."""

    kind: Literal["pane_dead"] = "pane_dead"
    spawn: Id
    session: str
    exit_status: int | None = None


Drift = Annotated[SessionMissing | PaneDead, Field(discriminator="kind")]


# --- states: retained -----------------------------------------------------------------------------------


class AgentState(Data):
    """The agent as it is now."""

    agent: Id
    status: Status
    since: AwareDatetime
    reason: str
    desired: Desired
    backend: Id
    workspace: str
    session: str | None = None
    pane: str | None = None
    pid: int | None = None
    spawn: Id | None = None
    conversation: str | None = Field(default=None, description="The agent's own id of what it works on.")
    drifts: list[str] = []


class ServiceState(Data):
    """A service as it is now; `offline` with the same connection number is its last will."""

    service: Id
    status: Presence
    connection: int = Field(description="Counts this service's connections; a will of an older one means nothing.")
    pid: int
    version: str
    reason: str = ""
    health: dict[str, Any] = Field(default={}, description="Figures: steps, errors, events not yet acknowledged, ….")
