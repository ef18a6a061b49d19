"""Makes events and messages of what was seen on a branch, and remembers it: all of one look in one transaction."""

from collections.abc import Iterator
from dataclasses import replace

from services.handoff.looking.sight import Sight
from services.handoff.loops import inboxes, matching
from services.handoff.loops.course import Course, is_stale_no_more
from services.handoff.loops.markers import Status, read_status
from services.handoff.loops.matching import Ping
from services.handoff.loops.wording import done_marker, of_loop, status_path
from services.handoff.memory import Seen
from services.handoff.round import Round
from shared.events import BranchGone, BranchRewritten, StatusSeen
from shared.fleet.loops import Loop

SAID_CHARACTERS = 300


def take_up(it: Round, address: str, sight: Sight) -> list[Ping]:
    """Tell what is new, and give what is to be said to whom. What is not new any more is passed over."""
    turn, memory, name, loop = it.turn, it.memory, it.name, it.loop
    known = memory.seen(name)
    if not _is_next(known, sight, address, loop):
        return []
    seen = known if known is not None else Seen(address, loop.branch)
    course = memory.course(name)
    values = of_loop(name, loop, course.number)
    pings: list[Ping] = []
    if sight.now is None:
        turn.tell(BranchGone(loop=name, branch=loop.branch, was=seen.tip if _is_of(seen, address, loop) else None))
        # What was seen is remembered: if the branch comes again, only what is new on it is told.
        tip = seen.tip if _is_of(seen, address, loop) else None
        memory.keep_seen(name, replace(seen, address=address, branch=loop.branch, tip=tip, is_gone=True))
        return []
    if sight.watch.is_known and sight.watch.seen != sight.now:
        before = seen.told if sight.rewritten else seen.lost
        matched = matching.match(loop, sight, before, values, name)
        if sight.rewritten:
            turn.tell(_rewritten(name, loop, sight, matched.carried))
        for event in matched.events:
            turn.tell(event)
        pings += matched.pings
        seen = seen.with_told(matched.keys, sight.dropped_keys)
    mail = inboxes.read(loop, sight, values, name)
    for change in mail.events:
        turn.tell(change)
    pings += mail.pings
    if sight.statuses is not None:
        course = _take_up_statuses(loop, course, sight)
        memory.keep_course(name, course)
        now_there = {path: versions[-1] for path, versions in sight.statuses.items()}
        seen = replace(seen, statuses={**seen.statuses, **now_there})
    memory.keep_seen(name, replace(seen, address=address, branch=loop.branch, tip=sight.now, is_gone=False))
    return pings


def tell_status(it: Round) -> None:
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
    it.turn.tell(StatusSeen(loop=name, path=path, commit=seen.tip or "", done=done, said=said, reason=reason))


def _is_of(seen: Seen, address: str, loop: Loop) -> bool:
    return (seen.address, seen.branch) == (address, loop.branch)


def _is_next(before: Seen | None, sight: Sight, address: str, loop: Loop) -> bool:
    """Whether it was looked at from where we are: a second look at the same, or one for an earlier edit, is not."""
    watch = sight.watch
    known = before if before is not None and _is_of(before, address, loop) else None
    if watch.branch != loop.branch or watch.is_known != (known is not None):
        return False
    return known is None or watch.seen == known.tip


def _rewritten(name: str, loop: Loop, sight: Sight, carried: int) -> BranchRewritten:
    if sight.forgotten:
        reason = "what was seen before is gone from the remote: what is there now counts as seen"
    else:
        told = f"; {carried} of the new ones were told before" if carried else ""
        reason = f"{sight.dropped} commits are no longer on {loop.branch}, {sight.total} are new{told}"
    was, now = sight.watch.seen or "", sight.now or ""
    return BranchRewritten(
        loop=name, branch=loop.branch, was=was, now=now, dropped=sight.dropped, carried=carried, reason=reason
    )


def _take_up_statuses(loop: Loop, course: Course, sight: Sight) -> Course:
    path = status_path(loop, course.number)
    for text in _versions(sight, path):
        course = is_stale_no_more(course, read_status(text, done_marker(loop, course.number)).markers)
    return course


def _versions(sight: Sight, path: str | None) -> Iterator[str]:
    yield from (sight.statuses or {}).get(path or "", ())


def _verdict(status: Status, course: Course) -> tuple[bool, str, str]:
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
