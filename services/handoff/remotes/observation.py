"""What is looked for on a remote, and what was observed there."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

HEAD = ":HEAD"
"""Stands among the branches for the remote's HEAD. No branch's name can have a colon."""
Tips = Mapping[str, str | None]
"""The commit of each branch; None: there is no such branch."""


@dataclass(frozen=True)
class BranchWatch:
    """What one loop wants to know about a remote's branch, and what it knows."""

    loop: str
    branch: str
    remote: str = ""
    subjects: tuple[str, ...] = ()
    """Regular expressions. Commits whose subjects match are read with their patch ids."""
    inbox: tuple[str, ...] = ()
    """Patterns of the inbox files' paths."""
    new_inbox: tuple[str, ...] = ()
    """Those of them whose files were never looked at."""
    statuses: tuple[str, ...] = ()
    """The paths of its status files."""
    is_known: bool = False
    """Whether the branch was observed before."""
    tip: str | None = None
    """The tip that was last observed; None: the branch never existed."""
    is_gone: bool = False
    """Whether the branch did not exist when it was last observed."""
    head: str | None = None
    """For a branch that never existed: the remote's HEAD that was last observed. Commits of it are not new when the
    branch appears."""
    knows_statuses: bool = False
    """Whether the text of every status file is known."""

    @property
    def never_existed(self) -> bool:
        return self.tip is None and (not self.is_known or self.is_gone)


@dataclass(frozen=True)
class Target:
    """One remote, and the loops that watch it."""

    remote: str
    """Its address, as git takes it."""
    poll_s: float
    watches: tuple[BranchWatch, ...]

    @property
    def asks_for(self) -> tuple[str, ...]:
        """The branches to ask for; HEAD too while one of them never existed."""
        branches = sorted({watch.branch for watch in self.watches})
        return (*branches, *((HEAD,) if any(watch.never_existed for watch in self.watches) else ()))


@dataclass(frozen=True)
class Commit:
    sha: str
    author: str
    email: str
    authored: int
    committed: int
    subject: str
    patch: str = ""
    """Its patch id; empty: it changes nothing, or was not read."""

    @property
    def key(self) -> str:
        """Stays the same over a rebase: author, time, subject and patch."""
        text = "\x1f".join((self.author, self.email, str(self.authored), self.subject, self.patch))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class FileChange:
    """A commit wrote a file or, with no blob, deleted it."""

    commit: str
    path: str
    blob: str | None


@dataclass(frozen=True)
class BranchObservation:
    """A loop's branch as it is now, and what is new since it was last observed."""

    loop: str
    watch: BranchWatch
    """What was asked; the loop's watch may be another by now."""
    tip: str | None
    """None: the remote has no such branch."""
    head: str | None = None
    """The remote's HEAD, where it has no such branch."""
    commits: tuple[Commit, ...] = ()
    """The new ones, oldest first; of very many only the newest."""
    total: int = 0
    """How many are new."""
    rewritten: bool = False
    """Whether the tip of before is no longer on the branch."""
    lost_tip: bool = False
    """Whether the tip of before is not even in the mirror: then nothing counts as new."""
    dropped: int = 0
    """How many commits are no longer on the branch."""
    dropped_keys: frozenset[str] = frozenset()
    file_changes: tuple[FileChange, ...] = ()
    """By the new commits, oldest first."""
    files: Mapping[str, str | None] = field(default_factory=dict)
    """The files that differ from before or that a new commit touched, with their blobs now; None: deleted."""
    last_commits: Mapping[str, Commit] = field(default_factory=dict)
    """The latest commit of a file that no new commit changed."""
    statuses: Mapping[str, tuple[str, ...]] | None = None
    """The versions of each status file, oldest first ("" where there is no file): of those that changed, or of all
    where they were not known. None: they were not looked at."""
    statuses_at_fork: Mapping[str, str] = field(default_factory=dict)
    """Their texts where a branch that appeared forks from the remote's HEAD."""
