"""Hints that somebody on this machine has pushed, so that a remote is asked sooner: a look at refs, and no git.

Who pushes from a clone has a new remote-tracking ref there, and a remote that is a path has its branch on this disk.
That is only a reason to ask: what a remote has, it says itself.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from shared.system.files import Stamp

EVERY_S = 1.0
FINDS_EVERY = 30


@dataclass(frozen=True)
class RefTrail:
    """Where it would show that a remote's branches moved."""

    branches: tuple[str, ...]
    clones: tuple[Path, ...] = ()
    """Work trees in which somebody may push."""
    repository: Path | None = None
    """The remote itself, where it is a path."""


class PushHints:
    """Used by one thread; `moved` is called by another, with the name of a remote."""

    def __init__(self, moved: Callable[[str], None], every_s: float = EVERY_S) -> None:
        self._moved = moved
        self._every_s = every_s
        self._trails: Mapping[str, RefTrail] = {}
        self._refs: dict[str, list[str]] = {}
        """The files that are looked at: found now and then, since that takes more than to look."""
        self._rounds = 0
        self._seen: dict[str, tuple[RefTrail, tuple[Stamp, ...]]] = {}
        self._closed = threading.Event()

    def begin(self) -> None:
        threading.Thread(target=self._run, daemon=True, name="watches refs").start()

    def watch(self, trails: Mapping[str, RefTrail]) -> None:
        """By remote."""
        # One that is as it was stays the same object: then its files need not be found anew.
        self._trails = {name: self._same(name, trail) for name, trail in trails.items()}

    def _same(self, name: str, trail: RefTrail) -> RefTrail:
        before = self._trails.get(name)
        return before if before == trail else trail

    @property
    def has_looked(self) -> bool:
        """Whether all that is watched was looked at: what comes after it is noticed."""
        return bool(self._seen) and self._seen.keys() == self._trails.keys()

    def close(self) -> None:
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(self._every_s):
            trails, self._rounds = self._trails, self._rounds + 1
            if self._rounds % FINDS_EVERY == 0:
                self._refs.clear()
            for remote, trail in trails.items():
                with suppress(Exception):  # a path can be odd in many ways, and it is only a hint
                    self._look(remote, trail)
            for gone in self._seen.keys() - trails.keys():
                del self._seen[gone]

    def _look(self, remote: str, trail: RefTrail) -> None:
        before = self._seen.get(remote)
        if remote not in self._refs or (before is not None and before[0] is not trail):
            self._refs[remote] = sorted(map(str, refs_of(trail)))
        now = (trail, tuple(map(_stamp_of, self._refs[remote])))
        self._seen[remote] = now
        if before is not None and before[0] == trail and before[1] != now[1]:
            self._moved(remote)


def _stamp_of(path: str) -> Stamp:
    """What a ref is known by. There may be hundreds, and they are asked all the time: so no Path is made of it."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return ()
    return (status.st_ino, status.st_mtime_ns, status.st_size)


def refs_of(trail: RefTrail) -> Iterator[Path]:
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
