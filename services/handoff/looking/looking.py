"""One look at a remote: the cheap question first, and only where something moved what has come."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from services.handoff.looking.mirror import Mirror
from services.handoff.looking.sight import Commit, Sight, Touch, Watch

DROPPED_AT_MOST = 5_000
WRITERS_AT_MOST = 50
VERSIONS_AT_MOST = 20
"""So many versions of a status file are read at most, the newest ones: a phase ends by the last of them."""


def is_news(watch: Watch, tip: str | None) -> bool:
    """Whether there is more to know of a branch than what it points at."""
    if not watch.is_known or watch.is_gone != (tip is None):
        return True
    if tip is None:
        return False
    return watch.seen != tip or (bool(watch.statuses) and not watch.knows_statuses)


def needs_mirror(watch: Watch, tip: str | None) -> bool:
    """Whether that takes more than the answer to the cheap question."""
    if tip is None or not is_news(watch, tip):
        return False
    return watch.is_known or bool(watch.statuses or watch.inbox)


def look(watch: Watch, tip: str | None, mirror: Mirror | None) -> Sight:
    """What is new for a loop. The mirror has the branch as it is now; there is none where none is needed."""
    if tip is None or mirror is None:
        return Sight(watch.loop, watch, tip)
    if not watch.is_known:
        return _as_it_is(watch, tip, mirror)
    if watch.seen == tip:
        return replace(_as_it_is(replace(watch, inbox=()), tip, mirror), watch=watch)
    if watch.seen is not None and not mirror.has(watch.seen):
        return replace(_as_it_is(watch, tip, mirror), rewritten=True, forgotten=True)
    return _what_came(watch, tip, mirror)


def _as_it_is(watch: Watch, tip: str, mirror: Mirror) -> Sight:
    """A branch of which nothing was seen before: its commits are of the past, but who has mail has it still."""
    mail = mirror.differences(None, tip, _inbox(watch))
    writers = {path: commit for path in list(mail)[:WRITERS_AT_MOST] if (commit := mirror.last_commit(tip, path))}
    statuses = {path: _versions(mirror, tip, path, ()) for path in watch.statuses}
    return Sight(watch.loop, watch, tip, differs=mail, writers=writers, statuses=statuses)


def _inbox(watch: Watch) -> list[str]:
    return [f":(top,glob){path}" for path in watch.inbox]


def _what_came(watch: Watch, tip: str, mirror: Mirror) -> Sight:
    commits = mirror.commits(watch.seen, tip)
    rewritten = watch.seen is not None and mirror.fork_point(watch.seen, tip) != watch.seen
    dropped: Sequence[Commit] = ()
    count = 0
    if watch.seen is not None and rewritten:
        dropped = mirror.commits(tip, watch.seen, DROPPED_AT_MOST)
        count = mirror.count(tip, watch.seen)
    paths = [*_inbox(watch), *(f":(top,literal){path}" for path in watch.statuses)]
    touches = mirror.touches(commits, paths)
    differs = mirror.differences(watch.seen, tip, paths)
    changed = {*differs, *(touch.path for touch in touches)} if watch.knows_statuses else set(watch.statuses)
    return Sight(
        loop=watch.loop,
        watch=watch,
        now=tip,
        commits=commits,
        total=len(commits) if len(commits) < 1000 else mirror.count(watch.seen, tip),
        rewritten=rewritten,
        dropped=count,
        dropped_keys=frozenset(commit.key for commit in dropped),
        touches=touches,
        differs=differs,
        statuses={path: _versions(mirror, tip, path, touches) for path in watch.statuses if path in changed},
    )


def _versions(mirror: Mirror, tip: str, path: str, touches: Sequence[Touch]) -> tuple[str, ...]:
    """What a file said on its way to what it says now, which comes last."""
    blobs = [touch.blob for touch in touches if touch.path == path][-VERSIONS_AT_MOST:]
    blobs.append(mirror.blob_at(tip, path))
    texts: Mapping[str | None, str] = {blob: mirror.text(blob) if blob else "" for blob in dict.fromkeys(blobs)}
    return tuple(texts[blob] for blob in blobs)
