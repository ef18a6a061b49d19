"""Threads for work that waits for others: each kind has its own, so that one that hangs holds up only its like."""

import queue
import threading
from collections.abc import Callable, Mapping

Work = Callable[[], None]


class Lanes:
    """Threads are made when there is work for one more, and end with the process."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        self._sizes = sizes
        self._queues: dict[str, queue.SimpleQueue[Work]] = {name: queue.SimpleQueue() for name in sizes}
        self._threads: dict[str, int] = dict.fromkeys(sizes, 0)
        self._lock = threading.Lock()
        self._working = 0
        self._closed = False

    @property
    def is_working(self) -> bool:
        return self._working > 0

    def put(self, lane: str, work: Work) -> None:
        """Have it done. RuntimeError where no thread can be had for it."""
        with self._lock:
            if self._threads[lane] < self._sizes[lane]:
                thread = threading.Thread(target=self._run, args=(self._queues[lane],), daemon=True, name=f"git {lane}")
                try:
                    thread.start()
                    self._threads[lane] += 1
                except RuntimeError:  # the system has none to give now; those that are there do it
                    if not self._threads[lane]:
                        raise
        self._queues[lane].put(work)

    def close(self) -> None:
        """Nothing more is begun."""
        self._closed = True
        for lane, count in self._threads.items():
            for _ in range(count):
                self._queues[lane].put(lambda: None)  # so that none waits for ever

    def _run(self, work: "queue.SimpleQueue[Work]") -> None:
        while not self._closed:
            do = work.get()
            with self._lock:
                if self._closed:
                    return
                self._working += 1
            try:
                do()
            finally:
                with self._lock:
                    self._working -= 1
