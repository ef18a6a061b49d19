"""Our own bare mirror of a remote: no work tree, no hooks, and only the branches that loops watch."""

import hashlib
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from services.handoff.remotes.git import (
    ASK_TIMEOUT_S,
    COMMIT_FORMAT,
    FETCH_TIMEOUT_S,
    WORK_TIMEOUT_S,
    Git,
    GitFailed,
    read_blobs,
    read_commits,
    read_file_changes,
    read_tips,
)
from services.handoff.remotes.observation import HEAD, Commit, FileChange
from shared.contract.ids import as_id
from shared.system.files import make_directory

COMMITS_AT_MOST = 20_000
"""Of more new commits only the newest are read: they are reported in one summary anyway."""
STATUS_CHARACTERS_AT_MOST = 64 * 1024
"""How much of a status file is read."""
PINS = "refs/muster/"
"""Refs that keep the tip that each loop has observed."""
STATUS_UNRELATED = 1
NEW_LINE = "\n"


def ask_tips(git: Git, remote: str, branches: Sequence[str], within_s: float = ASK_TIMEOUT_S) -> dict[str, str]:
    """The commits of the branches: one cheap question that needs no mirror."""
    names = ["HEAD" if branch == HEAD else f"refs/heads/{branch}" for branch in branches]
    found = read_tips(git("ls-remote", "--quiet", "--", remote, *names, within_s=within_s))
    return {branch: sha for branch, sha in found.items() if branch in branches}


def name_of(remote: str) -> str:
    """The directory of a remote's mirror: readable, and unique by a hash."""
    label = as_id(re.split(r"[/:]", remote.rstrip("/").removesuffix(".git"))[-1])[:40]
    return f"{label}-{hashlib.sha256(remote.encode()).hexdigest()[:12]}.git"


