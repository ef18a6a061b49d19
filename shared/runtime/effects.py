"""Effects: actions outside the journal that run after the commit of a turn, at least once.

An effect is a row in the journal, written with the turn that asked for it. Its handler runs after the commit; the turn
that gets the result removes the row. A process that dies in between finds the row at its next start and runs the
handler again, so a handler may run twice for one effect.
"""

import queue
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from shared.errors import Retryable, sentence_of
from shared.messaging.journal import Effect
from shared.runtime.poll_timer import Backoff
from shared.runtime.workers import Workers
from shared.system.log import Log


@dataclass(frozen=True)
class EffectHandler:
    """Runs one kind of effect. A `Retryable` is tried again with backoff; any other error is the result."""

    run: Callable[[Mapping[str, Any]], None]
    at_once: int = 0
    """How many run at the same time on worker threads. 0: it is quick, and runs on the loop's thread."""


@dataclass(frozen=True)
class EffectResult:
    effect: Effect
    error: str = ""
    """Why it failed; empty if it is done."""


class EffectRunner:
    """Runs the effects of one service. For the loop's thread; worker threads call `wake` when there is a result."""

    def __init__(self, handlers: Mapping[str, EffectHandler], wake: Callable[[], None], log: Log) -> None:
        self._handlers = handlers
        self._wake = wake
        self._workers = Workers({kind: handler.at_once for kind, handler in handlers.items() if handler.at_once}, log)
        self._results: queue.SimpleQueue[tuple[Effect, Exception | None]] = queue.SimpleQueue()
        self._returned: list[EffectResult] = []
        self._under_way: set[str] = set()
        self._backoffs: dict[str, Backoff] = {}
        self._later: dict[str, Effect] = {}

    def start(self, effects: Iterable[Effect]) -> None:
        """Start committed effects, unless they run already."""
        for effect in effects:
            if effect.key not in self._under_way:
                self._under_way.add(effect.key)
                self._begin(effect)

    def _begin(self, effect: Effect) -> None:
        handler = self._handlers.get(effect.kind)
        if handler is None:
            self._results.put((effect, LookupError(f"nobody knows an effect {effect.kind!r}")))
        elif handler.at_once:
            self._workers.submit(effect.kind, effect.key, lambda _: self._run(effect, handler))
        else:
            self._run(effect, handler)

    def _run(self, effect: Effect, handler: EffectHandler) -> None:
        error: Exception | None = None
        try:
            handler.run(effect.payload)
        except Exception as raised:  # noqa: BLE001 - whatever it is, it is the result
            error = raised
        self._results.put((effect, error))
        if threading.current_thread() is not threading.main_thread():
            self._wake()

    def take(self, now: float) -> list[EffectResult]:
        """The results since the last call. Those that are tried again later are not among them."""
        found, self._returned = self._returned, []
        while not self._results.empty():
            effect, error = self._results.get_nowait()
            if isinstance(error, Retryable):
                self._backoffs.setdefault(effect.key, Backoff()).failed(now)
                self._later[effect.key] = effect
                continue
            self._backoffs.pop(effect.key, None)
            found.append(EffectResult(effect, sentence_of(error) if error is not None else ""))
        return found

    def settled(self, results: Iterable[EffectResult]) -> None:
        """The rows of these effects were removed."""
        self._under_way -= {result.effect.key for result in results}

    def give_back(self, results: Iterable[EffectResult]) -> None:
        """The turn that got these results has failed: `take` gives them again."""
        self._returned += results

    def retry(self, now: float) -> None:
        """Start what failed before and whose backoff is over."""
        for key in [key for key in self._later if not self._backoffs[key].waits(now)]:
            self._begin(self._later.pop(key))

    def due(self) -> float:
        """The monotonic time at which `retry` has work."""
        return min((self._backoffs[key].until for key in self._later), default=float("inf"))

    def close(self) -> None:
        self._workers.close()
