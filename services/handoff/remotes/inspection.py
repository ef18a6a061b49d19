"""Inspects one remote branch: whether its tip is news, and what is new since it was last observed."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from services.handoff.remotes.mirror import Mirror
from services.handoff.remotes.observation import HEAD, BranchObservation, BranchWatch, Commit, FileChange, Tips

DROPPED_AT_MOST = 5_000
LAST_COMMITS_AT_MOST = 50
PATCHES_AT_MOST = 100
LINE_AT_MOST, VERSIONS_AT_MOST = 200, 20
"""How far back the branch is followed, and how many versions of a status file are read."""


def is_news(watch: BranchWatch, tips: Tips) -> bool:
    """Whether the tips say anything about the branch that its loop does not know."""
    tip = tips.get(watch.branch)
    if not watch.is_known or watch.is_gone != (tip is None):
        return True
    if tip is None:
        return watch.never_existed and tips.get(HEAD) not in (None, watch.head)
    return watch.tip != tip or bool(watch.new_inbox) or (bool(watch.statuses) and not watch.knows_statuses)


def needs_mirror(watch: BranchWatch, tips: Tips) -> bool:
    """Whether the news must be fetched. A first observation is fetched too: a later rewrite is compared with it."""
    return tips.get(watch.branch) is not None and is_news(watch, tips)


def needs_head(watch: BranchWatch, tips: Tips) -> bool:
    """Whether the remote's HEAD must be fetched too, to tell which commits of a branch that appeared are not new."""
    return watch.head is not None and tips.get(HEAD) is not None and needs_mirror(watch, tips)


def inspect(watch: BranchWatch, tips: Tips, mirror: Mirror | None) -> BranchObservation:
    """What is new for a loop. The mirror has the branch as it is now; None where none is needed."""
    tip = tips.get(watch.branch)
    if tip is None or mirror is None:
        return BranchObservation(watch.loop, watch, tip, head=tips.get(HEAD))
    if not watch.is_known:
        return _snapshot(watch, watch.inbox, tip, mirror)
    if watch.tip == tip:
        return _snapshot(watch, watch.new_inbox, tip, mirror)
    if watch.head is not None:
        # The HEAD of before may be gone from the remote: then the one of now will do.
        for head in (watch.head, tips.get(HEAD)):
            if head is not None and mirror.has(head):
                return _appeared(watch, head, tip, mirror)
    if watch.tip is not None and not mirror.has(watch.tip):
        return replace(_snapshot(watch, watch.inbox, tip, mirror), rewritten=True, lost_tip=True)
    return _moved(watch, tip, mirror)


def _snapshot(watch: BranchWatch, inbox: Sequence[str], tip: str, mirror: Mirror) -> BranchObservation:
    """The branch as it is, with nothing new but the given inbox files."""
    files, last_commits = _inbox_files(inbox, tip, mirror)
    statuses = {path: _versions(mirror, [tip], path) for path in watch.statuses}
    return BranchObservation(watch.loop, watch, tip, files=files, last_commits=last_commits, statuses=statuses)


def _inbox_files(inbox: Sequence[str], tip: str, mirror: Mirror) -> tuple[dict[str, str | None], dict[str, Commit]]:
    """All inbox files, and the latest commit of each."""
    files = mirror.differences(None, tip, _globs(inbox))
    paths = list(files)[:LAST_COMMITS_AT_MOST]
    return files, {path: commit for path in paths if (commit := mirror.last_commit(tip, path))}


def _appeared(watch: BranchWatch, head: str, tip: str, mirror: Mirror) -> BranchObservation:
    """A branch that did not exist before: its inbox files are new, and its commits but for those of the HEAD."""
    commits = mirror.commits(head, tip)
    fork = mirror.fork_point(head, tip)
    line = mirror.first_parents(head, tip, LINE_AT_MOST) if watch.statuses else []
    line += [tip] if tip not in line else []
    files, last_commits = _inbox_files(watch.inbox, tip, mirror)
    return BranchObservation(
        loop=watch.loop,
        watch=watch,
        tip=tip,
        commits=_with_patches(watch, commits, mirror),
        total=_total(commits, head, tip, mirror),
        files=files,
        last_commits=last_commits,
        statuses={path: _versions(mirror, line, path) for path in watch.statuses},
        statuses_at_fork={path: _versions(mirror, [fork], path)[-1] for path in watch.statuses} if fork else {},
    )