class Mirror:
    def __init__(self, git: Git, directory: Path, remote: str) -> None:
        self._git = git
        self._remote = remote
        self.path = directory / name_of(remote)

    def fetch(self, branches: Sequence[str], object_size: int, within_s: float = FETCH_TIMEOUT_S) -> None:
        """Fetch the branches, forced."""
        if not (self.path / "HEAD").is_file():
            self.remove()
            make_directory(self.path.parent)
            kind = "sha256" if object_size == 64 else "sha1"
            self._git("init", "--bare", "--quiet", f"--object-format={kind}", "--template=", str(self.path))
        names = [f"+refs/heads/{branch}:refs/heads/{branch}" for branch in branches]
        self._in("fetch", *_FETCH, "--", self._remote, *names, within_s=within_s)

    def fetch_head(self, within_s: float = FETCH_TIMEOUT_S) -> None:
        """Fetch the remote's HEAD without a ref: git may collect it later."""
        self._in("fetch", *_FETCH, "--", self._remote, "HEAD", within_s=within_s)

    def fetch_anew(self, branches: Sequence[str], object_size: int, within_s: float) -> None:
        """Fetch into a new mirror that then replaces this one, which may be damaged."""
        fresh = Mirror(self._git, self.path.parent, self._remote)
        fresh.path = self.path.with_suffix(".new")
        fresh.remove()
        fresh.fetch(branches, object_size, within_s)
        with suppress(GitFailed):  # the observed tips may exist only here
            fresh._in("fetch", "--quiet", "--no-tags", "--", str(self.path), f"+{PINS}*:{PINS}*")
        self.remove()
        fresh.path.rename(self.path)

    def collect_garbage(self) -> None:
        """Drop objects without a ref: only after what was fetched has been inspected."""
        self._in("gc", "--auto", "--quiet", within_s=FETCH_TIMEOUT_S)

    def pin(self, tips: Mapping[str, str]) -> None:
        """Keep the tips that loops have observed, whatever becomes of their branches."""
        lines = "".join(f"update {PINS}{name} {tip}\n" for name, tip in tips.items())
        self._in("update-ref", "--stdin", stdin=lines.encode())

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def has(self, sha: str) -> bool:
        return self._in("cat-file", "--batch-check", stdin=f"{sha}\n".encode()).split()[1:2] == ["commit"]

    def fork_point(self, one: str, other: str) -> str | None:
        """The newest common commit; None: the histories are unrelated."""
        try:
            return self._in("merge-base", one, other).strip() or None
        except GitFailed as failed:
            if failed.status == STATUS_UNRELATED:
                return None
            raise

    def count(self, after: str | None, upto: str) -> int:
        return int(self._in("rev-list", "--count", upto, *_without(after), "--"))

    def commits(self, after: str | None, upto: str, at_most: int = COMMITS_AT_MOST) -> tuple[Commit, ...]:
        """The commits on `upto` and not on `after`, with those of merged branches, oldest first."""
        order = ("--topo-order", "--reverse", f"--max-count={at_most}", f"--format={COMMIT_FORMAT}")
        return read_commits(self._in("rev-list", *order, "--encoding=UTF-8", upto, *_without(after), "--"))

    def last_commit(self, upto: str, path: str) -> Commit | None:
        """The newest commit that changed a file."""
        options = ("--max-count=1", f"--format={COMMIT_FORMAT}", "--encoding=UTF-8")
        return next(iter(read_commits(self._in("rev-list", *options, upto, "--", f":(top,literal){path}"))), None)

    def file_changes(self, commits: Iterable[Commit], paths: Sequence[str]) -> tuple[FileChange, ...]:
        """The changes that the commits made to files."""
        listed = "".join(f"{commit.sha}\n" for commit in commits).encode()
        if not listed or not paths:
            return ()
        return tuple(read_file_changes(self._in("diff-tree", "--stdin", "--root", *_RAW, "--", *paths, stdin=listed)))

    def differences(self, before: str | None, now: str, paths: Sequence[str]) -> dict[str, str | None]:
        """The files that differ between two commits, with their blobs in the second."""
        if not paths:
            return {}
        before = before or self._in("hash-object", "-t", "tree", "/dev/null").strip()
        changes = read_file_changes(self._in("diff-tree", *_RAW, before, now, "--", *paths))
        return {change.path: change.blob for change in changes}

    def first_parents(self, after: str | None, upto: str, at_most: int) -> list[str]:
        """The commits of the branch itself, without those of merged branches, oldest first."""
        options = ("--first-parent", "--reverse", f"--max-count={at_most}")
        return self._in("rev-list", *options, upto, *_without(after), "--").split()

    def blobs(self, places: Sequence[tuple[str, str]]) -> list[str | None]:
        """The blob at each path in each commit; None: no file."""
        asked = "".join(f"{commit}:{path}\n" for commit, path in places)
        return read_blobs(self._in("cat-file", "--batch-check", stdin=asked.encode())) if places else []

    def text(self, blob: str) -> str:
        """The text of a file; of a long one its beginning and its end."""
        text = self._in("cat-file", "blob", blob)
        if len(text) <= STATUS_CHARACTERS_AT_MOST:
            return text
        half = STATUS_CHARACTERS_AT_MOST // 2
        return f"{text[:half].rpartition(NEW_LINE)[0]}\n{text[-half:].partition(NEW_LINE)[2]}"

    def patch_ids(self, commits: Sequence[str]) -> dict[str, str]:
        """The patch id of each commit, which stays the same over a rebase; none where a commit changes nothing."""
        listed = "".join(f"{sha}\n" for sha in commits).encode()
        patches = self._in("diff-tree", "--stdin", "--root", "-p", "--no-ext-diff", "--no-color", stdin=listed)
        said = self._in("patch-id", "--stable", stdin=patches.encode("utf-8", "replace"))
        return {sha: patch for patch, _, sha in (line.partition(" ") for line in said.split("\n")) if sha}

    def _in(self, *arguments: str, within_s: float = WORK_TIMEOUT_S, stdin: bytes | None = None) -> str:
        return self._git(f"--git-dir={self.path}", *arguments, within_s=within_s, stdin=stdin, at=self.path)


_FETCH = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules")
_RAW = ("-r", "-z", "--raw", "--no-renames", "--no-abbrev")


def _without(commit: str | None) -> tuple[str, ...]:
    return (f"^{commit}",) if commit else ()
