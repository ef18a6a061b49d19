"""Asks each remote when it is due, in threads, and gives the service what is new.

Remotes that answer, remotes that failed or never answered, fetches and slow fetches have lanes of their own: a remote
that hangs delays only its like.
"""

import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from services.handoff.remotes.git import ASK_TIMEOUT_S, FETCH_TIMEOUT_S, FIRST_ASK_TIMEOUT_S, MARK, Git, GitFailed
from services.handoff.remotes.inspection import inspect, is_news, needs_head, needs_mirror
from services.handoff.remotes.mirror import Mirror, ask_tips
from services.handoff.remotes.observation import HEAD, BranchObservation, Target, Tips
from shared.runtime.workers import Workers
from shared.system.log import Log
from shared.system.processes import end_marked

ASKS, DOUBTFUL, FETCHES, SLOW = "asks", "doubtful", "fetches", "slow"
LANES: Mapping[str, int] = {ASKS: 4, DOUBTFUL: 8, FETCHES: 3, SLOW: 2}
"""Threads for each lane."""
QUICK_FETCH_S = 30.0
"""A fetch that takes longer begins again in the slow lane."""
NEW_MIRROR_EVERY = 4
"""After so many failed fetches from a remote that answers, a new mirror is tried: this one may be damaged."""
CLOSES_WITHIN_S = 3.0
IDLE_S = 3600.0
FIRST_RETRY_S, LONGEST_RETRY_S = 5.0, 300.0
DOWN_AFTER_FAILURES = 2
"""A single failure is mostly over at the first retry, and is not reported."""
SPREAD_S = 0.02
"""New remotes are asked this far apart."""


@dataclass(frozen=True)
class PollSchedule:
    """When a remote is asked next, and how often it failed since it last answered."""

    due: float = 0.0
    failures: int = 0

    def succeeded(self, now: float, poll_s: float) -> "PollSchedule":
        return PollSchedule(now + poll_s)

    def failed(self, now: float, poll_s: float) -> "PollSchedule":
        failures = self.failures + 1
        is_down = failures >= DOWN_AFTER_FAILURES
        wait_s = poll_s * 2.0 ** min(failures - 1, 16) if is_down else min(FIRST_RETRY_S, poll_s)
        return PollSchedule(now + min(wait_s, max(LONGEST_RETRY_S, poll_s)), failures)

    def by(self, due: float) -> "PollSchedule":
        """The same, due at this time at the latest."""
        return replace(self, due=min(self.due, due))


@dataclass
class _Remote:
    target: Target
    schedule: PollSchedule
    busy: bool = False
    again: bool = False
    """Whether to ask once more as soon as it is free."""
    wanted: bool = True
    """Whether a loop watches it. An unwanted remote is kept while busy: two threads must not work in one mirror."""
    tips: Tips | None = None
    """Its latest answer."""
    asked_at: float = 0.0
    answered_at: float = 0.0
    failure: str = ""
    fetch_failures: int = 0
    slow: bool = False


@dataclass(frozen=True)
class RemoteStatus:
    """How a remote answers, for people."""

    asked_at: float
    answered_at: float
    next_at: float
    failure: str
    """Why it failed since it last answered; empty: it did not."""
    is_down: bool
    """Whether it failed often enough to be reported."""