def _moved(watch: BranchWatch, tip: str, mirror: Mirror) -> BranchObservation:
    commits = mirror.commits(watch.tip, tip)
    rewritten = watch.tip is not None and mirror.fork_point(watch.tip, tip) != watch.tip
    dropped: Sequence[Commit] = ()
    count = 0
    if watch.tip is not None and rewritten:
        dropped = _with_patches(watch, mirror.commits(tip, watch.tip, DROPPED_AT_MOST), mirror)
        count = mirror.count(tip, watch.tip)
    paths = [*_globs(watch.inbox), *(f":(top,literal){path}" for path in watch.statuses)]
    file_changes = mirror.file_changes(commits, paths)
    differing = mirror.differences(watch.tip, tip, paths)
    # After a rewrite, the same commits touch files again under other ids.
    touched = _unchanged_files(mirror, tip, file_changes, differing) if not rewritten else {}
    new_inbox = mirror.differences(None, tip, _globs(watch.new_inbox))
    changed = {*differing, *(change.path for change in file_changes)} if watch.knows_statuses else set(watch.statuses)
    line = mirror.first_parents(watch.tip, tip, LINE_AT_MOST) if changed.intersection(watch.statuses) else []
    line += [tip] if tip not in line else []
    return BranchObservation(
        loop=watch.loop,
        watch=watch,
        tip=tip,
        commits=_with_patches(watch, commits, mirror),
        total=_total(commits, watch.tip, tip, mirror),
        rewritten=rewritten,
        dropped=count,
        dropped_keys=frozenset(commit.key for commit in dropped),
        file_changes=file_changes,
        files={**new_inbox, **touched, **differing},
        statuses={path: _versions(mirror, line, path) for path in watch.statuses if path in changed},
    )


def _total(commits: Sequence[Commit], after: str | None, tip: str, mirror: Mirror) -> int:
    """`commits` is cut off where they are very many."""
    return len(commits) if len(commits) < 1000 else mirror.count(after, tip)


def _globs(paths: Iterable[str]) -> list[str]:
    return [f":(top,glob){path}" for path in paths]


def _with_patches(watch: BranchWatch, commits: Sequence[Commit], mirror: Mirror) -> tuple[Commit, ...]:
    """With the patch ids of commits that match: they tell an amended commit from the one before."""
    matches = [each.sha for each in commits if any(re.search(subject, each.subject) for subject in watch.subjects)]
    patches = mirror.patch_ids(matches[-PATCHES_AT_MOST:]) if matches else {}
    return tuple(replace(each, patch=patches.get(each.sha, "")) for each in commits)


def _unchanged_files(
    mirror: Mirror, tip: str, file_changes: Sequence[FileChange], differing: dict[str, str | None]
) -> dict[str, str | None]:
    """Files that commits touched and that are as before, such as those deleted and written again."""
    paths = [path for path in dict.fromkeys(change.path for change in file_changes) if path not in differing]
    readable = [path for path in paths if "\n" not in path]
    return dict(zip(readable, mirror.blobs([(tip, path) for path in readable]), strict=True))


def _versions(mirror: Mirror, line: Sequence[str], path: str) -> tuple[str, ...]:
    """The texts of a file along the commits, each change once; "" where there is no file."""
    blobs = mirror.blobs([(commit, path) for commit in line])
    changes = [blob for at, blob in enumerate(blobs) if at == 0 or blob != blobs[at - 1]][-VERSIONS_AT_MOST:]
    texts = {blob: mirror.text(blob) if blob else "" for blob in dict.fromkeys(changes)}
    return tuple(texts[blob] for blob in changes)
