"""Worker threads for work that would hold up the loop, in lanes: work that hangs delays only its own lane.

Work has a key, by which it can be cancelled and looked up. Threads start when they are needed and end with the process.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from shared.system.log import Log

Work = Callable[[threading.Event], None]
"""Gets an event that is set when the work is cancelled."""


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
    """Tasks that a thread will take next; `first` does not overtake them."""
    running: list[_Task] = field(default_factory=list)
    """Cancelled tasks too, until they have ended."""
    threads: int = 0

    @property
    def tasks(self) -> list[_Task]:
        return [*self.waiting, *self.ready, *self.running]

    def fill(self) -> None:
        while self.waiting and len(self.ready) + len(self.running) < self.size:
            self.ready.append(self.waiting.pop(0))


class Workers:
    def __init__(self, lanes: Mapping[str, int], log: Log) -> None:
        """`lanes`: the most threads of each lane, by name."""
        self._log = log
        self._lanes = {name: _Lane(name, size) for name, size in lanes.items()}
        self._condition = threading.Condition()
        self._closed = False

    def submit(self, lane: str, key: str, work: Work, *, first: bool = False) -> None:
        """Queue work; `first` puts it in front of its lane. Raises RuntimeError if the lane can't get a thread."""
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
        """Drop the work if it waits, set its event if it runs."""
        with self._condition:
            for lane in self._lanes.values():
                lane.waiting = [task for task in lane.waiting if task.key != key]
                lane.ready = [task for task in lane.ready if task.key != key]
                lane.fill()
            for task in self._tasks():
                if task.key == key:
                    task.cancelled.set()

    def close(self, within_s: float = 0.0) -> None:
        """Start nothing more, cancel what runs, and wait so long for it to end."""
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
        except RuntimeError:  # the system has no more threads; the lane's others do the work
            if not lane.threads:
                lane.waiting.clear()
                lane.ready.clear()
                raise

    def _serve(self, lane: _Lane) -> None:
        while (task := self._next(lane)) is not None:
            try:
                task.work(task.cancelled)
            except Exception as error:  # noqa: BLE001 - the thread must survive for other work
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
