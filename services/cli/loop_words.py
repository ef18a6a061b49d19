"""What a person wants to know of an event of a loop beside its kind. Pure."""

from collections.abc import Sequence

from shared.events import (
    BranchGone,
    BranchRewritten,
    CommitsSummedUp,
    InboxChanged,
    KickedOff,
    KickoffFailed,
    LoopEvent,
    MatchedCommit,
    MessageDropped,
    MessageWaits,
    PhaseAdvanced,
    PhaseDone,
    RemoteReachable,
    RemoteUnreachable,
    SequenceCompleted,
    StatusSeen,
)


def describe_loop(event: LoopEvent) -> str:  # noqa: PLR0912 - a branch for each kind
    match event:
        case MatchedCommit():
            return f"{event.author} committed {event.commit[:10]}: {event.subject}{_told(event.to)}"
        case CommitsSummedUp():
            counts = ", ".join(f"{count} {pattern}" for pattern, count in event.matched.items())
            return f"{event.commits} new commits, of which {counts}, up to {event.last[:10]}{_told(event.to)}"
        case InboxChanged(change="changed"):
            return f"{event.path} was changed by {event.author} in {event.commit[:10]}{_told(event.to)}"
        case InboxChanged():
            return f"{event.path} was taken away by {event.author} in {event.commit[:10]}: it was read"
        case StatusSeen():
            return f"{event.path} at {event.commit[:10]}: {event.reason}" + (f": {event.said}" if event.said else "")
        case PhaseAdvanced():
            was = f" after {event.was}" if event.was else ""
            return f"phase {event.number} of {event.phases}, {event.phase}, begins{was}: {event.reason}"
        case PhaseDone():
            return f"phase {event.number}, {event.phase}: {event.reason}; `muster phase next` goes on"
        case SequenceCompleted():
            then = f"; {event.on_complete} is run now" if event.on_complete else ""
            return f"all {event.phases} phases are done: {event.reason}{then}"
        case KickedOff():
            model = f" on {event.model}" if event.model else ""
            return f"{event.agent} plays {event.role} in phase {event.number}, {event.phase}{model}"
        case KickoffFailed():
            return f"{event.agent} could not be given its part in phase {event.number}, {event.phase}: {event.reason}"
        case BranchRewritten():
            return f"{event.branch} was rewritten: {event.reason}"
        case BranchGone(was=None):
            return f"the remote has no branch {event.branch} yet"
        case BranchGone():
            return f"the branch {event.branch} is gone; it was at {(event.was or '')[:10]}"
        case RemoteUnreachable():
            return f"{event.remote}: {event.reason}"
        case RemoteReachable():
            return f"{event.remote} answers again, after {event.away_s:.0f} s"
        case MessageWaits():
            return f"a message waits for {event.agent}: {event.reason}"
        case MessageDropped():
            return f"a message to {event.agent} is given up: {event.reason}"
        case _:
            return ""


def _told(agents: Sequence[str]) -> str:
    return f"; told to {', '.join(agents)}" if agents else ""
