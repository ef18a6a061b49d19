"""Where the record and the world differ, as the reconciler tells it: each once, and again only when it changes."""

from typing import Annotated, Literal

from pydantic import Field

from shared.events.envelope import AgentEvent
from shared.ids import ConversationId, Id


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


class Unregistered(AgentEvent):
    """An agent runs in tmux, and no record says so. It is recorded; if nobody keeps it, it is adopted too."""

    kind: Literal["unregistered"] = "unregistered"
    spawn: Id | None = Field(default=None, description="Of a session of this fleet; none: somebody else started it.")
    backend: Id = Field(description="Told by its processes, or by what was recorded.")
    workspace: str
    session: str
    pane: str
    pid: int
    command: str = ""
    conversation: ConversationId | None = None
    adopts: bool = Field(default=False, description="The spawner is asked to adopt it.")


class Identified(AgentEvent):
    """The agent's own id of its conversation appeared on disk, or it went on to another conversation."""

    kind: Literal["identified"] = "identified"
    spawn: Id
    conversation: ConversationId
    transcript: str | None = Field(default=None, description="The file in which it is kept, once there is one.")
    previous: str | None = Field(default=None, description="What was recorded before.")


class StaleId(AgentEvent):
    """The recorded conversation is no longer on disk. Nothing is deleted for that."""

    kind: Literal["stale_id"] = "stale_id"
    spawn: Id | None = None
    conversation: str
    transcript: str = Field(description="Where it was kept.")


class DuplicateId(AgentEvent):
    """Two agents run on one conversation: each writes what the other does not know."""

    kind: Literal["duplicate_id"] = "duplicate_id"
    spawn: Id
    conversation: str
    others: list[Id] = Field(description="Who else runs on it.")


class WrongBackend(AgentEvent):
    """Its pane runs something else than its backend's program."""

    kind: Literal["wrong_backend"] = "wrong_backend"
    spawn: Id
    expected: Id
    found: Id | None = Field(default=None, description="The backend whose program runs there; none: no agent at all.")
    command: str = Field(description="What tmux calls the program.")


class Moved(AgentEvent):
    """Its session has another name, or the agent works in another directory, than was recorded."""

    kind: Literal["moved"] = "moved"
    spawn: Id
    session: str
    workspace: str
    was_session: str
    was_workspace: str


class DriftResolved(AgentEvent):
    """What was told before is so no longer."""

    kind: Literal["resolved"] = "resolved"
    spawn: Id | None = None
    drift: str = Field(description="The kind of what was told.")
    reason: str


Drift = Annotated[
    SessionMissing
    | PaneDead
    | Unregistered
    | Identified
    | StaleId
    | DuplicateId
    | WrongBackend
    | Moved
    | DriftResolved,
    Field(discriminator="kind"),
]
