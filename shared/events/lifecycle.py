"""What the spawner did to an agent's session."""

from typing import Annotated, Literal

from pydantic import Field

from shared.events.envelope import AgentEvent
from shared.ids import Id


class Running(AgentEvent):
    """The facts about a session that has just been made."""

    spawn: Id
    backend: Id
    workspace: str
    session: str
    pane: str
    pid: int
    command: str = Field(default="", description="The program that was started in it.")
    conversation: str | None = Field(default=None, description="The agent's own id of it, where that is known.")
    role: str = Field(default="", description="What the agent is there for.")
    parent: Id | None = Field(default=None, description="Who had it started, if another agent did.")
    level: int = Field(default=1, ge=1, le=3, description="How far down the line of parents it is.")
    job: Id | None = Field(default=None, description="The job that it was started for.")


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