class RemoteWatcher:
    """Used by one thread. `on_news` is called from other threads whenever there is something new to take."""

    def __init__(self, directory: Path, git: Git, on_news: Callable[[], None], log: Log) -> None:
        self._directory = directory
        self._git = git
        self._on_news = on_news
        self._changed = threading.Condition()
        self._remotes: dict[str, _Remote] = {}
        self._news: list[BranchObservation] = []
        self._workers = Workers(LANES, log)
        self._closed = False

    def end_leftovers(self) -> None:
        """End git processes of an earlier handoff that was killed. To be called before `begin`."""
        if self._directory.is_dir():
            end_marked(MARK, self._directory, named="git")

    def begin(self) -> None:
        threading.Thread(target=self._run, daemon=True, name="asks remotes").start()

    # --- for the service ---

    def watch(self, targets: Mapping[str, Target]) -> None:
        """Set the remotes to ask. What is known about a remote stays known."""
        now = time.monotonic()
        with self._changed:
            for name, remote in list(self._remotes.items()):
                remote.wanted = name in targets
                if not remote.wanted and not remote.busy:
                    del self._remotes[name]
            fresh = [name for name in targets if name not in self._remotes]
            for place, name in enumerate(fresh):
                self._remotes[name] = _Remote(targets[name], PollSchedule(now + SPREAD_S * place))
            for name, target in targets.items():
                remote = self._remotes[name]
                if remote.target != target:
                    sooner = target.poll_s < remote.target.poll_s
                    remote.target = target
                    if self._is_behind(remote):
                        remote.schedule = remote.schedule.by(now)
                        remote.again = remote.again or remote.busy
                    elif sooner:
                        remote.schedule = remote.schedule.by(now + target.poll_s)
            self._changed.notify()

    def ask_now(self, name: str) -> None:
        """Ask a remote before it is due."""
        with self._changed:
            remote = self._remotes.get(name)
            if remote is not None:
                remote.again = remote.busy
                remote.schedule = replace(remote.schedule, due=time.monotonic())
                self._changed.notify()

    def take(self) -> list[BranchObservation]:
        """What is new, once. A remote is asked again until the tips given to `watch` match its own."""
        with self._changed:
            news, self._news = self._news, []
            return news

    def status(self, name: str) -> RemoteStatus | None:
        with self._changed:
            remote = self._remotes.get(name)
            if remote is None:
                return None
            next_at = time.time() + remote.schedule.due - time.monotonic()
            is_down = remote.schedule.failures >= DOWN_AFTER_FAILURES
            return RemoteStatus(remote.asked_at, remote.answered_at, next_at, remote.failure, is_down)

    def close(self) -> None:
        """End every thread and every git process."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._git.close()
        self._workers.close(CLOSES_WITHIN_S)

    # --- threads ---

    def _is_behind(self, remote: _Remote) -> bool:
        """Whether the service does not know the latest answer: a turn that failed did not keep it."""
        tips = remote.tips
        return tips is not None and any(is_news(each, tips) for each in remote.target.watches)

    def _run(self) -> None:
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                free = [remote for remote in self._remotes.values() if not remote.busy]
                for remote in free:
                    if remote.schedule.due <= now:
                        is_doubtful = remote.schedule.failures > 0 or not remote.answered_at
                        self._put(DOUBTFUL if is_doubtful else ASKS, remote, partial(self._ask, remote))
                due = [remote.schedule.due for remote in free if not remote.busy]
                self._changed.wait(max(0.0, min([*due, now + IDLE_S]) - now))

    def _put(self, lane: str, remote: _Remote, work: Callable[[], None]) -> None:
        """To be called with the lock."""
        remote.busy = True
        try:
            self._workers.submit(lane, remote.target.remote, lambda _cancelled: work())
        except RuntimeError as error:
            remote.busy, remote.failure = False, f"it can't be asked: {error}"
            remote.schedule = replace(remote.schedule, due=time.monotonic() + FIRST_RETRY_S)

    def _ask(self, remote: _Remote) -> None:
        """Ask for the tips, and fetch what is new."""
        target, remote.asked_at = remote.target, time.time()
        # The first question has a short timeout: many remotes may be on one host that is down.
        is_first = not remote.answered_at and not remote.schedule.failures
        within_s = FIRST_ASK_TIMEOUT_S if is_first else ASK_TIMEOUT_S
        try:
            found = ask_tips(self._git, target.remote, target.asks_for, within_s)
            tips: dict[str, str | None] = {branch: found.get(branch) for branch in target.asks_for}
        except Exception as error:  # noqa: BLE001 - else the remote would stay busy for ever
            self._failed(remote, _reason(error))
            return
        if any(needs_mirror(each, tips) for each in target.watches):
            with self._changed:
                self._put(SLOW if remote.slow else FETCHES, remote, partial(self._fetch, remote, target, tips))
            return
        self._publish(remote, tips, self._observations(target, tips, None))
        self._succeeded(remote, target)

    def _fetch(self, remote: _Remote, target: Target, tips: Tips) -> None:
        mirror = Mirror(self._git, self._directory, target.remote)
        there = {branch: tip for branch, tip in tips.items() if branch != HEAD and tip is not None}
        branches, size = list(there), max(map(len, there.values()))
        within_s, began = FETCH_TIMEOUT_S if remote.slow else QUICK_FETCH_S, time.monotonic()
        try:
            if remote.fetch_failures % NEW_MIRROR_EVERY == NEW_MIRROR_EVERY - 1:
                mirror.fetch_anew(branches, size, within_s)
            else:
                mirror.fetch(branches, size, within_s)
            if any(needs_head(each, tips) for each in target.watches):
                with suppress(GitFailed):  # HEAD only tells which commits are not new
                    mirror.fetch_head(within_s)
            observations = self._observations(target, tips, mirror)
            mirror.pin({each.loop: each.tip for each in observations if each.tip is not None})
        except Exception as error:  # noqa: BLE001
            remote.fetch_failures += 1
            remote.slow = time.monotonic() - began > QUICK_FETCH_S * 0.9
            self._failed(remote, f"it answers, but what is new could not be had: {_reason(error)}")
            return
        remote.fetch_failures, remote.slow = 0, time.monotonic() - began > QUICK_FETCH_S * 0.9
        self._publish(remote, tips, observations)
        with suppress(Exception):  # the next time will do
            mirror.collect_garbage()
        self._succeeded(remote, target)

    def _observations(self, target: Target, tips: Tips, mirror: Mirror | None) -> tuple[BranchObservation, ...]:
        news = [each for each in target.watches if is_news(each, tips)]
        return tuple(inspect(each, tips, mirror if needs_mirror(each, tips) else None) for each in news)

    def _publish(self, remote: _Remote, tips: Tips, observations: tuple[BranchObservation, ...]) -> None:
        """Give the service the observations. The remote stays busy: its mirror is still in use."""
        with self._changed:
            recovered, first = bool(remote.failure), not remote.answered_at
            remote.tips, remote.failure, remote.answered_at = tips, "", time.time()
            remote.schedule = replace(remote.schedule, failures=0)
            self._news += observations
        if observations or recovered or first:
            self._on_news()

    def _succeeded(self, remote: _Remote, target: Target) -> None:
        with self._changed:
            self._free(remote, remote.schedule.succeeded(time.monotonic(), target.poll_s))

    def _failed(self, remote: _Remote, reason: str) -> None:
        with self._changed:
            schedule = remote.schedule.failed(time.monotonic(), remote.target.poll_s)
            remote.failure = reason
            self._free(remote, schedule)
        if schedule.failures == DOWN_AFTER_FAILURES:
            self._on_news()

    def _free(self, remote: _Remote, schedule: PollSchedule) -> None:
        """Let the remote be asked again. To be called with the lock."""
        remote.busy = False
        remote.schedule = replace(schedule, due=time.monotonic()) if remote.again else schedule
        remote.again = False
        self._changed.notify()


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, GitFailed) else f"{type(error).__name__}: {error}"
