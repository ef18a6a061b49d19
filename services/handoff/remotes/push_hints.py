"""Notices pushes on this host by the files of refs, without git, so that a remote is asked sooner.

A push changes a remote-tracking ref in its clone, and a branch in a remote that is a path. That is only a hint: what is
new is then asked of the remote.
"""

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from shared.system.files import FileSignature

LOOKS_EVERY_S = 1.0
LISTS_FILES_EVERY = 30
"""Looks between two listings of the files, which take longer."""


@dataclass(frozen=True)
class WatchedRefs:
    """Where a push to a remote's branches shows on this host."""

    branches: tuple[str, ...]
    clones: tuple[Path, ...] = ()
    """Work trees that agents push from."""
    repository: Path | None = None
    """The remote itself, if it is a path."""


class PushHints:
    """Used by one thread. `on_push` is called from another, with the address of a remote."""

    def __init__(self, on_push: Callable[[str], None], every_s: float = LOOKS_EVERY_S) -> None:
        self._on_push = on_push
        self._every_s = every_s
        self._watched: Mapping[str, WatchedRefs] = {}
        self._files: dict[str, list[str]] = {}
        self._looks = 0
        self._seen: dict[str, tuple[WatchedRefs, tuple[FileSignature, ...]]] = {}
        self._closed = threading.Event()

    def begin(self) -> None:
        threading.Thread(target=self._run, daemon=True, name="watches refs").start()

    def watch(self, watched: Mapping[str, WatchedRefs]) -> None:
        """Set what is watched, by the remote's address."""
        # What did not change stays the same object: then its files are not listed again.
        before = self._watched
        self._watched = {name: before[name] if before.get(name) == refs else refs for name, refs in watched.items()}

    @property
    def has_looked(self) -> bool:
        """Whether everything was looked at once: a push from now on is noticed."""
        return bool(self._seen) and self._seen.keys() == self._watched.keys()

    def close(self) -> None:
        self._closed.set()

    def _run(self) -> None:
        while not self._closed.wait(self._every_s):
            watched, self._looks = self._watched, self._looks + 1
            if self._looks % LISTS_FILES_EVERY == 0:
                self._files.clear()
            for remote, refs in watched.items():
                with suppress(Exception):  # paths can be odd, and it is only a hint
                    self._look(remote, refs)
            for gone in self._seen.keys() - watched.keys():
                del self._seen[gone]

    def _look(self, remote: str, refs: WatchedRefs) -> None:
        before = self._seen.get(remote)
        if remote not in self._files or (before is not None and before[0] is not refs):
            self._files[remote] = sorted(map(str, files_of(refs)))
        now = (refs, tuple(map(_stamp_of, self._files[remote])))
        self._seen[remote] = now
        if before is not None and before[0] == refs and before[1] != now[1]:
            self._on_push(remote)


def _stamp_of(path: str) -> FileSignature:
    """Changes with the file. Without a Path: hundreds of files are looked at every second."""
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return ()
    return (status.st_ino, status.st_mtime_ns, status.st_size)


def files_of(refs: WatchedRefs) -> Iterator[Path]:
    """The files that change when a branch moves."""
    if refs.repository is not None:
        home = refs.repository / ".git" if (refs.repository / ".git").is_dir() else refs.repository
        yield home / "packed-refs"
        yield from (home / "refs" / "heads" / branch for branch in refs.branches)
    for clone in refs.clones:
        with suppress(OSError):  # no clone, or not readable
            for remote in (common_directory(clone) / "refs" / "remotes").iterdir():
                yield from (remote / branch for branch in refs.branches)


def common_directory(clone: Path) -> Path:
    """Where a work tree has its refs, which all work trees of a repository share. May raise OSError."""
    home = clone / ".git"
    if home.is_file():
        named = home.read_text(encoding="utf-8", errors="replace").partition("gitdir:")[2].strip()
        home = clone / named
    with suppress(OSError):
        return home / (home / "commondir").read_text(encoding="utf-8", errors="replace").strip()
    return home
