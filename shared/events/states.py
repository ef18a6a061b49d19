"""How things are now: retained, so that whoever comes late sees them."""

from typing import Any

from pydantic import AwareDatetime, Field

from shared.events.envelope import Data
from shared.ids import Id
from shared.states import Activity, Desired, Presence, Status


class AgentFacts(Data):
    """What is known of an agent and its newest session, in the registry and in its state alike."""

    status: Status
    desired: Desired
    since: AwareDatetime = Field(description="Since when it has had this status.")
    reason: str = Field(description="Why it has it.")
    activity: Activity | None = Field(default=None, description="What it is doing; none: nothing was told yet.")
    activity_since: AwareDatetime | None = Field(default=None, description="Since when it is doing that.")
    activity_reason: str = Field(default="", description="By what that is known, for people.")
    decided_by: str = Field(default="", description="The source that was believed: hooks, live_file, transcript, ….")
    limit: str | None = Field(default=None, description="The usage limit that holds it, as the agent calls it.")
    account: Id | None = Field(default=None, description="Whose limit that is.")
    limit_resets: AwareDatetime | None = Field(default=None, description="When that lifts, where it is known.")
    resumes: AwareDatetime | None = Field(default=None, description="When it is brought to go on, if it is.")
    role: str = ""
    backend: Id
    workspace: str
    session: str | None = Field(default=None, description="The tmux session.")
    pane: str | None = None
    pid: int | None = None
    command: str | None = Field(default=None, description="The program in the pane.")
    spawn: Id | None = Field(default=None, description="The id of the session, which no other ever has.")
    conversation: str | None = Field(default=None, description="The agent's own id of what it works on.")
    earlier: list[str] = Field(
        default=[], description="Conversations that it had before in this session, oldest first."
    )
    transcript: str | None = Field(default=None, description="Where the agent keeps its conversation on disk.")
    parent: Id | None = None
    level: int = 1
    job: Id | None = None
    started: AwareDatetime | None = None
    ended: AwareDatetime | None = None
    exit_status: int | None = Field(
        default=None, description="What its program returned; minus the signal that ended it."
    )
    drifts: list[str] = Field(default=[], description="The kinds of drift that are open.")


class AgentState(AgentFacts):
    """The agent as it is now."""

    agent: Id


class ServiceState(Data):
    """A service as it is now; `offline` with the same connection number is its last will."""

    service: Id
    status: Presence
    connection: int = Field(description="Counts this service's connections; a will of an older one means nothing.")
    pid: int
    version: str
    reason: str = ""
    health: dict[str, Any] = Field(default={}, description="Figures: steps, errors, events not yet acknowledged, ….")
