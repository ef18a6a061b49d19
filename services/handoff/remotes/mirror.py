"""Our own bare mirror of a remote: nobody's work tree, no hooks, and only the branches that are watched."""

import hashlib
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from services.handoff.remotes.git import (
    ASKS_WITHIN_S,
    COMMIT_FORMAT,
    FETCHES_WITHIN_S,
    Git,
    GitFailed,
    read_blobs,
    read_commits,
    read_tips,
    read_touches,
)
from services.handoff.remotes.observation import HEAD, Commit, FileChange
from shared.contract.ids import as_id
from shared.system.files import make_directory

COMMITS_AT_MOST = 20_000
"""Of so many at once only the newest are read; they are told in one anyway."""
LARGEST_STATUS = 64 * 1024
"""Characters of a status file that are read."""
PINS = "refs/muster/"
"""Where it is kept what each loop has seen."""
NOTHING_IN_COMMON = 1
NEW_LINE = "\n"


def ask_tips(git: Git, remote: str, branches: Sequence[str], within_s: float = ASKS_WITHIN_S) -> dict[str, str]:
    """One cheap question: what the branches point at. No mirror is needed for it."""
    names = ["HEAD" if branch == HEAD else f"refs/heads/{branch}" for branch in branches]
    found = read_tips(git("ls-remote", "--quiet", "--", remote, *names, within_s=within_s))
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

    def fetch(self, branches: Sequence[str], object_size: int, within_s: float = FETCHES_WITHIN_S) -> None:
        """Bring the branches here, whatever was there before."""
        if not (self.path / "HEAD").is_file():
            self.remove()
            make_directory(self.path.parent)
            kind = "sha256" if object_size == 64 else "sha1"
            self._git("init", "--bare", "--quiet", f"--object-format={kind}", "--template=", str(self.path))
        names = [f"+refs/heads/{branch}:refs/heads/{branch}" for branch in branches]
        self._in("fetch", *_FETCH, "--", self._remote, *names, within_s=within_s)

    def fetch_head(self, within_s: float = FETCHES_WITHIN_S) -> None:
        """Bring what the remote's HEAD points at: only for a look, nothing here names it afterwards."""
        self._in("fetch", *_FETCH, "--", self._remote, "HEAD", within_s=within_s)

    def fetch_anew(self, branches: Sequence[str], object_size: int, within_s: float) -> None:
        """The same into a new mirror, which takes the place of this one once it is there: what is wrong may be here."""
        fresh = Mirror(self._git, self.path.parent, self._remote)
        fresh.path = self.path.with_suffix(".new")
        fresh.remove()
        fresh.fetch(branches, object_size, within_s)
        with suppress(GitFailed):  # what was seen may be nowhere else any more
            fresh._in("fetch", "--quiet", "--no-tags", "--", str(self.path), f"+{PINS}*:{PINS}*")
        self.remove()
        fresh.path.rename(self.path)

    def tidy(self) -> None:
        """Not before what was fetched has been looked at: what nobody names any more goes."""
        self._in("gc", "--auto", "--quiet", within_s=FETCHES_WITHIN_S)

    def pin(self, tips: Mapping[str, str]) -> None:
        """Keep what loops have seen, whatever becomes of their branches."""
        lines = "".join(f"update {PINS}{name} {tip}\n" for name, tip in tips.items())
        self._in("update-ref", "--stdin", stdin=lines.encode())

    def remove(self) -> None:
        shutil.rmtree(self.path, ignore_errors=True)

    def has(self, sha: str) -> bool:
        return self._in("cat-file", "--batch-check", stdin=f"{sha}\n".encode()).split()[1:2] == ["commit"]

    def fork_point(self, one: str, other: str) -> str | None:
        """The newest commit that both have; None: they have nothing in common."""
        try:
            return self._in("merge-base", one, other).strip() or None
        except GitFailed as failed:
            if failed.status == NOTHING_IN_COMMON:
                return None
            raise

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

    def touches(self, commits: Iterable[Commit], paths: Sequence[str]) -> tuple[FileChange, ...]:
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

    def line_of(self, after: str | None, upto: str, at_most: int) -> list[str]:
        """The commits that the branch itself has been at, oldest first: not those of branches that were merged."""
        options = ("--first-parent", "--reverse", f"--max-count={at_most}")
        return self._in("rev-list", *options, upto, *_without(after), "--").split()

    def blobs(self, places: Sequence[tuple[str, str]]) -> list[str | None]:
        """What stands at a path in a commit, for each; None: no file."""
        asked = "".join(f"{commit}:{path}\n" for commit, path in places)
        return read_blobs(self._in("cat-file", "--batch-check", stdin=asked.encode())) if places else []

    def text(self, blob: str) -> str:
        """What a file says; of a long one its beginning and its end."""
        text = self._in("cat-file", "blob", blob)
        if len(text) <= LARGEST_STATUS:
            return text
        half = LARGEST_STATUS // 2
        return f"{text[:half].rpartition(NEW_LINE)[0]}\n{text[-half:].partition(NEW_LINE)[2]}"

    def patch_ids(self, commits: Sequence[str]) -> dict[str, str]:
        """What each commit changes, in a word that stays the same when it is rebased; none where it changes nothing."""
        listed = "".join(f"{sha}\n" for sha in commits).encode()
        patches = self._in("diff-tree", "--stdin", "--root", "-p", "--no-ext-diff", "--no-color", stdin=listed)
        said = self._in("patch-id", "--stable", stdin=patches.encode("utf-8", "replace"))
        return {sha: patch for patch, _, sha in (line.partition(" ") for line in said.split("\n")) if sha}

    def _in(self, *arguments: str, within_s: float = 120.0, stdin: bytes | None = None) -> str:
        return self._git(f"--git-dir={self.path}", *arguments, within_s=within_s, stdin=stdin, at=self.path)


_FETCH = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--no-recurse-submodules")
_RAW = ("-r", "-z", "--raw", "--no-renames", "--no-abbrev")


def _without(commit: str | None) -> tuple[str, ...]:
    return (f"^{commit}",) if commit else ()
