"""One look at a remote branch: a cheap question first, commits only where something moved; and when to look next."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from services.handoff.remotes.mirror import Mirror
from services.handoff.remotes.observation import HEAD, BranchObservation, BranchWatch, Commit, FileChange, Tips

SOON_S = 5.0
"""After a first failure: most are over by then, and nobody needs to hear of them."""
LONGEST_S = 300.0
TELLS_AFTER = 2
"""So many failures in a row are told."""


@dataclass(frozen=True)
class LookInterval:
    """How a remote has answered so far."""

    due: float = 0.0
    failures: int = 0

    def succeeded(self, now: float, poll_s: float) -> "LookInterval":
        return LookInterval(now + poll_s)

    def failed(self, now: float, poll_s: float) -> "LookInterval":
        failures = self.failures + 1
        wait_s = min(SOON_S, poll_s) if failures < TELLS_AFTER else poll_s * 2.0 ** min(failures - 1, 16)
        return LookInterval(now + min(wait_s, max(LONGEST_S, poll_s)), failures)


DROPPED_AT_MOST = 5_000
WRITERS_AT_MOST = 50
PATCHES_AT_MOST = 100
LINE_AT_MOST, VERSIONS_AT_MOST = 200, 20
"""So far back the branch is followed, and so many versions of a status file are read: a phase ends by the last one."""


def is_news(watch: BranchWatch, tips: Tips) -> bool:
    """Whether there is more to know of a branch than what it points at."""
    tip = tips.get(watch.branch)
    if not watch.is_known or watch.is_gone != (tip is None):
        return True
    if tip is None:
        return watch.never_came and tips.get(HEAD) not in (None, watch.before)
    return watch.seen != tip or bool(watch.new_inbox) or (bool(watch.statuses) and not watch.knows_statuses)


def needs_mirror(watch: BranchWatch, tips: Tips) -> bool:
    """Whether that takes more than the answer to the cheap question. What is seen first is fetched too: when history is
    rewritten next, it must be known what was there."""
    return tips.get(watch.branch) is not None and is_news(watch, tips)


def needs_head(watch: BranchWatch, tips: Tips) -> bool:
    """Whether the mirror must also have what the remote's HEAD points at, to tell what of a branch is not new."""
    return watch.before is not None and tips.get(HEAD) is not None and needs_mirror(watch, tips)


def look(watch: BranchWatch, tips: Tips, mirror: Mirror | None) -> BranchObservation:
    """What is new for a loop. The mirror has the branch as it is now; there is none where none is needed."""
    tip = tips.get(watch.branch)
    if tip is None or mirror is None:
        return BranchObservation(watch.loop, watch, tip, before=tips.get(HEAD))
    if not watch.is_known:
        return _as_it_is(watch, watch.inbox, tip, mirror)
    if watch.seen == tip:
        return _as_it_is(watch, watch.new_inbox, tip, mirror)
    if watch.before is not None and (before := _had(mirror, watch.before, tips.get(HEAD))) is not None:
        return _what_came_with_it(watch, before, tip, mirror)
    if watch.seen is not None and not mirror.has(watch.seen):
        return replace(_as_it_is(watch, watch.inbox, tip, mirror), rewritten=True, forgotten=True)
    return _what_came(watch, tip, mirror)


def _as_it_is(watch: BranchWatch, inbox: Sequence[str], tip: str, mirror: Mirror) -> BranchObservation:
    """A branch of which nothing was seen before: its commits are of the past, but who has mail has it still."""
    mail, writers = _mail(inbox, tip, mirror)
    statuses = {path: _versions(mirror, [tip], path) for path in watch.statuses}
    return BranchObservation(watch.loop, watch, tip, differs=mail, writers=writers, statuses=statuses)


def _mail(inbox: Sequence[str], tip: str, mirror: Mirror) -> tuple[dict[str, str | None], dict[str, Commit]]:
    """All that lies in an inbox, and who wrote it."""
    mail = mirror.differences(None, tip, _globs(inbox))
    writers = {path: commit for path in list(mail)[:WRITERS_AT_MOST] if (commit := mirror.last_commit(tip, path))}
    return mail, writers


def _had(mirror: Mirror, *commits: str | None) -> str | None:
    """The first of them that the mirror has. What HEAD was may be gone from the remote: then what it is now will do."""
    return next((each for each in commits if each is not None and mirror.has(each)), None)


