"""What happens in a loop, reported by handoff: each thing once."""

from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import AwareDatetime, Field

from shared.contract.envelope import Event, Tone, Urgency
from shared.contract.ids import Id


class LoopEvent(Event):
    """What happens in a loop."""

    loop: Id


class MatchedCommit(LoopEvent):
    """A commit whose subject matches a pattern of the loop."""

    pattern: Id = Field(description="The name of the pattern in the fleet file.")
    branch: str
    commit: str = Field(description="The whole id of the commit.")
    subject: str
    author: str
    committed: AwareDatetime
    to: list[Id] = Field(description="The agents that are told.")

    def sentence(self) -> str:
        return f"{self.author} committed {self.commit[:10]}: {self.subject}{_told(self.to)}"


class WorkClaimed(MatchedCommit):
    """A commit says that a piece of work is done, and waits to be looked at."""

    kind: Literal["claim"] = "claim"


class WorkReviewed(MatchedCommit):
    """A commit says what somebody thinks of a piece of work."""

    kind: Literal["review"] = "review"


class CommitMatched(MatchedCommit):
    """A commit matches a pattern that has another name than `claim` and `review`."""

    kind: Literal["commit"] = "commit"


class CommitsSummedUp(LoopEvent):
    """So many commits came at once that they are told in one: agents get one message, and not one for each."""

    kind: Literal["summary"] = "summary"
    branch: str
    commits: int = Field(ge=0, description="How many commits are new.")
    matched: dict[Id, int] = Field(description="How many of them match, by pattern.")
    first: str = Field(description="The oldest of those that match.")
    last: str = Field(description="The newest of those that match.")
    to: list[Id] = Field(description="The agents that are told.")

    def sentence(self) -> str:
        counts = ", ".join(f"{count} {pattern}" for pattern, count in self.matched.items())
        return f"{self.commits} new commits, of which {counts}, up to {self.last[:10]}{_told(self.to)}"


class InboxChanged(LoopEvent):
    """A message to somebody, in a file on the branch, was written or changed, or was taken away by its reader."""

    kind: Literal["inbox"] = "inbox"
    path: str
    change: Literal["changed", "consumed"]
    branch: str
    commit: str
    author: str
    to: list[Id] = Field(description="Whose it is; they are told when it was changed.")

    def sentence(self) -> str:
        if self.change == "changed":
            return f"{self.path} was changed by {self.author} in {self.commit[:10]}{_told(self.to)}"
        return f"{self.path} was taken away by {self.author} in {self.commit[:10]}: it was read"


class StatusSeen(LoopEvent):
    """What the status file says of the phase is another than before."""

    kind: Literal["status"] = "status"
    path: str
    commit: str
    done: bool
    said: str = Field(description="The line that decided it; empty: there is none.")
    reason: str

    def sentence(self) -> str:
        return f"{self.path} at {self.commit[:10]}: {self.reason}" + (f": {self.said}" if self.said else "")


class PhaseAdvanced(LoopEvent):
    """A phase began."""

    kind: Literal["phase_advanced"] = "phase_advanced"
    tone: ClassVar[Tone] = Tone.GOOD
    urgency: ClassVar[Urgency] = Urgency.NEWS

    phase: str
    number: int = Field(ge=1)
    phases: int = Field(ge=1)
    was: str | None = Field(default=None, description="The phase before; none: the loop begins.")
    reason: str

    def sentence(self) -> str:
        was = f" after {self.was}" if self.was else ""
        return f"phase {self.number} of {self.phases}, {self.phase}, begins{was}: {self.reason}"


class PhaseDone(LoopEvent):
    """The status file says that the phase is done, and the fleet file leaves it to people to go on."""

    kind: Literal["phase_done"] = "phase_done"
    urgency: ClassVar[Urgency] = Urgency.ACTION

    phase: str
    number: int = Field(ge=1)
    reason: str

    def sentence(self) -> str:
        return f"phase {self.number}, {self.phase}: {self.reason}; `muster phase next` goes on"


