"""What was done to an agent's session, reported by the spawner.

Two services see an agent die, and each event has one author. The spawner owns sessions, so it reports the end of a
program that it started (`exited`), with the exit status, and what it does about it. The reconciler compares the record
with tmux, so it reports a session that vanished (`missing`) or whose program ended (`pane_dead`), also without a
spawner. Each leaves time for the other: the spawner keeps a dead pane for a moment, so that tmux learns the exit status
and the reconciler can see the pane; the reconciler reports nothing while a command about the agent is under way, or
while the record lacks an event of the spawner.
"""

from typing import ClassVar, Literal

from pydantic import Field

from shared.contract.envelope import AgentEvent, Tone, Urgency
from shared.contract.ids import Id


class LifecycleEvent(AgentEvent):
    """What was done to an agent's session."""


class SessionStarted(LifecycleEvent):
    """The facts about a session that was just started or adopted."""

    tone: ClassVar[Tone] = Tone.GOOD

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

    def sentence(self) -> str:
        return f"session {self.session}, pid {self.pid}, in {self.workspace}"


class AgentSpawned(SessionStarted):
    """A session was started for the agent."""

    kind: Literal["spawned"] = "spawned"


class AgentRestarted(SessionStarted):
    """A new session replaced one that ended."""

    kind: Literal["restarted"] = "restarted"
    urgency: ClassVar[Urgency] = Urgency.NEWS

    replaces: Id | None = None
    reason: str
    attempt: int = Field(
        ge=0, description="How many restarts in the burst window, this one included; 0 when asked for."
    )

    def sentence(self) -> str:
        return f"{self.reason}; session {self.session}, pid {self.pid}, attempt {self.attempt}"


class AgentResumed(SessionStarted):
    """A session was started on request to continue an earlier conversation."""

    kind: Literal["resumed"] = "resumed"
    reason: str

    def sentence(self) -> str:
        return f"{self.reason}; conversation {self.conversation or 'the newest'}, session {self.session}"


class AgentAdopted(SessionStarted):
    """A session that somebody else had started is kept as an agent from now on."""

    kind: Literal["adopted"] = "adopted"


class AgentStopped(LifecycleEvent):
    """The agent's session was ended on request."""

    kind: Literal["stopped"] = "stopped"
    spawn: Id | None = None
    reason: str
    for_now: bool = Field(default=False, description="Only until the services are started again: it is still wanted.")


class AgentExited(LifecycleEvent):
    """The agent's program ended by itself."""

    kind: Literal["exited"] = "exited"
    tone: ClassVar[Tone] = Tone.BAD

    spawn: Id
    exit_status: int | None = None
    last_words: str = Field(default="", description="The last line on its screen, where it did not end well.")

    def sentence(self) -> str:
        words = f"; its last words: {self.last_words}" if self.last_words else ""
        return f"its program ended with status {self.exit_status}{words}"


class AgentGaveUp(LifecycleEvent):
    """The agent died more often than its restart policy allows; it stays down until a person starts it."""

    kind: Literal["gave_up"] = "gave_up"
    tone: ClassVar[Tone] = Tone.BAD
    urgency: ClassVar[Urgency] = Urgency.ACTION

    reason: str


class AgentDeleted(LifecycleEvent):
    """The agent's record is no longer kept."""

    kind: Literal["deleted"] = "deleted"
    spawn: Id | None = None
    reason: str
    session_left: bool = Field(default=False, description="Its session goes on, and nobody keeps it.")
    purged: str | None = Field(default=None, description="The file of its conversation that was removed.")

    def sentence(self) -> str:
        left = "; its session goes on" if self.session_left else ""
        return self.reason + left + (f"; removed {self.purged}" if self.purged else "")


class AgentSent(LifecycleEvent):
    """A text was typed into the agent's input box and submitted, or keys were pressed."""

    kind: Literal["sent"] = "sent"
    tone: ClassVar[Tone] = Tone.GOOD

    spawn: Id
    what: Literal["text", "prompt", "keys", "interrupt", "approve", "deny", "answer"]
    size: int = Field(ge=0, description="Bytes of the text, or how many keys.")
    confirmed: Literal["transcript", "screen", "none"] = Field(description="By what it is known to have arrived.")
    reason: str

    def sentence(self) -> str:
        size = f"{self.size} bytes" if self.what in ("text", "prompt") else f"{self.size} keys"
        return f"{self.what}, {size}; {self.reason}; confirmed by {self.confirmed}"
