"""Looks at every remote when it is time, in threads: few at once, and nobody waits for one that does not answer.

Those that failed or never answered yet are asked in a lane of their own; there is one for fetches, and one for those
that take long. The service hears only of what is new.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from services.handoff.remotes import git as programs
from services.handoff.remotes.git import FETCHES_WITHIN_S, MARK, Git, GitFailed
from services.handoff.remotes.inspection import (
    SOON_S,
    TELLS_AFTER,
    LookInterval,
    is_news,
    look,
    needs_head,
    needs_mirror,
)
from services.handoff.remotes.mirror import Mirror, ask_tips
from services.handoff.remotes.observation import HEAD, BranchObservation, Target, Tips
from shared.runtime.workers import Workers
from shared.system.log import Log
from shared.system.processes import end_marked

ASKS, DOUBTFUL, FETCHES, SLOW = "asks", "doubtful", "fetches", "slow"
LANES: Mapping[str, int] = {ASKS: 4, DOUBTFUL: 8, FETCHES: 3, SLOW: 2}
QUICK_S = 30.0
"""A fetch that takes longer goes on, from its beginning, where only its like waits."""
ANEW_EVERY = 4
"""So often that a fetch fails, though the remote answers, a new mirror is tried: what is wrong may be here."""
CLOSES_WITHIN_S = 3.0
IDLE_S = 3600.0


@dataclass
class _Remote:
    target: Target
    pace: LookInterval
    busy: bool = False
    again: bool = False
    """Whether it is to be asked once more as soon as it is free."""
    wanted: bool = True
    """One that nobody wants any more is kept while it is busy: two must not work in one mirror."""
    tips: Tips | None = None
    """What its branches pointed at when it last answered."""
    asked_at: float = 0.0
    answered_at: float = 0.0
    failure: str = ""
    fetch_failures: int = 0
    slow: bool = False


@dataclass(frozen=True)
class RemoteStatus:
    """How a remote is, for people."""

    asked_at: float
    answered_at: float
    next_at: float
    failure: str
    """Why it did not answer, since it last did."""
    is_down: bool
    """Whether it failed so often that people should know."""


class RemoteWatcher:
    """Used by one thread; `on_news` is called by others, each time that there is something to take."""

    def __init__(self, directory: Path, git: Git, on_news: Callable[[], None], log: Log) -> None:
        self._directory = directory
        self._git = git
        self._on_news = on_news
        self._changed = threading.Condition()
        self._remotes: dict[str, _Remote] = {}
        self._news: list[BranchObservation] = []
        self._workers = Workers(LANES, log)
        self._closed = False

    def tidy(self) -> None:
        """End what an earlier one left, when it was killed. Before anything is begun."""
        if self._directory.is_dir():
            end_marked(MARK, self._directory, named="git")

    def begin(self) -> None:
        threading.Thread(target=self._schedule, daemon=True, name="asks remotes").start()

    # --- what the service says and asks ---

    def watch(self, targets: Mapping[str, Target]) -> None:
        """Say what is wanted now. What is known of a remote stays known."""
        now = time.monotonic()
        with self._changed:
            for name, remote in list(self._remotes.items()):
                remote.wanted = name in targets
                if not remote.wanted and not remote.busy:
                    del self._remotes[name]
            fresh = [name for name in targets if name not in self._remotes]
            for place, name in enumerate(fresh):
                self._remotes[name] = _Remote(
                    targets[name], LookInterval(now + 0.02 * place)
                )  # soon, and not in one burst
            for name, target in targets.items():
                remote = self._remotes[name]
                if remote.target != target:
                    sooner = target.poll_s < remote.target.poll_s
                    remote.target = target
                    if self._is_behind(remote):
                        remote.pace = replace(remote.pace, due=min(remote.pace.due, now))
                        remote.again = remote.again or remote.busy
                    elif sooner:
                        remote.pace = replace(remote.pace, due=min(remote.pace.due, now + target.poll_s))
            self._changed.notify()

    def look_now(self, name: str) -> None:
        """Do not wait until it is time."""
        with self._changed:
            remote = self._remotes.get(name)
            if remote is not None:
                remote.again = remote.busy
                remote.pace = replace(remote.pace, due=time.monotonic())
                self._changed.notify()

    def take(self) -> list[BranchObservation]:
        """What is new, once. What is not taken up for good (`watch` tells) is looked at again."""
        with self._changed:
            news, self._news = self._news, []
            return news

    def standing(self, name: str) -> RemoteStatus | None:
        with self._changed:
            remote = self._remotes.get(name)
            if remote is None:
                return None
            next_at = time.time() + remote.pace.due - time.monotonic()
            is_down = remote.pace.failures >= TELLS_AFTER
            return RemoteStatus(remote.asked_at, remote.answered_at, next_at, remote.failure, is_down)

    def close(self) -> None:
        """End all of it, and leave nothing behind."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._git.close()
        self._workers.close(CLOSES_WITHIN_S)

    # --- inside ---

    def _is_behind(self, remote: _Remote) -> bool:
        """Whether something is known to have moved that was not taken up: the service had to begin anew, say."""
        tips = remote.tips
        return tips is not None and any(is_news(each, tips) for each in remote.target.watches)

    def _schedule(self) -> None:
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                free = [remote for remote in self._remotes.values() if not remote.busy]
                for remote in free:
                    if remote.pace.due <= now:
                        is_doubtful = remote.pace.failures > 0 or not remote.answered_at
                        self._put(DOUBTFUL if is_doubtful else ASKS, remote, partial(self._ask, remote))
                due = [remote.pace.due for remote in free if not remote.busy]
                self._changed.wait(max(0.0, min([*due, now + IDLE_S]) - now))

    def _put(self, lane: str, remote: _Remote, work: Callable[[], None]) -> None:
        """Called with the lock."""
        remote.busy = True
        try:
            self._workers.submit(lane, remote.target.remote, lambda _cancelled: work())
        except RuntimeError as error:
            remote.busy, remote.failure = False, f"it can't be asked: {error}"
            remote.pace = replace(remote.pace, due=time.monotonic() + SOON_S)

    def _ask(self, remote: _Remote) -> None:
        """The cheap question, and what follows from the answer."""
        target, remote.asked_at = remote.target, time.time()
        # One that never answered may be one of many on a host that is gone: it gets its whole time after that.
        is_first = not remote.answered_at and not remote.pace.failures
        within_s = programs.FIRST_ASKS_WITHIN_S if is_first else programs.ASKS_WITHIN_S
        try:
            found = ask_tips(self._git, target.remote, target.asks_for, within_s)
            tips: dict[str, str | None] = {branch: found.get(branch) for branch in target.asks_for}
        except Exception as error:  # noqa: BLE001 - a thread that ends would leave its remote unasked for ever
            self._failed(remote, _why(error))
            return
        if any(needs_mirror(each, tips) for each in target.watches):
            with self._changed:
                self._put(SLOW if remote.slow else FETCHES, remote, partial(self._fetch, remote, target, tips))
            return
        self._tell(remote, tips, self._sights(target, tips, None))
        self._succeeded(remote, target)

    def _fetch(self, remote: _Remote, target: Target, tips: Tips) -> None:
        mirror = Mirror(self._git, self._directory, target.remote)
        there = {branch: tip for branch, tip in tips.items() if branch != HEAD and tip is not None}
        branches, size = list(there), max(map(len, there.values()))
        within_s, began = FETCHES_WITHIN_S if remote.slow else QUICK_S, time.monotonic()
        try:
            if remote.fetch_failures % ANEW_EVERY == ANEW_EVERY - 1:
                mirror.fetch_anew(branches, size, within_s)
            else:
                mirror.fetch(branches, size, within_s)
            if any(needs_head(each, tips) for each in target.watches):
                with suppress(GitFailed):  # it only tells what is not new
                    mirror.fetch_head(within_s)
            sights = self._sights(target, tips, mirror)
            mirror.pin({sight.loop: sight.now for sight in sights if sight.now is not None})
        except Exception as error:  # noqa: BLE001
            remote.fetch_failures += 1
            remote.slow = time.monotonic() - began > QUICK_S * 0.9
            self._failed(remote, f"it answers, but what is new could not be had: {_why(error)}")
            return
        remote.fetch_failures, remote.slow = 0, time.monotonic() - began > QUICK_S * 0.9
        self._tell(remote, tips, sights)
        with suppress(Exception):  # it is only tidied up, and the next time will do
            mirror.tidy()
        self._succeeded(remote, target)

    def _sights(self, target: Target, tips: Tips, mirror: Mirror | None) -> tuple[BranchObservation, ...]:
        news = [each for each in target.watches if is_news(each, tips)]
        return tuple(look(each, tips, mirror if needs_mirror(each, tips) else None) for each in news)

    def _tell(self, remote: _Remote, tips: Tips, sights: tuple[BranchObservation, ...]) -> None:
        """The service hears of it before the remote is free: what is done in its mirror meanwhile is done alone."""
        with self._changed:
            recovered, first = bool(remote.failure), not remote.answered_at
            remote.tips, remote.failure, remote.answered_at = tips, "", time.time()
            remote.pace = replace(remote.pace, failures=0)
            self._news += sights
        if sights or recovered or first:
            self._on_news()

    def _succeeded(self, remote: _Remote, target: Target) -> None:
        with self._changed:
            self._free(remote, remote.pace.succeeded(time.monotonic(), target.poll_s))

    def _failed(self, remote: _Remote, reason: str) -> None:
        with self._changed:
            pace = remote.pace.failed(time.monotonic(), remote.target.poll_s)
            remote.failure = reason
            self._free(remote, pace)
        if pace.failures == TELLS_AFTER:
            self._on_news()

    def _free(self, remote: _Remote, pace: LookInterval) -> None:
        """Called with the lock: it may be asked again."""
        remote.busy = False
        remote.pace = replace(pace, due=time.monotonic()) if remote.again else pace
        remote.again = False
        self._changed.notify()


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, GitFailed) else f"{type(error).__name__}: {error}"
