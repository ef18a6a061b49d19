"""Work off the loop's thread: lanes of a few threads each, so that what hangs delays only its own kind.

Work is known by a key: it can be cancelled, and asked whether it is still under way. Threads are started when there is
work for one more, and end with the process.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from shared.system.log import Log

Work = Callable[[threading.Event], None]
"""Gets an event that is set when nobody wants it any more."""


@dataclass(eq=False)
class _Task:
    key: str
    work: Work
    cancelled: threading.Event = field(default_factory=threading.Event)


@dataclass
class _Lane:
    name: str
    size: int
    waiting: list[_Task] = field(default_factory=list)
    ready: list[_Task] = field(default_factory=list)
    """For these there is room: nothing that comes later goes before them."""
    running: list[_Task] = field(default_factory=list)
    """Also what was cancelled, until it has come to its end."""
    threads: int = 0

    @property
    def tasks(self) -> list[_Task]:
        return [*self.waiting, *self.ready, *self.running]

    def fill(self) -> None:
        while self.waiting and len(self.ready) + len(self.running) < self.size:
            self.ready.append(self.waiting.pop(0))


class Workers:
    def __init__(self, lanes: Mapping[str, int], log: Log) -> None:
        """`lanes`: how many threads each has at most."""
        self._log = log
        self._lanes = {name: _Lane(name, size) for name, size in lanes.items()}
        self._condition = threading.Condition()
        self._closed = False

    def submit(self, lane: str, key: str, work: Work, *, first: bool = False) -> None:
        """Have it done; `first`: before all that waits in its lane. RuntimeError where no thread can be had for it."""
        with self._condition:
            if self._closed:
                return
            chosen = self._lanes[lane]
            chosen.waiting.insert(0 if first else len(chosen.waiting), _Task(key, work))
            chosen.fill()
            if chosen.threads < len(chosen.ready) + len(chosen.running):
                self._add_thread(chosen)
            self._condition.notify_all()

    def is_under_way(self, key: str) -> bool:
        """Whether it waits or runs, and was not cancelled."""
        with self._condition:
            return any(task.key == key and not task.cancelled.is_set() for task in self._tasks())

    @property
    def is_busy(self) -> bool:
        with self._condition:
            return any(lane.running for lane in self._lanes.values())

    def cancel(self, key: str) -> None:
        """Nobody wants it any more: what waits is dropped, what runs is told so."""
        with self._condition:
            for lane in self._lanes.values():
                lane.waiting = [task for task in lane.waiting if task.key != key]
                lane.ready = [task for task in lane.ready if task.key != key]
                lane.fill()
            for task in self._tasks():
                if task.key == key:
                    task.cancelled.set()

    def close(self, within_s: float = 0.0) -> None:
        """Begin nothing more, cancel what runs, and wait a little for it to end."""
        with self._condition:
            self._closed = True
            for lane in self._lanes.values():
                lane.waiting.clear()
                lane.ready.clear()
            for task in self._tasks():
                task.cancelled.set()
            self._condition.notify_all()
            until = time.monotonic() + within_s
            while any(lane.running for lane in self._lanes.values()) and (left := until - time.monotonic()) > 0:
                self._condition.wait(left)

    def _tasks(self) -> list[_Task]:
        return [task for lane in self._lanes.values() for task in lane.tasks]

    def _add_thread(self, lane: _Lane) -> None:
        thread = threading.Thread(target=self._serve, args=(lane,), daemon=True, name=f"worker {lane.name}")
        try:
            thread.start()  # it waits for the lock that is held here
            lane.threads += 1
        except RuntimeError:  # the system has no thread to give now; those that are there do the work
            if not lane.threads:
                lane.waiting.clear()
                lane.ready.clear()
                raise

    def _serve(self, lane: _Lane) -> None:
        while (task := self._next(lane)) is not None:
            try:
                task.work(task.cancelled)
            except Exception as error:  # noqa: BLE001 - the thread is needed for what comes next
                self._log.failure("work failed off the loop", error, key=task.key)
            finally:
                with self._condition:
                    lane.running.remove(task)
                    lane.fill()
                    self._condition.notify_all()

    def _next(self, lane: _Lane) -> _Task | None:
        with self._condition:
            while not lane.ready and not self._closed:
                self._condition.wait()
            if self._closed:
                lane.threads -= 1
                return None
            task = lane.ready.pop(0)
            lane.running.append(task)
            return task
