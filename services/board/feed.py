"""What pages show, kept in parts with versions: the service's thread writes, the web server's thread reads.

A reader keeps nothing but the version that it has seen. So a slow one costs no memory here, and what changed several
times since is sent to it once.
"""

import threading
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

KEPT_COMMENTS = 400
KEPT_REMOVALS = 400
"""A reader that is behind by more gets the whole board again."""


class BoardFeed:
    """What pages show. What is put belongs to the feed: nobody changes it afterwards. An equal value is no change."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._version = 0
        self._parts: dict[str, tuple[int, Any]] = {}
        """Fleet and loops, which are sent as a whole."""
        self._cards: dict[str, tuple[int, Mapping[str, Any]]] = {}
        self._first_cards = 0
        """The version of the first cards; 0: nobody has put any yet, which is not the same as a board without cards."""
        self._gone: dict[str, int] = {}
        """Removed cards, the latest removal last."""
        self._lines: dict[str, tuple[int, str]] = {}
        self._comments: deque[tuple[int, Mapping[str, Any]]] = deque()
        self._forgotten = 0
        """Up to this version, comments or removals were dropped."""
        self._wakes: dict[object, Callable[[], None]] = {}

    # --- for the service ---

    def put_fleet(self, fleet: Mapping[str, Any]) -> None:
        self._put("fleet", fleet)

    def put_loops(self, loops: Sequence[Mapping[str, Any]]) -> None:
        self._put("loops", loops)

    def _put(self, part: str, value: Any) -> None:
        with self._lock:
            changed = part not in self._parts or self._parts[part][1] != value
            if changed:
                self._parts[part] = (self._next(), value)
        self._tell(changed)

    def put_cards(self, changed: Mapping[str, Mapping[str, Any]], gone: Collection[str] = ()) -> None:
        """Set these cards, and remove others with their lines; all the rest stays."""
        with self._lock:
            fresh = {name: card for name, card in changed.items() if self._card(name) != card}
            lost = [name for name in gone if name in self._cards and name not in changed]
            is_news = bool(fresh or lost or not self._first_cards)
            if is_news:
                version = self._next()
                self._first_cards = self._first_cards or version
                for name, card in fresh.items():
                    self._cards[name] = (version, card)
                    self._gone.pop(name, None)
                for name in lost:
                    del self._cards[name]
                    if name in self._lines:  # told, too: the card may be back before a reader learns that it was gone
                        self._lines[name] = (version, "")
                    self._gone[name] = version
                while len(self._gone) > KEPT_REMOVALS:
                    oldest = next(iter(self._gone))
                    self._lines.pop(oldest, None)
                    self._forgotten = max(self._forgotten, self._gone.pop(oldest))
        self._tell(is_news)

    def add_comments(self, comments: Iterable[Mapping[str, Any]]) -> None:
        """Tell readers of these. One that comes later asks for an agent's comments instead."""
        with self._lock:
            new = list(comments)
            if new:
                version = self._next()
                self._comments.extend((version, comment) for comment in new)
                while len(self._comments) > KEPT_COMMENTS:
                    self._forgotten = max(self._forgotten, self._comments.popleft()[0])
        self._tell(bool(new))

    def put_lines(self, lines: Mapping[str, str]) -> None:
        """Set the current lines of these agents; "" is none."""
        with self._lock:
            fresh = {name: line for name, line in lines.items() if self._lines.get(name, (0, ""))[1] != line}
            if fresh:
                version = self._next()
                self._lines.update({name: (version, line) for name, line in fresh.items()})
        self._tell(bool(fresh))

    @property
    def watchers(self) -> int:
        """How many streams are open. While there are none, nobody needs to read screens."""
        return len(self._wakes)

    # --- for readers ---

    def card(self, name: str) -> Mapping[str, Any] | None:
        with self._lock:
            return self._card(name)

    def comments_of(self, name: str) -> int:
        """How many comments a card has had; 0 without a card."""
        card = self.card(name)
        return int(card["comments"]) if card is not None else 0

    def whole(self) -> tuple[int, dict[str, Any]]:
        """The version, and all that is known: a `board` message without `now`. Parts that nobody put are left out."""
        with self._lock:
            return self._version, self._whole()

    def since(self, version: int) -> tuple[int, dict[str, Any] | None]:
        """What changed after a version; None: nothing. It is whole for a reader that is too far behind."""
        with self._lock:
            if version == self._version:
                return version, None
            if version < self._forgotten or version > self._version:
                return self._version, self._whole()
            news: dict[str, Any] = {name: value for name, (at, value) in self._parts.items() if at > version}
            cards = {name: card for name, (at, card) in self._cards.items() if at > version}
            if cards or self._first_cards > version:
                news["cards"] = cards
            if gone := [name for name, at in self._gone.items() if at > version]:
                news["gone"] = gone
            if lines := {
                name: line for name, (at, line) in self._lines.items() if at > version and name not in self._gone
            }:
                news["lines"] = lines
            if comments := [comment for at, comment in self._comments if at > version]:
                news["comments"] = comments
            return self._version, {"whole": False, **news} if news else None

    def subscribe(self, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` after each change, from any thread, until the returned function is called. It must not block."""
        key = object()
        with self._lock:
            self._wakes = {**self._wakes, key: wake}

        def unsubscribe() -> None:
            with self._lock:
                self._wakes = {each: kept for each, kept in self._wakes.items() if each is not key}

        return unsubscribe

    # --- with the lock held ---

    def _next(self) -> int:
        self._version += 1
        return self._version

    def _card(self, name: str) -> Mapping[str, Any] | None:
        found = self._cards.get(name)
        return None if found is None else found[1]

    def _whole(self) -> dict[str, Any]:
        whole: dict[str, Any] = {"whole": True, **{name: value for name, (_, value) in self._parts.items()}}
        if self._first_cards:
            whole["cards"] = {name: card for name, (_, card) in self._cards.items()}
        if lines := {name: line for name, (_, line) in self._lines.items() if line}:
            whole["lines"] = lines
        return whole

    # --- without it ---

    def _tell(self, changed: bool) -> None:
        for wake in list(self._wakes.values()) if changed else ():
            wake()