class SequenceCompleted(LoopEvent):
    """The last phase is done: the loop's agents are stopped."""

    kind: Literal["sequence_complete"] = "sequence_complete"
    tone: ClassVar[Tone] = Tone.GOOD
    urgency: ClassVar[Urgency] = Urgency.NEWS

    phases: int = Field(ge=1)
    on_complete: Id | None = Field(default=None, description="The task that is run now.")
    reason: str

    def sentence(self) -> str:
        then = f"; {self.on_complete} is run now" if self.on_complete else ""
        return f"all {self.phases} phases are done: {self.reason}{then}"


class KickedOff(LoopEvent):
    """An agent was given its part in a phase."""

    kind: Literal["kicked_off"] = "kicked_off"
    tone: ClassVar[Tone] = Tone.GOOD

    phase: str
    number: int = Field(ge=1)
    role: Id
    agent: Id
    model: str | None = Field(default=None, description="None: the agent's own.")

    def sentence(self) -> str:
        model = f" on {self.model}" if self.model else ""
        return f"{self.agent} plays {self.role} in phase {self.number}, {self.phase}{model}"


class KickoffFailed(LoopEvent):
    """An agent could not be given its part in a phase. It is tried again."""

    kind: Literal["kickoff_failed"] = "kickoff_failed"
    tone: ClassVar[Tone] = Tone.BAD
    urgency: ClassVar[Urgency] = Urgency.ACTION

    phase: str
    number: int = Field(ge=1)
    role: Id
    agent: Id
    reason: str

    def sentence(self) -> str:
        return f"{self.agent} could not be given its part in phase {self.number}, {self.phase}: {self.reason}"


class BranchRewritten(LoopEvent):
    """The branch no longer holds what was seen on it: somebody has pushed by force."""

    kind: Literal["rewritten"] = "rewritten"
    tone: ClassVar[Tone] = Tone.BAD
    urgency: ClassVar[Urgency] = Urgency.NEWS

    branch: str
    was: str
    now: str
    dropped: int = Field(ge=0, description="How many commits are no longer on it.")
    carried: int = Field(ge=0, description="How many of the new ones were told before, under another id.")
    reason: str

    def sentence(self) -> str:
        return f"{self.branch} was rewritten: {self.reason}"


class BranchGone(LoopEvent):
    """The remote answers, and has no such branch (any more)."""

    kind: Literal["branch_gone"] = "branch_gone"
    tone: ClassVar[Tone] = Tone.BAD
    urgency: ClassVar[Urgency] = Urgency.NEWS

    branch: str
    was: str | None = Field(default=None, description="What was last seen on it; none: it was never there.")

    def sentence(self) -> str:
        if self.was is None:
            return f"the remote has no branch {self.branch} yet"
        return f"the branch {self.branch} is gone; it was at {self.was[:10]}"


class RemoteUnreachable(LoopEvent):
    """The remote did not answer twice in a row. It is asked again, less often."""

    kind: Literal["remote_unreachable"] = "remote_unreachable"
    tone: ClassVar[Tone] = Tone.BAD
    urgency: ClassVar[Urgency] = Urgency.NEWS

    remote: str
    reason: str

    def sentence(self) -> str:
        return f"{self.remote}: {self.reason}"


class RemoteReachable(LoopEvent):
    """The remote answers again. What was pushed meanwhile is told now."""

    kind: Literal["remote_reachable"] = "remote_reachable"
    tone: ClassVar[Tone] = Tone.GOOD

    remote: str
    away_s: float

    def sentence(self) -> str:
        return f"{self.remote} answers again, after {self.away_s:.0f} s"


class MessageWaits(LoopEvent):
    """A message could not be given to its agent yet. It is not lost."""

    kind: Literal["message_waits"] = "message_waits"
    agent: Id
    reason: str

    def sentence(self) -> str:
        return f"a message waits for {self.agent}: {self.reason}"


class MessageDropped(LoopEvent):
    """A message could not be given to its agent, and is given up."""

    kind: Literal["message_dropped"] = "message_dropped"
    tone: ClassVar[Tone] = Tone.BAD
    urgency: ClassVar[Urgency] = Urgency.ACTION

    agent: Id
    text: str = Field(description="The beginning of it.")
    reason: str

    def sentence(self) -> str:
        return f"a message to {self.agent} is given up: {self.reason}"


def _told(agents: Sequence[str]) -> str:
    return f"; told to {', '.join(agents)}" if agents else ""
