"""Looks at every remote when it is time, in threads: few at once, and nobody waits for one that does not answer.

Those that failed are asked in a lane of their own, and so is what takes long. The service hears only of what is new.
"""

import queue
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from services.handoff.looking.git import MARK, Git, GitFailed
from services.handoff.looking.looking import is_news, look, needs_mirror
from services.handoff.looking.mirror import Mirror, ask_tips
from services.handoff.looking.pace import TELLS_AFTER, Pace
from services.handoff.looking.sight import Sight, Target
from shared.processes import end_marked

ASKS, DOUBTFUL, FETCHES = "asks", "doubtful", "fetches"
LANES: Mapping[str, int] = {ASKS: 4, DOUBTFUL: 2, FETCHES: 2}
"""How many threads each kind of work has."""
CLOSES_WITHIN_S = 3.0
IDLE_S = 3600.0


@dataclass
class _Remote:
    target: Target
    pace: Pace
    busy: bool = False
    again: bool = False
    """Whether it is to be asked once more as soon as it is free."""
    tips: Mapping[str, str | None] | None = None
    """What its branches pointed at when it last answered."""
    asked_at: float = 0.0
    answered_at: float = 0.0
    failure: str = ""
    mirror_failures: int = 0


@dataclass(frozen=True)
class Standing:
    """How a remote is, for people."""

    asked_at: float
    answered_at: float
    next_at: float
    failure: str
    """Why it did not answer, since it last did."""
    is_down: bool
    """Whether it failed so often that people should know."""


Work = tuple[Callable[..., None], tuple[object, ...]]


