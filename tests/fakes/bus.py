"""A bus without a broker, and an inbox that never waits."""

import json
import time
from collections.abc import Sequence

from shared.messaging.bus import Bus
from shared.messaging.inbox import Connected, Disconnected, Inbox, Item, MessageAcknowledged, MessageArrived


class FakeBus(Bus):
    """Accepts everything while it is up; the test acknowledges."""

    def __init__(self, *, up: bool = False) -> None:
        self.up = up
        self.filters: Sequence[str] = ()
        self.published: list[tuple[str, bytes]] = []
        self.retained: dict[str, bytes] = {}
        self.acknowledged: list[MessageArrived] = []
        self.asked_for: list[str] = []
        self.silent_since: float | None = None
        """When a silence began that has ended."""
        self.held_s = 0.0
        """How long messages may have been under way."""

    def subscribe(self, filters: Sequence[str]) -> None:
        self.filters = filters

    def start(self) -> None:
        self.up = True

    def stop(self) -> None:
        self.up = False

    def publish(self, topic: str, payload: bytes, *, retain: bool = False) -> int | None:
        if not self.up:
            return None
        if retain:
            self.retained[topic] = payload
        self.published.append((topic, payload))
        return len(self.published)

    def note_acknowledged(self, item: MessageAcknowledged) -> float | None:
        return item.at if self.up and 0 < item.mid <= len(self.published) else None

    def note_disconnected(self, item: Disconnected) -> float:
        return item.at

    def note_connected(self, item: Connected) -> bool:
        return self.up and item.connection > 0

    def under_way_since(self, item: MessageArrived) -> float:
        return item.at - self.held_s

    def acknowledge(self, messages: Sequence[MessageArrived]) -> None:
        self.acknowledged += messages

    def ask_for_retained(self, topic_filter: str) -> None:
        self.asked_for.append(topic_filter)

    @property
    def connected(self) -> bool:
        return self.up

    @property
    def answers(self) -> bool:
        return self.up

    def silence_s(self) -> float:
        return 0.0

    def ended_silence(self) -> float | None:
        began, self.silent_since = self.silent_since, None
        return began

    def falls_silent_at(self) -> float:
        return float("inf")

    def leave_if_silent(self) -> None:
        pass

    # --- what was published ---

    def topics(self) -> list[str]:
        return [topic for topic, _ in self.published]

    def replies(self) -> list[tuple[str, str]]:
        """Topic and code of every reply."""
        return [(topic, json.loads(payload)["code"]) for topic, payload in self.published if "/reply/" in topic]


class FakeInbox(Inbox):
    """Returns items at once, and records how long the loop would have waited."""

    def __init__(self) -> None:
        super().__init__()
        self.waits: list[float] = []

    def take(self, until: float) -> list[Item]:
        self.waits.append(until - time.monotonic())
        return super().take(0.0)
