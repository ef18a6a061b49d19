"""Turns what was observed on a branch into events and messages, and remembers it: one observation, one transaction."""

from dataclasses import replace

from services.handoff.loop_turn import BRANCHES, BranchMemory, LoopTurn
from services.handoff.loops.branch_files import StatusFile, inbox_news, read_status
from services.handoff.loops.commits import OutgoingMessage, match
from services.handoff.loops.phases import PROGRESS, PhaseProgress, without_removed_lines
from services.handoff.loops.templates import done_pattern, names_its_phase, status_path, values_of
from services.handoff.remotes.observation import BranchObservation
from shared.contract.events.loops import BranchGone, BranchRewritten, StatusSeen

LINE_CHARACTERS = 300


def report_branch(loop: LoopTurn, observation: BranchObservation) -> list[OutgoingMessage]:
    """Report what is new, and return the messages to agents. An outdated observation is ignored."""
    if not _is_next(loop, observation):
        return []
    branch = loop.known_branch or _new_branch(loop)
    if observation.tip is None:
        _report_gone(loop, branch, observation)
        return []
    values = values_of(loop.name, loop.declared, loop.progress.number)
    messages: list[OutgoingMessage] = []
    if observation.watch.is_known and observation.watch.tip != observation.tip:
        reported = branch.reported if observation.rewritten else branch.dropped
        matched = match(loop.declared, observation, reported, values, loop.name)
        if observation.rewritten:
            loop.turn.emit(_rewritten(loop, observation, matched.carried))
        for event in matched.events:
            loop.turn.emit(event)
        messages += matched.messages
        branch = branch.with_reported(matched.keys, observation.dropped_keys)
    news = inbox_news(loop.declared, observation, values, loop.name)
    for change in news.events:
        loop.turn.emit(change)
    messages += news.messages
    if observation.statuses is not None:
        progress = _with_statuses(loop, branch, observation)
        if progress != loop.progress:
            loop.put(PROGRESS, progress)
        latest = {path: versions[-1] for path, versions in observation.statuses.items()}
        branch = replace(branch, statuses={**branch.statuses, **latest})
    inbox = observation.watch.inbox
    loop.put(BRANCHES, replace(branch, tip=observation.tip, is_gone=False, head=None, inbox=inbox))
    return messages


def report_status(loop: LoopTurn) -> None:
    """Report what the status file says about the phase, when that has changed."""
    branch, progress = loop.branch, loop.progress
    path = status_path(loop.declared, progress.number)
    if branch is None or path is None or not progress.number or progress.complete:
        return
    status = read_status(branch.statuses.get(path, ""), done_pattern(loop.declared, progress.number))
    done, line, reason = _assessment(status, progress)
    summary = f"{progress.number}:{done}:{line}"
    is_first = not branch.status_reported.startswith(f"{progress.number}:")
    if summary == branch.status_reported or (not line and is_first):
        return
    loop.put(BRANCHES, replace(branch, status_reported=summary))
    commit = branch.tip or ""
    loop.turn.emit(StatusSeen(loop=loop.name, path=path, commit=commit, done=done, said=line, reason=reason))


def _is_next(loop: LoopTurn, observation: BranchObservation) -> bool:
    """Whether it continues what is remembered: not one that was already reported, nor one for an earlier fleet file."""
    watch, known = observation.watch, loop.known_branch
    if (watch.remote, watch.branch) != (loop.address, loop.declared.branch) or watch.is_known != (known is not None):
        return False
    return known is None or watch.tip == known.tip


def _new_branch(loop: LoopTurn) -> BranchMemory:
    """A branch that was never observed. Commits that were reported on an earlier branch are not reported again."""
    new, earlier = BranchMemory(loop.address, loop.declared.branch), loop.branch
    return replace(new, reported=earlier.reported, dropped=earlier.dropped) if earlier is not None else new


def _report_gone(loop: LoopTurn, branch: BranchMemory, observation: BranchObservation) -> None:
    """The tip stays remembered: if the branch comes again, only what is new on it is reported."""
    if not branch.is_gone:
        loop.turn.emit(BranchGone(loop=loop.name, branch=loop.declared.branch, was=branch.tip))
    statuses = {**dict.fromkeys(observation.watch.statuses, ""), **branch.statuses}
    head = (observation.head or branch.head) if branch.tip is None else None
    loop.put(BRANCHES, replace(branch, is_gone=True, head=head, statuses=statuses))


def _rewritten(loop: LoopTurn, observation: BranchObservation, carried: int) -> BranchRewritten:
    branch, dropped = loop.declared.branch, observation.dropped
    if observation.lost_tip:
        reason = "what was seen before is gone from the remote: what is there now counts as seen"
    else:
        again = f"; {carried} of the new ones were told before" if carried else ""
        reason = f"{dropped} commits are no longer on {branch}, {observation.total} are new{again}"
    was, now = observation.watch.tip or "", observation.tip or ""
    return BranchRewritten(
        loop=loop.name, branch=branch, was=was, now=now, dropped=dropped, carried=carried, reason=reason
    )


def _with_statuses(loop: LoopTurn, branch: BranchMemory, observation: BranchObservation) -> PhaseProgress:
    """The progress after every version of the phase's status file."""
    declared, progress = loop.declared, loop.progress
    path, done = status_path(declared, progress.number), done_pattern(declared, progress.number)
    versions = (observation.statuses or {}).get(path or "", ())
    if not versions:
        return progress
    may_be_old = progress.at_once or not names_its_phase(declared)
    if path not in branch.statuses and may_be_old:
        # A file that was never read: its lines may be older than the phase.
        return replace(progress, stale=read_status(versions[-1], done).done_lines)
    if (at_fork := observation.statuses_at_fork.get(path or "")) and may_be_old:
        progress = replace(progress, stale=read_status(at_fork, done).done_lines)
    for text in versions:
        progress = without_removed_lines(progress, read_status(text, done).done_lines)
    return progress


def _assessment(status: StatusFile, progress: PhaseProgress) -> tuple[bool, str, str]:
    """Whether the phase is done, the line that says so or looks like it, and the reason."""
    fresh = [line for line in status.done_lines if line not in progress.stale]
    if fresh:
        return True, fresh[0][:LINE_CHARACTERS], "the phase is done"
    if status.refused:
        line, why = status.refused[0]
        return False, line[:LINE_CHARACTERS], f"it does not count: {why}"
    if status.done_lines:
        line = status.done_lines[0][:LINE_CHARACTERS]
        return False, line, "it does not count: it stood there when the phase began"
    return False, "", "no line says that the phase is done"
