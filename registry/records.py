"""The records: the newest session of each agent, and how each earlier session ended."""

from pydantic import AwareDatetime, ConfigDict

from shared.contract.envelope import Data
from shared.contract.ids import Id
from shared.contract.states import AgentFacts, AgentState, Status

ACTIVITY_FIELDS = ("activity", "activity_since", "activity_reason", "decided_by")
"""These change all the time while agents work. Nobody edits them, and the file may show them a second late."""

LIMIT_FIELDS = ("limit", "account", "limit_resets", "resumes")
"""A usage limit. It outlives the session that hit it."""


class AgentRecord(AgentFacts):
    """What `registry.yaml` says about one agent. Unknown keys are people's own, and stay in the file."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    def state(self, agent: str) -> AgentState:
        return AgentState(agent=agent, **dict(self))

    def differs_in_activity_only(self, other: "AgentRecord | None") -> bool:
        """Whether the two differ in the agent's activity at most."""
        return other is not None and other == self.model_copy(
            update={name: getattr(other, name) for name in ACTIVITY_FIELDS}
        )

    @property
    def is_running(self) -> bool:
        return self.status is Status.RUNNING

    def ending(self, agent: str) -> "EndedSession | None":
        """How its session ended; None while it runs, or if there was none."""
        if self.is_running or self.ended is None or self.spawn is None:
            return None
        known = {name: getattr(self, name) for name in EndedSession.model_fields if name != "agent"}
        return EndedSession(agent=agent, **known)


class EndedSession(Data):
    """A session that ended. In `history`, by its spawn id."""

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
