"""The states of agents, services and cards: their values, and the retained documents that carry them."""

from enum import StrEnum
from typing import Any

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from shared.contract.envelope import Data, Tone
from shared.contract.ids import Id


class Status(StrEnum):
    """What became of an agent's session."""

    RUNNING = "running"
    STOPPED = "stopped"  # a person or another service asked for it
    EXITED = "exited"  # its program ended; the exit status is known
    TERMINATED = "terminated"  # its session vanished; nobody asked for it
    GAVE_UP = "gave_up"  # it died more often than its restart policy allows


class Activity(StrEnum):
    """What an agent is doing."""

    STARTING = "starting"  # its program runs and is not ready yet
    WORKING = "working"
    WAITING = "waiting"  # for the next prompt
    NEEDS_APPROVAL = "needs_approval"  # a person is asked: for permission, or a question
    LIMITED = "limited"  # its account's usage limit is reached
    STALLED = "stalled"  # it waits longer than it promised or may
    DONE = "done"  # its program ended, and well
    FAILED = "failed"  # its program ended badly, or can't go on by itself: no credit, not logged in
    UNKNOWN = "unknown"  # nothing tells


class Trouble(StrEnum):
    """Why an agent can't go on by itself."""

    LOGIN = "login"  # it is not logged in
    CREDIT = "credit"  # its account has no money left
    SETUP = "setup"  # what it was started with is refused: its model, say
    SESSION = "session"  # its conversation is refused, whatever it is told next
    GONE = "gone"  # its program is gone from its pane, or is another one


class Desired(StrEnum):
    """What people want of an agent."""

    RUNNING = "running"
    STOPPED = "stopped"


class Presence(StrEnum):
    """How a service is."""

    ONLINE = "online"
    DEGRADED = "degraded"  # it runs, but something it needs does not answer
    OFFLINE = "offline"


class CardColumn(StrEnum):
    """Where a card of the board is, the most urgent first. It follows from facts: nobody moves a card."""

    NEEDS_YOU = "needs_you"  # the agent asks a person
    TROUBLE = "trouble"  # it can't go on, or nothing tells what it is doing
    LIMITED = "limited"  # its account's usage limit is reached
    WORKING = "working"
    WAITING = "waiting"  # for the next prompt
    STARTING = "starting"
    DONE = "done"
    STOPPED = "stopped"  # by a person, or it was never started


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

    def word(self) -> str:
        return self.status.value


class AnswerOption(BaseModel):
    """A row of a dialog that a key chooses."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    key: str
    text: str


class CardQuestion(BaseModel):
    """What an agent asks a person."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    since: AwareDatetime
    reason: str = Field(description="What it asks for.")
    dialog: str = Field(default="", description="The dialog on its screen, as far as it can be seen.")
    fingerprint: str = Field(default="", description="Tells this dialog from the next; an answer names it.")
    can: list[str] = Field(default=[], description="The commands that answer it: `approve`, `deny`.")
    options: list[AnswerOption] = Field(default=[], description="The rows that a key chooses, if it is a choice.")


class CardState(Data):
    """The card of an agent on the board as it is now."""

    card: Id
    agent: Id
    column: CardColumn
    since: AwareDatetime = Field(description="Since when it is in this column.")
    headline: str = Field(description="What the agent does, in a few words.")
    reason: str = Field(default="", description="By what that is known, for people.")
    question: CardQuestion | None = Field(default=None, description="What it asks a person, if it does.")
    role: str = ""
    loop: Id | None = Field(default=None, description="The loop that it plays its role in.")
    backend: Id
    model: str | None = Field(default=None, description="As the fleet file names it.")
    branch: str | None = Field(default=None, description="The git branch of its workspace.")
    workspace: str = ""
    status: str = Field(description="As in the agent's state; `not_started` if it never ran.")
    activity: Activity | None = None
    desired: Desired | None = None
    account: Id | None = Field(default=None, description="The account whose usage limit holds it.")
    limit: str | None = None
    limit_resets: AwareDatetime | None = None
    resumes: AwareDatetime | None = None
    last_words: str = Field(default="", description="The last line on its screen, if its program ended badly.")
    drifts: list[str] = Field(default=[], description="The kinds of drift that are open.")
    monitoring: bool = Field(default=True, description="False: a person has stopped monitoring it.")
    stopped_by: str | None = Field(default=None, description="Who stopped monitoring it.")
    stopped_at: AwareDatetime | None = None
    missed: int = Field(default=0, description="How many comments it did not get since then.")
    comments: int = Field(default=0, description="How many comments it has had.")
    notable: int = Field(default=0, description="How many of them were worth a person's attention.")
    spawn: Id | None = None
    session: str | None = None
    started: AwareDatetime | None = None

    def word(self) -> str:
        return self.column.value

    def sentence(self) -> str:
        stopped = f"; not monitored, stopped by {self.stopped_by}" if not self.monitoring else ""
        return self.headline + stopped


class ServiceState(Data):
    """A service as it is now; `offline` with the same connection number is its last will."""

    service: Id
    status: Presence
    connection: int = Field(description="Counts this service's connections; a will of an older one means nothing.")
    pid: int
    version: str
    reason: str = ""
    health: dict[str, Any] = Field(default={}, description="Figures: steps, errors, events not yet acknowledged, ….")

    def word(self) -> str:
        return self.status.value

    def sentence(self) -> str:
        return self.reason or f"pid {self.pid}, connection {self.connection}"


TONES: dict[Status | Activity | Presence, Tone] = {
    **dict.fromkeys((Status.RUNNING, Activity.WORKING, Activity.DONE, Presence.ONLINE), Tone.GOOD),
    **dict.fromkeys((Status.EXITED, Status.TERMINATED, Status.GAVE_UP, Presence.OFFLINE), Tone.BAD),
    **dict.fromkeys((Activity.NEEDS_APPROVAL, Activity.LIMITED, Activity.STALLED, Activity.FAILED), Tone.BAD),
}
"""The tone of each state; the others are neutral."""
