"""What an agent is doing, as the monitor tells it: each change once."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from shared.events.envelope import AgentEvent
from shared.ids import Id
from shared.states import Activity


class StatusChanged(AgentEvent):
    """The agent is doing something else than before."""

    kind: Literal["status_changed"] = "status_changed"
    spawn: Id
    status: Activity
    was: Activity | None = Field(default=None, description="What it was doing before; none: nothing was told yet.")
    since: AwareDatetime = Field(description="Since when it is so, by what decided it.")
    reason: str = Field(description="What was seen.")
    decided_by: str = Field(description="The source that was believed: hooks, live_file, transcript, ….")
    rule: str = Field(default="", description="Which of the source's rules read it so.")
    subagents: dict[str, Activity] = Field(default={}, description="What each of its subagents is doing.")


class ApprovalNeeded(AgentEvent):
    """The agent asks a person: for permission, or a question. Each time it asks is told once."""

    kind: Literal["approval_needed"] = "approval_needed"
    spawn: Id
    since: AwareDatetime
    reason: str = Field(description="What it asks for.")
    dialog: str = Field(default="", description="The dialog on its screen, as far as it can be seen.")
    fingerprint: str = Field(
        default="", description="Tells this dialog from the next: `approve` with it answers no other."
    )


ActivityEvent = Annotated[StatusChanged | ApprovalNeeded, Field(discriminator="kind")]
