"""The one queue of a service. The threads of paho and tmux, watchers and signal handlers put; the loop takes."""

import queue
import time
from dataclasses import dataclass, field


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
    at: float = field(default_factory=time.monotonic, compare=False)
    sent_after: float | None = field(default=None, compare=False)
    """The earliest time at which it may have been sent, as far as that was looked at; monotonic, as `at`."""


@dataclass(frozen=True, slots=True)
class MessageAcknowledged:
    """The broker has acknowledged a message that this service published."""

    mid: int
    connection: int
    at: float = field(default_factory=time.monotonic)
    """When it came: the loop may take it much later."""


@dataclass(frozen=True, slots=True)
class Connected:
    """A broker accepted the connection. `kept`: it had kept the session, and delivers what was queued for it."""

    connection: int
    kept: bool


@dataclass(frozen=True, slots=True)
class Disconnected:
    connection: int
    reason: str
    at: float = field(default_factory=time.monotonic)
    """When it was noticed: the loop may take it much later."""


@dataclass(frozen=True, slots=True)
class LookRequest:
    """Something may have changed: a turn is wanted within this time."""

    why: str
    within_s: float = 0.0


@dataclass(frozen=True, slots=True)
class QuitSignal:
    signal: int


Item = MessageArrived | MessageAcknowledged | Connected | Disconnected | LookRequest | QuitSignal

MOST_ITEMS = 5_000


class Inbox:
    def __init__(self) -> None:
        # A SimpleQueue: its `put` is safe in a signal handler and while other locks are held.
        self._queue: queue.SimpleQueue[Item] = queue.SimpleQueue()

    def put(self, item: Item) -> None:
        self._queue.put(item)

    def take(self, until: float) -> list[Item]:
        """All items, at most 5,000; waits for the first one until a monotonic time."""
        items: list[Item] = []
        try:
            items.append(self._queue.get(timeout=max(0.0, until - time.monotonic())))
            while len(items) < MOST_ITEMS:
                items.append(self._queue.get_nowait())
        except queue.Empty:
            pass
        return items
