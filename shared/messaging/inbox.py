"""The one queue of a service: paho, tmux, timers and signals put, the loop takes. Nothing else crosses threads."""

import queue
import time
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class MessageArrived:
    """A message from the broker."""

    topic: str
    payload: bytes
    retained: bool
    repeated: bool
    mid: int
    qos: int
    connection: int


@dataclass(frozen=True, slots=True)
class MessageAcknowledged:
    """The broker has a message of ours."""

    mid: int
    connection: int


@dataclass(frozen=True, slots=True)
class Connected:
    """A broker took us in. With `kept`, it still had our session, and brings what came while we were away."""

    connection: int
    kept: bool


@dataclass(frozen=True, slots=True)
class Disconnected:
    connection: int
    reason: str


@dataclass(frozen=True, slots=True)
class LookRequest:
    """Something may have changed: look now, or soon, if more may come."""

    why: str
    within_s: float = 0.0


@dataclass(frozen=True, slots=True)
class QuitSignal:
    signal: int


Item = MessageArrived | MessageAcknowledged | Connected | Disconnected | LookRequest | QuitSignal

BATCH = 5_000


class Inbox:
    def __init__(self) -> None:
        # SimpleQueue, for it may be put into from a signal handler and from under somebody else's lock.
        self._queue: queue.SimpleQueue[Item] = queue.SimpleQueue()

    def put(self, item: Item) -> None:
        self._queue.put(item)

    def take(self, until: float) -> list[Item]:
        """All that is there; waits for the first until a monotonic time."""
        items: list[Item] = []
        try:
            items.append(self._queue.get(timeout=max(0.0, until - time.monotonic())))
            while len(items) < BATCH:
                items.append(self._queue.get_nowait())
        except queue.Empty:
            pass
        return items
