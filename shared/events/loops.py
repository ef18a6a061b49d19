"""What happens in a loop that git drives, as handoff tells it: each thing once."""

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field

from shared.events.envelope import Event
from shared.ids import Id


class LoopEvent(Event):
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


class InboxChanged(LoopEvent):
    """A message to somebody, in a file on the branch, was written or changed, or was taken away by its reader."""

    kind: Literal["inbox"] = "inbox"
    path: str
    change: Literal["changed", "consumed"]
    branch: str
    commit: str
    author: str
    to: list[Id] = Field(description="Whose it is; they are told when it was changed.")


class StatusSeen(LoopEvent):
    """What the status file says of the phase is another than before."""

    kind: Literal["status"] = "status"
    path: str
    commit: str
    done: bool
    said: str = Field(description="The line that decided it; empty: there is none.")
    reason: str


class PhaseAdvanced(LoopEvent):
    """A phase began."""

    kind: Literal["phase_advanced"] = "phase_advanced"
    phase: str
    number: int = Field(ge=1)
    phases: int = Field(ge=1)
    was: str | None = Field(default=None, description="The phase before; none: the loop begins.")
    reason: str


class PhaseDone(LoopEvent):
    """The status file says that the phase is done, and the fleet file leaves it to people to go on."""

    kind: Literal["phase_done"] = "phase_done"
    phase: str
    number: int = Field(ge=1)
    reason: str


class SequenceCompleted(LoopEvent):
    """The last phase is done: the loop's agents are stopped."""

    kind: Literal["sequence_complete"] = "sequence_complete"
    phases: int = Field(ge=1)
    on_complete: Id | None = Field(default=None, description="The task that is run now.")
    reason: str


class KickedOff(LoopEvent):
    """An agent was given its part in a phase."""

    kind: Literal["kicked_off"] = "kicked_off"
    phase: str
    number: int = Field(ge=1)
    role: Id
    agent: Id
    model: str | None = Field(default=None, description="None: the agent's own.")


class KickoffFailed(LoopEvent):
    """An agent could not be given its part in a phase. It is tried again."""

    kind: Literal["kickoff_failed"] = "kickoff_failed"
    phase: str
    number: int = Field(ge=1)
    role: Id
    agent: Id
    reason: str


class BranchRewritten(LoopEvent):
    """The branch no longer holds what was seen on it: somebody has pushed by force."""

    kind: Literal["rewritten"] = "rewritten"
    branch: str
    was: str
    now: str
    dropped: int = Field(ge=0, description="How many commits are no longer on it.")
    carried: int = Field(ge=0, description="How many of the new ones were told before, under another id.")
    reason: str


class BranchGone(LoopEvent):
    """The remote answers, and has no such branch (any more)."""

    kind: Literal["branch_gone"] = "branch_gone"
    branch: str
    was: str | None = Field(default=None, description="What was last seen on it; none: it was never there.")


class RemoteUnreachable(LoopEvent):
    """The remote did not answer twice in a row. It is asked again, less often."""

    kind: Literal["remote_unreachable"] = "remote_unreachable"
    remote: str
    reason: str


class RemoteReachable(LoopEvent):
    """The remote answers again. What was pushed meanwhile is told now."""

    kind: Literal["remote_reachable"] = "remote_reachable"
    remote: str
    away_s: float


class MessageWaits(LoopEvent):
    """A message could not be given to its agent yet. It is not lost."""

    kind: Literal["message_waits"] = "message_waits"
    agent: Id
    reason: str


class MessageDropped(LoopEvent):
    """A message could not be given to its agent, and is given up."""

    kind: Literal["message_dropped"] = "message_dropped"
    agent: Id
    text: str = Field(description="The beginning of it.")
    reason: str


LoopHappening = Annotated[
    WorkClaimed
    | WorkReviewed
    | CommitMatched
    | CommitsSummedUp
    | InboxChanged
    | StatusSeen
    | PhaseAdvanced
    | PhaseDone
    | SequenceCompleted
    | KickedOff
    | KickoffFailed
    | BranchRewritten
    | BranchGone
    | RemoteUnreachable
    | RemoteReachable
    | MessageWaits
    | MessageDropped,
    Field(discriminator="kind"),
]
