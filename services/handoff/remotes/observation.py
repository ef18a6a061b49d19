"""What is looked for on a remote, and what is seen there."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field

HEAD = ":HEAD"
"""Stands among the branches for what the remote's HEAD points at. No branch's name can have a colon."""
Tips = Mapping[str, str | None]
"""What a remote's branches point at; None: there is no such branch."""


@dataclass(frozen=True)
class BranchWatch:
    """What one loop wants to know of a remote."""

    loop: str
    branch: str
    remote: str = ""
    subjects: tuple[str, ...] = ()
    """Regular expressions: of commits whose subjects match, it is also asked what they change."""
    inbox: tuple[str, ...] = ()
    """Paths, in which `*` stands for any part of a name."""
    new_inbox: tuple[str, ...] = ()
    """Those of them of which it is not known what is there."""
    statuses: tuple[str, ...] = ()
    """The paths of its status files."""
    is_known: bool = False
    """Whether the branch was looked at before."""
    seen: str | None = None
    """What was last seen on it; None: it was never there."""
    is_gone: bool = False
    """Whether it was not there when it was looked at."""
    before: str | None = None
    """For a branch that was never there: what the remote's HEAD last was. What the branch takes along of that when it
    comes is not new."""
    knows_statuses: bool = False
    """Whether what its status files say there is known."""

    @property
    def never_came(self) -> bool:
        return self.seen is None and (not self.is_known or self.is_gone)


@dataclass(frozen=True)
class Target:
    """All that is wanted of one remote."""

    remote: str
    """As git takes it."""
    poll_s: float
    watches: tuple[BranchWatch, ...]

    @property
    def branches(self) -> tuple[str, ...]:
        return tuple(sorted({watch.branch for watch in self.watches}))

    @property
    def asks_for(self) -> tuple[str, ...]:
        """What the remote is asked for."""
        return (*self.branches, *((HEAD,) if any(watch.never_came for watch in self.watches) else ()))


@dataclass(frozen=True)
class Commit:
    sha: str
    author: str
    email: str
    authored: int
    committed: int
    subject: str
    patch: str = ""
    """What it changes, in a word; empty: nothing, or it was not asked for."""

    @property
    def key(self) -> str:
        """What stays the same when it is rebased: who wrote it, when, what it says and what it changes."""
        said = "\x1f".join((self.author, self.email, str(self.authored), self.subject, self.patch))
        return hashlib.sha256(said.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class FileChange:
    """A commit wrote a file or, with no blob, took it away."""

    commit: str
    path: str
    blob: str | None


@dataclass(frozen=True)
class BranchObservation:
    """A loop's branch as it is now, and what has come since it was last seen."""

    loop: str
    watch: BranchWatch
    """What it was looked for with: it may be another by now."""
    now: str | None
    """None: the remote has no such branch."""
    before: str | None = None
    """What the remote's HEAD is, where it has no such branch yet."""
    commits: tuple[Commit, ...] = ()
    """The new ones, oldest first; of very many the newest."""
    total: int = 0
    """How many there are."""
    rewritten: bool = False
    """Whether what was seen before is no longer on the branch."""
    forgotten: bool = False
    """Whether what was seen before is nowhere to be had any more, so that nobody can say what is new."""
    dropped: int = 0
    dropped_keys: frozenset[str] = frozenset()
    """Of commits that are no longer on the branch."""
    touches: tuple[FileChange, ...] = ()
    """By the new commits, oldest first."""
    differs: Mapping[str, str | None] = field(default_factory=dict)
    """The files that are not as they were when the branch was last seen, and those that commits touched all the same,
    with what is there now; None: nothing."""
    writers: Mapping[str, Commit] = field(default_factory=dict)
    """Who wrote a file last, where the new commits do not tell."""
    statuses: Mapping[str, tuple[str, ...]] | None = None
    """What each status file said, oldest first, the last as it is now ("" where there is none); only those that
    changed, or all, where they were not known. None: nothing was looked for."""
    statuses_before: Mapping[str, str] = field(default_factory=dict)
    """What they said where a branch that came was cut off from what was there before it."""