def _what_came_with_it(watch: BranchWatch, before: str, tip: str, mirror: Mirror) -> BranchObservation:
    """A branch that was waited for: its commits are new but for those that were there before it, and who has mail on it
    has it still."""
    commits = mirror.commits(before, tip)
    cut_off = mirror.fork_point(before, tip)
    line = mirror.line_of(before, tip, LINE_AT_MOST) if watch.statuses else []
    line += [tip] if tip not in line else []
    mail, writers = _mail(watch.inbox, tip, mirror)
    return BranchObservation(
        loop=watch.loop,
        watch=watch,
        now=tip,
        commits=_with_patches(watch, commits, mirror),
        total=_total(commits, before, tip, mirror),
        differs=mail,
        writers=writers,
        statuses={path: _versions(mirror, line, path) for path in watch.statuses},
        statuses_before={path: _versions(mirror, [cut_off], path)[-1] for path in watch.statuses} if cut_off else {},
    )


def _what_came(watch: BranchWatch, tip: str, mirror: Mirror) -> BranchObservation:
    commits = mirror.commits(watch.seen, tip)
    rewritten = watch.seen is not None and mirror.fork_point(watch.seen, tip) != watch.seen
    dropped: Sequence[Commit] = ()
    count = 0
    if watch.seen is not None and rewritten:
        dropped = _with_patches(watch, mirror.commits(tip, watch.seen, DROPPED_AT_MOST), mirror)
        count = mirror.count(tip, watch.seen)
    paths = [*_globs(watch.inbox), *(f":(top,literal){path}" for path in watch.statuses)]
    touches = mirror.touches(commits, paths)
    differs = mirror.differences(watch.seen, tip, paths)
    # Where history was rewritten, what touched them are the same commits under other ids.
    there = _as_they_were(mirror, tip, touches, differs) if not rewritten else {}
    mail = mirror.differences(None, tip, _globs(watch.new_inbox))
    changed = {*differs, *(touch.path for touch in touches)} if watch.knows_statuses else set(watch.statuses)
    line = mirror.line_of(watch.seen, tip, LINE_AT_MOST) if changed.intersection(watch.statuses) else []
    line += [tip] if tip not in line else []
    return BranchObservation(
        loop=watch.loop,
        watch=watch,
        now=tip,
        commits=_with_patches(watch, commits, mirror),
        total=_total(commits, watch.seen, tip, mirror),
        rewritten=rewritten,
        dropped=count,
        dropped_keys=frozenset(commit.key for commit in dropped),
        touches=touches,
        differs={**mail, **there, **differs},
        statuses={path: _versions(mirror, line, path) for path in watch.statuses if path in changed},
    )


def _total(commits: Sequence[Commit], after: str | None, tip: str, mirror: Mirror) -> int:
    """Of very many not all are read."""
    return len(commits) if len(commits) < 1000 else mirror.count(after, tip)


def _globs(paths: Iterable[str]) -> list[str]:
    return [f":(top,glob){path}" for path in paths]


def _with_patches(watch: BranchWatch, commits: Sequence[Commit], mirror: Mirror) -> tuple[Commit, ...]:
    """With what each of those changes that may be told: only by that an amended one is another than it was."""
    matches = [each.sha for each in commits if any(re.search(subject, each.subject) for subject in watch.subjects)]
    patches = mirror.patch_ids(matches[-PATCHES_AT_MOST:]) if matches else {}
    return tuple(replace(each, patch=patches.get(each.sha, "")) for each in commits)


def _as_they_were(
    mirror: Mirror, tip: str, touches: Sequence[FileChange], differs: dict[str, str | None]
) -> dict[str, str | None]:
    """Files that commits touched and that are as they were: taken away and written again, say, or only on the side."""
    paths = [path for path in dict.fromkeys(touch.path for touch in touches) if path not in differs]
    asked = [path for path in paths if "\n" not in path]
    return dict(zip(asked, mirror.blobs([(tip, path) for path in asked]), strict=True))


def _versions(mirror: Mirror, line: Sequence[str], path: str) -> tuple[str, ...]:
    """What a file said on the branch's way to what it says now, which comes last."""
    blobs = mirror.blobs([(commit, path) for commit in line])
    changes = [blob for at, blob in enumerate(blobs) if at == 0 or blob != blobs[at - 1]][-VERSIONS_AT_MOST:]
    texts = {blob: mirror.text(blob) if blob else "" for blob in dict.fromkeys(changes)}
    return tuple(texts[blob] for blob in changes)
