"""What is recorded: of each agent its newest session, and of each session that ended how it did."""

from pydantic import AwareDatetime, ConfigDict

from shared.events import AgentFacts, AgentState, Data
from shared.ids import Id
from shared.states import Status

MOVING = ("activity", "activity_since", "activity_reason", "decided_by")
"""What changes all the time while agents work: nothing that somebody would edit, or mind a moment late."""


HELD_BY = ("limit", "account", "limit_resets", "resumes")
"""What tells of a usage limit. It outlives the session in which it was hit."""


class AgentRecord(AgentFacts):
    """What `registry.yaml` says of one agent. Keys it does not know are people's, and stay in the file."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    def state(self, agent: str) -> AgentState:
        return AgentState(agent=agent, **dict(self))

    def differs_in_activity_only(self, other: "AgentRecord | None") -> bool:
        """Whether nothing else than what the agent is doing differs from the other."""
        return other is not None and other == self.model_copy(update={name: getattr(other, name) for name in MOVING})

    @property
    def is_running(self) -> bool:
        return self.status is Status.RUNNING

    def ending(self, agent: str) -> "EndedSession | None":
        """How its session ended; None while it runs, or where no session was."""
        if self.is_running or self.ended is None or self.spawn is None:
            return None
        known = {name: getattr(self, name) for name in EndedSession.model_fields if name != "agent"}
        return EndedSession(agent=agent, **known)


class EndedSession(Data):
    """A session that is over, in `history`, by its spawn id."""

    agent: Id
    status: Status
    reason: str
    backend: Id
    workspace: str
    conversation: str | None = None
    job: Id | None = None
    started: AwareDatetime | None = None
    ended: AwareDatetime
    exit_status: int | None = None
