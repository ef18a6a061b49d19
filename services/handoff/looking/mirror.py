"""Our own bare mirror of a remote: nobody's work tree, no hooks, and only the branches that are watched."""

import hashlib
import re
import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path

from services.handoff.looking import git as programs
from services.handoff.looking.git import FETCHES_WITHIN_S, Git, GitFailed
from services.handoff.looking.reading import COMMIT_FORMAT, read_blob, read_commits, read_tips, read_touches
from services.handoff.looking.sight import Commit, Touch
from shared.broker.private import make_directory
from shared.ids import as_id

COMMITS_AT_MOST = 20_000
"""Of so many at once only the newest are read; they are told in one anyway."""
LARGEST_STATUS = 64 * 1024
"""Characters of a status file that are read."""


def ask_tips(git: Git, remote: str, branches: Sequence[str]) -> dict[str, str]:
    """One cheap question: what the branches point at. No mirror is needed for it."""
    names = [f"refs/heads/{branch}" for branch in branches]
    found = read_tips(git("ls-remote", "--quiet", "--", remote, *names, within_s=programs.ASKS_WITHIN_S))
    return {branch: sha for branch, sha in found.items() if branch in branches}


def name_of(remote: str) -> str:
    """The directory of a remote's mirror: like what people call it, and no other's."""
    called = as_id(re.split(r"[/:]", remote.rstrip("/").removesuffix(".git"))[-1])[:40]
    return f"{called}-{hashlib.sha256(remote.encode()).hexdigest()[:12]}.git"


class Mirror:
    def __init__(self, git: Git, directory: Path, remote: str) -> None:
        self._git = git
        self._remote = remote
        self.path = directory / name_of(remote)

    def fetch(self, branches: Sequence[str], object_size: int) -> None:
        """Bring the branches here, whatever was there before."""
        if not (self.path / "HEAD").is_file():
            self.remove()
            make_directory(self.path.parent)
            kind = ["--object-format=sha256"] if object_size == 64 else []
            self._git("init", "--bare", "--quiet", *kind, "--template=", str(self.path))
        names = [f"+refs/heads/{branch}:refs/heads/{branch}" for branch in branches]
        options = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules")
        self._in("fetch", *options, "--", self._remote, *names, within_s=FETCHES_WITHIN_S)
        self._in("gc", "--auto", "--quiet", within_s=FETCHES_WITHIN_S)

    def remove(self) -> None:
        """It holds nothing that the remote has not: whatever is wrong with it, a new one is made."""
        shutil.rmtree(self.path, ignore_errors=True)

    def has(self, sha: str) -> bool:
        try:
            self._in("cat-file", "-e", f"{sha}^{{commit}}")
        except GitFailed:
            return False
        return True

    def fork_point(self, one: str, other: str) -> str | None:
        """The newest commit that both have; None: they have nothing in common."""
        try:
            return self._in("merge-base", one, other).strip() or None
        except GitFailed:
            return None

    def count(self, after: str | None, upto: str) -> int:
        return int(self._in("rev-list", "--count", upto, *_without(after), "--"))

    def commits(self, after: str | None, upto: str, at_most: int = COMMITS_AT_MOST) -> tuple[Commit, ...]:
        """What is on one and not on the other, merged branches too, oldest first."""
        order = ("--topo-order", "--reverse", f"--max-count={at_most}", f"--format={COMMIT_FORMAT}")
        return read_commits(self._in("rev-list", *order, "--encoding=UTF-8", upto, *_without(after), "--"))

    def last_commit(self, upto: str, path: str) -> Commit | None:
        """The newest one that touched a file."""
        options = ("--max-count=1", f"--format={COMMIT_FORMAT}", "--encoding=UTF-8")
        return next(iter(read_commits(self._in("rev-list", *options, upto, "--", f":(top,literal){path}"))), None)

    def touches(self, commits: Iterable[Commit], paths: Sequence[str]) -> tuple[Touch, ...]:
        """What the commits did to files."""
        listed = "".join(f"{commit.sha}\n" for commit in commits).encode()
        if not listed or not paths:
            return ()
        return tuple(read_touches(self._in("diff-tree", "--stdin", "--root", *_RAW, "--", *paths, stdin=listed)))

    def differences(self, before: str | None, now: str, paths: Sequence[str]) -> dict[str, str | None]:
        """The files that are not the same in both."""
        if not paths:
            return {}
        before = before or self._in("hash-object", "-t", "tree", "/dev/null").strip()
        return {
            touch.path: touch.blob for touch in read_touches(self._in("diff-tree", *_RAW, before, now, "--", *paths))
        }

    def blob_at(self, commit: str, path: str) -> str | None:
        return read_blob(self._in("ls-tree", "-z", commit, "--", path))

    def text(self, blob: str) -> str:
        return self._in("cat-file", "blob", blob)[:LARGEST_STATUS]

    def _in(self, *arguments: str, within_s: float = 120.0, stdin: bytes | None = None) -> str:
        return self._git(f"--git-dir={self.path}", *arguments, within_s=within_s, stdin=stdin, at=self.path)


_RAW = ("-r", "-z", "--raw", "--no-renames", "--no-abbrev")


def _without(commit: str | None) -> tuple[str, ...]:
    return (f"^{commit}",) if commit else ()