class Looker:
    """Used by one thread; `on_news` is called by others, each time that there is something to take."""

    def __init__(self, directory: Path, git: Git, on_news: Callable[[], None]) -> None:
        self._directory = directory
        self._git = git
        self._on_news = on_news
        self._changed = threading.Condition()
        self._remotes: dict[str, _Remote] = {}
        self._news: list[Sight] = []
        self._lanes: dict[str, queue.SimpleQueue[Work]] = {name: queue.SimpleQueue() for name in LANES}
        self._threads: dict[str, int] = dict.fromkeys(LANES, 0)
        self._working = 0
        self._closed = False

    def tidy(self) -> None:
        """End what an earlier one left, when it was killed. Before anything is begun."""
        if self._directory.is_dir():
            end_marked(MARK, self._directory)

    def begin(self) -> None:
        threading.Thread(target=self._schedule, daemon=True, name="asks remotes").start()

    # --- what the service says and asks ---

    def watch(self, targets: Mapping[str, Target]) -> None:
        """Say what is wanted now. What is known of a remote stays known."""
        now = time.monotonic()
        with self._changed:
            for name in self._remotes.keys() - targets.keys():
                del self._remotes[name]
            fresh = [name for name in targets if name not in self._remotes]
            for place, name in enumerate(fresh):
                # All are asked soon; but not in one burst, and from then on at times of their own.
                self._remotes[name] = _Remote(targets[name], Pace(now + 0.02 * place))
            for name, target in targets.items():
                remote = self._remotes[name]
                if remote.target != target:
                    sooner = target.poll_s < remote.target.poll_s
                    remote.target = target
                    if sooner or self._is_behind(remote):
                        remote.pace = replace(remote.pace, due=min(remote.pace.due, now + target.poll_s * sooner))
            self._changed.notify()

    def look_now(self, name: str) -> None:
        """Do not wait until it is time."""
        with self._changed:
            remote = self._remotes.get(name)
            if remote is not None:
                remote.again = remote.busy
                remote.pace = replace(remote.pace, due=time.monotonic())
                self._changed.notify()

    def take(self) -> list[Sight]:
        """What is new, once. What is not taken up for good (`watch` tells) is looked at again."""
        with self._changed:
            news, self._news = self._news, []
            return news

    def standing(self, name: str) -> Standing | None:
        with self._changed:
            remote = self._remotes.get(name)
            if remote is None:
                return None
            next_at = time.time() + remote.pace.due - time.monotonic()
            is_down = remote.pace.failures >= TELLS_AFTER
            return Standing(remote.asked_at, remote.answered_at, next_at, remote.failure, is_down)

    def close(self) -> None:
        """End all of it, and leave nothing behind."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._git.close()
        until = time.monotonic() + CLOSES_WITHIN_S
        while self._working and time.monotonic() < until:
            time.sleep(0.02)

    # --- inside ---

    def _is_behind(self, remote: _Remote) -> bool:
        """Whether something is known to have moved that was not taken up: the service had to begin anew, say."""
        tips = remote.tips
        return tips is not None and any(is_news(each, tips.get(each.branch)) for each in remote.target.watches)

    def _schedule(self) -> None:
        with self._changed:
            while not self._closed:
                now = time.monotonic()
                free = [remote for remote in self._remotes.values() if not remote.busy]
                for remote in free:
                    if remote.pace.due <= now:
                        remote.busy = True
                        self._put(DOUBTFUL if remote.pace.is_doubtful else ASKS, self._ask, remote)
                due = [remote.pace.due for remote in free if not remote.busy]
                self._changed.wait(max(0.0, min([*due, now + IDLE_S]) - now))

    def _put(self, lane: str, do: Callable[..., None], *arguments: object) -> None:
        """Called with the lock. A thread is made when there is work for one more."""
        self._lanes[lane].put((do, arguments))
        if self._threads[lane] < LANES[lane]:
            self._threads[lane] += 1
            threading.Thread(target=self._work, args=(self._lanes[lane],), daemon=True, name=f"git {lane}").start()

    def _work(self, lane: "queue.SimpleQueue[Work]") -> None:
        while True:
            do, arguments = lane.get()
            with self._changed:
                if self._closed:
                    return
                self._working += 1
            try:
                do(*arguments)
            finally:
                with self._changed:
                    self._working -= 1

    def _ask(self, remote: _Remote) -> None:
        """The cheap question, and what follows from the answer."""
        target, remote.asked_at = remote.target, time.time()
        try:
            found = ask_tips(self._git, target.remote, target.branches)
            tips: dict[str, str | None] = {branch: found.get(branch) for branch in target.branches}
        except Exception as error:  # noqa: BLE001 - a thread that ends would leave its remote unasked for ever
            self._failed(remote, _why(error))
            return
        news = [each for each in target.watches if is_news(each, tips[each.branch])]
        if any(needs_mirror(each, tips[each.branch]) for each in news):
            with self._changed:
                self._put(FETCHES, self._fetch, remote, target, tips)
            return
        self._succeeded(remote, target, tips, None)

    def _fetch(self, remote: _Remote, target: Target, tips: Mapping[str, str | None]) -> None:
        mirror = Mirror(self._git, self._directory, target.remote)
        there = {branch: tip for branch, tip in tips.items() if tip is not None}
        try:
            if remote.mirror_failures >= TELLS_AFTER:
                mirror.remove()  # the remote answers, so what fails may be here
            mirror.fetch(list(there), max(map(len, there.values())))
            self._succeeded(remote, target, tips, mirror)
            remote.mirror_failures = 0
        except Exception as error:  # noqa: BLE001
            remote.mirror_failures += 1
            self._failed(remote, _why(error))

    def _succeeded(
        self, remote: _Remote, target: Target, tips: Mapping[str, str | None], mirror: Mirror | None
    ) -> None:
        news = [each for each in target.watches if is_news(each, tips[each.branch])]
        sights = tuple(
            look(each, tips[each.branch], mirror if needs_mirror(each, tips[each.branch]) else None) for each in news
        )
        with self._changed:
            recovered, first = bool(remote.failure), not remote.answered_at
            remote.tips, remote.failure, remote.answered_at = tips, "", time.time()
            self._free(remote, remote.pace.succeeded(time.monotonic(), target.poll_s))
            self._news += sights
        if sights or recovered or first:
            self._on_news()

    def _failed(self, remote: _Remote, reason: str) -> None:
        with self._changed:
            pace = remote.pace.failed(time.monotonic(), remote.target.poll_s)
            remote.failure = reason
            self._free(remote, pace)
        if pace.failures == TELLS_AFTER:
            self._on_news()

    def _free(self, remote: _Remote, pace: Pace) -> None:
        """Called with the lock: it may be asked again."""
        remote.busy = False
        remote.pace = replace(pace, due=time.monotonic()) if remote.again else pace
        remote.again = False
        self._changed.notify()


def _why(error: Exception) -> str:
    return str(error) if isinstance(error, GitFailed) else f"{type(error).__name__}: {error}"
