"""Hints that somebody on this machine has pushed, so that a remote is asked sooner: a look at refs, and no git.

Who pushes from a clone has a new remote-tracking ref there, and a remote that is a path has its branch on this disk.
That is only a reason to ask: what a remote has, it says itself.
"""

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from shared.watched import Stamp, stamp_of

EVERY_S = 1.0


@dataclass(frozen=True)
class Trail:
    """Where it would show that a remote's branches moved."""

    branches: tuple[str, ...]
    clones: tuple[Path, ...] = ()
    """Work trees in which somebody may push."""
    repository: Path | None = None
    """The remote itself, where it is a path."""


class Hints:
    """Used by one thread; `moved` is called by another, with the name of a remote."""

    def __init__(self, moved: Callable[[str], None], every_s: float = EVERY_S) -> None:
        self._moved = moved
        self._every_s = every_s
        self._trails: Mapping[str, Trail] = {}
        self._seen: dict[str, tuple[Trail, tuple[Stamp, ...]]] = {}
        self._closed = threading.Event()

    def begin(self) -> None:
        threading.Thread(target=self._run, daemon=True, name="watches refs").start()

    def watch(self, trails: Mapping[str, Trail]) -> None:
        """By remote."""
        self._trails = dict(trails)

    @property
    def has_looked(self) -> bool:
        """Whether all that is watched was looked at: what comes after it is noticed."""
        return bool(self._seen) and self._seen.keys() == self._trails.keys()

    def close(self) -> None:
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(self._every_s):
            trails = self._trails
            for remote, trail in trails.items():
                with suppress(Exception):  # a path can be odd in many ways, and it is only a hint
                    self._look(remote, trail)
            for gone in self._seen.keys() - trails.keys():
                del self._seen[gone]

    def _look(self, remote: str, trail: Trail) -> None:
        now = (trail, tuple(stamp_of(path) for path in sorted(refs_of(trail))))
        before, self._seen[remote] = self._seen.get(remote), now
        if before is not None and before[0] == trail and before != now:
            self._moved(remote)


def refs_of(trail: Trail) -> Iterator[Path]:
    """The files that are written anew when a branch moves."""
    if trail.repository is not None:
        home = trail.repository / ".git" if (trail.repository / ".git").is_dir() else trail.repository
        yield home / "packed-refs"
        yield from (home / "refs" / "heads" / branch for branch in trail.branches)
    for clone in trail.clones:
        with suppress(OSError):  # no clone, or not ours to see
            for remote in (common_directory(clone) / "refs" / "remotes").iterdir():
                yield from (remote / branch for branch in trail.branches)


def common_directory(clone: Path) -> Path:
    """Where a work tree has its refs: further work trees of one repository share them. May raise OSError."""
    home = clone / ".git"
    if home.is_file():
        named = home.read_text(encoding="utf-8", errors="replace").partition("gitdir:")[2].strip()
        home = clone / named
    with suppress(OSError):
        return home / (home / "commondir").read_text(encoding="utf-8", errors="replace").strip()
    return home
