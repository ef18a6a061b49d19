"""What an agent is doing, reported by the monitor: each change once."""

from typing import ClassVar, Literal

from pydantic import AwareDatetime, Field

from shared.contract.envelope import AgentEvent, Tone, Urgency
from shared.contract.ids import Id
from shared.contract.states import Activity, AnswerOption, Trouble


class ActivityEvent(AgentEvent):
    """What an agent is doing."""


class StatusChanged(ActivityEvent):
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

    def word(self) -> str:
        return self.status.value

    def sentence(self) -> str:
        was = f"; was {self.was.value}" if self.was is not None else ""
        return f"{self.reason}; by {self.decided_by or 'nothing'}{was}"


class ApprovalNeeded(ActivityEvent):
    """The agent asks a person: for permission, or a question. Each time it asks is told once."""

    kind: Literal["approval_needed"] = "approval_needed"
    tone: ClassVar[Tone] = Tone.BAD
    urgency: ClassVar[Urgency] = Urgency.ACTION

    spawn: Id
    since: AwareDatetime
    reason: str = Field(description="What it asks for.")
    dialog: str = Field(default="", description="The dialog on its screen, as far as it can be seen.")
    fingerprint: str = Field(
        default="", description="Tells this dialog from the next: `approve` with it answers no other."
    )
    can: list[str] = Field(default=[], description="The commands that answer it: `approve`, `deny`.")
    options: list[AnswerOption] = Field(
        default=[], description="The rows that a key chooses, if it is a choice: `send` with `keys` and `fingerprint`."
    )


class LimitHit(ActivityEvent):
    """The agent's account has hit a usage limit: nothing is asked of it until that lifts."""

    kind: Literal["limit_hit"] = "limit_hit"
    tone: ClassVar[Tone] = Tone.BAD
    urgency: ClassVar[Urgency] = Urgency.NEWS

    spawn: Id
    account: Id = Field(description="Whose limit it is: agents on one account share it.")
    scope: str = Field(default="", description="As the agent calls it: session, weekly, Opus, ….")
    since: AwareDatetime = Field(description="When it was hit.")
    resets_at: AwareDatetime | None = Field(default=None, description="When it lifts, where that is known.")
    resumes_at: AwareDatetime | None = Field(
        default=None, description="When the agent is brought to go on; none: it is left to people."
    )
    continues: bool = Field(default=False, description="The agent says that it goes on by itself then.")
    said: str = Field(default="", description="In the agent's own words.")
    parked: list[Id] = Field(default=[], description="The other agents that it concerns: they are left alone too.")
    reason: str


class LimitNear(ActivityEvent):
    """The agent warns that its account has nearly spent what it may use."""

    kind: Literal["limit_near"] = "limit_near"
    urgency: ClassVar[Urgency] = Urgency.NEWS

    spawn: Id
    account: Id
    reason: str = Field(description="In the agent's own words.")


class LimitLifted(ActivityEvent):
    """The agent's usage limit is over."""

    kind: Literal["limit_lifted"] = "limit_lifted"
    tone: ClassVar[Tone] = Tone.GOOD
    urgency: ClassVar[Urgency] = Urgency.NEWS

    spawn: Id | None = None
    account: Id
    scope: str = ""
    how: Literal["resumed", "by_itself", "by_somebody", "left"] = Field(
        description="By whom it was brought to go on; `left`: by nobody, its policy leaves that to people."
    )
    tries: int = Field(default=0, ge=0, description="How often Muster asked it to go on.")
    reason: str


class LimitStuck(ActivityEvent):
    """The limit should be over, and the agent was not brought to go on: a person is needed."""

    kind: Literal["limit_stuck"] = "limit_stuck"
    tone: ClassVar[Tone] = Tone.BAD
    urgency: ClassVar[Urgency] = Urgency.ACTION

    spawn: Id | None = None
    account: Id
    tries: int = Field(ge=0, description="How often it was asked to go on.")
    reason: str


class AgentStalled(ActivityEvent):
    """The agent has been idle past what it promised or is allowed."""

    kind: Literal["stalled"] = "stalled"
    tone: ClassVar[Tone] = Tone.BAD
    urgency: ClassVar[Urgency] = Urgency.NEWS

    spawn: Id
    idle_s: float
    promised_until: AwareDatetime | None = None
    then: Literal["nudge", "restart", "tell"] = Field(description="What is done about it.")
    reason: str


class AgentWoken(ActivityEvent):
    """The agent was pinged, as its schedule says."""

    kind: Literal["woken"] = "woken"
    spawn: Id
    due: AwareDatetime = Field(description="When it was to be.")
    reason: str


class AgentUnresponsive(ActivityEvent):
    """The agent is said to work and shows no life, or did not answer how it is."""

    kind: Literal["unresponsive"] = "unresponsive"
    tone: ClassVar[Tone] = Tone.BAD
    urgency: ClassVar[Urgency] = Urgency.NEWS

    spawn: Id
    silent_s: float
    then: Literal["restart", "stop", "tell"] = Field(description="What is done about it.")
    reason: str


class AgentFatal(ActivityEvent):
    """The agent can't go on by itself."""

    kind: Literal["fatal"] = "fatal"
    tone: ClassVar[Tone] = Tone.BAD
    urgency: ClassVar[Urgency] = Urgency.ACTION

    spawn: Id
    trouble: Trouble
    then: Literal["restart", "hold", "tell"] = Field(
        description="What is done about it; `hold`: nothing before a person has mended it."
    )
    reason: str


class AgentProgress(ActivityEvent):
    """What a fork of the agent's conversation says of its work."""

    kind: Literal["progress"] = "progress"
    spawn: Id
    state: Literal["working", "waiting", "blocked"]
    summary: str

    def sentence(self) -> str:
        return f"{self.state}: {self.summary}"


class AgentFinished(ActivityEvent):
    """A fork of the agent's conversation says that its work is done."""

    kind: Literal["finished"] = "finished"
    tone: ClassVar[Tone] = Tone.GOOD
    urgency: ClassVar[Urgency] = Urgency.NEWS

    spawn: Id
    summary: str
    output: str = Field(default="", description="The beginning of its result.")
    file: str | None = Field(default=None, description="Where the whole result is kept.")

    def sentence(self) -> str:
        return self.summary + (f"; its result is in {self.file}" if self.file else "")
