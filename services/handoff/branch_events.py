"""Makes events and messages of what was seen on a branch, and remembers it: all of one look in one transaction."""

from dataclasses import replace

from services.handoff.loops import branch_files as inboxes
from services.handoff.loops import commits as matching
from services.handoff.loops.branch_files import StatusFile, read_status
from services.handoff.loops.commits import Ping
from services.handoff.loops.phases import PhaseProgress, is_stale_no_more
from services.handoff.loops.templates import done_marker, names_its_phase, of_loop, status_path
from services.handoff.memory import BranchMemory, LoopTurn
from services.handoff.remotes.observation import BranchObservation
from shared.contract.events.loops import BranchGone, BranchRewritten, StatusSeen
from shared.fleet.loops import Loop

SAID_CHARACTERS = 300


def take_up(it: LoopTurn, address: str, sight: BranchObservation) -> list[Ping]:
    """Tell what is new, and give what is to be said to whom. What is not new any more is passed over."""
    known = it.memory.seen(it.name)
    if not _is_next(known, sight, address, it.loop):
        return []
    seen = known if known is not None and _is_of(known, address, it.loop) else _anew(known, address, it.loop)
    if sight.now is None:
        if not seen.is_gone:
            it.turn.emit(BranchGone(loop=it.name, branch=it.loop.branch, was=seen.tip))
        # What was seen is remembered: if the branch comes again, only what is new on it is told.
        nothing = dict.fromkeys(sight.watch.statuses, "")
        statuses = {**nothing, **seen.statuses}
        before = (sight.before or seen.before) if seen.tip is None else None
        it.memory.keep_seen(it.name, replace(seen, is_gone=True, before=before, statuses=statuses))
        return []
    values = of_loop(it.name, it.loop, it.memory.course(it.name).number)
    pings: list[Ping] = []
    if sight.watch.is_known and sight.watch.seen != sight.now:
        matched = matching.match(it.loop, sight, seen.told if sight.rewritten else seen.lost, values, it.name)
        if sight.rewritten:
            it.turn.emit(_rewritten(it, sight, matched.carried))
        for event in matched.events:
            it.turn.emit(event)
        pings += matched.pings
        seen = seen.with_told(matched.keys, sight.dropped_keys)
    mail = inboxes.read(it.loop, sight, values, it.name)
    for change in mail.events:
        it.turn.emit(change)
    pings += mail.pings
    if sight.statuses is not None:
        it.memory.keep_course(it.name, _with_statuses(it, seen, sight))
        now_there = {path: versions[-1] for path, versions in sight.statuses.items()}
        seen = replace(seen, statuses={**seen.statuses, **now_there})
    it.memory.keep_seen(it.name, replace(seen, tip=sight.now, is_gone=False, before=None, inbox=sight.watch.inbox))
    return pings


def _anew(known: BranchMemory | None, address: str, loop: Loop) -> BranchMemory:
    """Another branch, of which nothing is known; what was told of an earlier one is not told again."""
    return BranchMemory(address, loop.branch, told=known.told if known else (), lost=known.lost if known else ())


def tell_status(it: LoopTurn) -> None:
    """Say what the status file says of the phase, when that is another than before."""
    memory, name, loop = it.memory, it.name, it.loop
    seen, course = memory.seen(name), memory.course(name)
    path = status_path(loop, course.number)
    if seen is None or path is None or not course.number or course.complete:
        return
    done, said, reason = _verdict(read_status(seen.statuses.get(path, ""), done_marker(loop, course.number)), course)
    mark = f"{course.number}:{done}:{said}"
    if mark == seen.status_told or (not said and not seen.status_told.startswith(f"{course.number}:")):
        return
    memory.keep_seen(name, replace(seen, status_told=mark))
    it.turn.emit(StatusSeen(loop=name, path=path, commit=seen.tip or "", done=done, said=said, reason=reason))


def _is_of(seen: BranchMemory, address: str, loop: Loop) -> bool:
    return (seen.address, seen.branch) == (address, loop.branch)


def _is_next(before: BranchMemory | None, sight: BranchObservation, address: str, loop: Loop) -> bool:
    """Whether it was looked at from where we are: a second look at the same, or one for an earlier edit, is not."""
    watch = sight.watch
    known = before if before is not None and _is_of(before, address, loop) else None
    if (watch.remote, watch.branch) != (address, loop.branch) or watch.is_known != (known is not None):
        return False
    return known is None or watch.seen == known.tip


def _rewritten(it: LoopTurn, sight: BranchObservation, carried: int) -> BranchRewritten:
    branch = it.loop.branch
    if sight.forgotten:
        reason = "what was seen before is gone from the remote: what is there now counts as seen"
    else:
        told = f"; {carried} of the new ones were told before" if carried else ""
        reason = f"{sight.dropped} commits are no longer on {branch}, {sight.total} are new{told}"
    was, now = sight.watch.seen or "", sight.now or ""
    return BranchRewritten(
        loop=it.name, branch=branch, was=was, now=now, dropped=sight.dropped, carried=carried, reason=reason
    )


def _with_statuses(it: LoopTurn, seen: BranchMemory, sight: BranchObservation) -> PhaseProgress:
    """The course, by what its status file said on the way to what it says now."""
    course = it.memory.course(it.name)
    path, done = status_path(it.loop, course.number), done_marker(it.loop, course.number)
    versions = (sight.statuses or {}).get(path or "", ())
    if not versions:
        return course
    may_be_old = course.at_once or not names_its_phase(it.loop)
    if path not in seen.statuses and may_be_old:
        # A file that was never read: what stands in it may be of long before the phase.
        return replace(course, stale=tuple(read_status(versions[-1], done).markers))
    if (before := sight.statuses_before.get(path or "")) and may_be_old:
        course = replace(course, stale=tuple(read_status(before, done).markers))
    for text in versions:
        course = is_stale_no_more(course, read_status(text, done).markers)
    return course


def _verdict(status: StatusFile, course: PhaseProgress) -> tuple[bool, str, str]:
    fresh = [line for line in status.markers if line not in course.stale]
    if fresh:
        return True, fresh[0][:SAID_CHARACTERS], "the phase is done"
    if status.refused:
        line, why = status.refused[0]
        return False, line[:SAID_CHARACTERS], f"it does not count: {why}"
    if status.markers:
        said = status.markers[0][:SAID_CHARACTERS]
        return False, said, "it does not count: it stood there when the phase began"
    return False, "", "no line says that the phase is done"
