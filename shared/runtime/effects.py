"""Effects after the commit: what a turn wants done outside the journal, at least once.

An effect is a row in the journal, written with the turn that wants it. Its handler runs after the commit; the turn that
gets the result removes the row. A process that dies in between finds the row when it starts and runs the handler again,
so a handler may run twice for one effect.
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
    """What is done for one kind of effect. `Retryable`: it is tried again, later each time; else it has failed."""

    run: Callable[[Mapping[str, Any]], None]
    at_once: int = 0
    """How many run at once off the loop's thread. 0: it is quick, and runs right after the commit."""


@dataclass(frozen=True)
class EffectResult:
    effect: Effect
    error: str = ""
    """Why it failed; empty: it is done."""


class EffectRunner:
    """For the loop's thread; `wake` is called by others when there is a result."""

    def __init__(self, handlers: Mapping[str, EffectHandler], wake: Callable[[], None], log: Log) -> None:
        self._handlers = handlers
        self._wake = wake
        self._workers = Workers({kind: handler.at_once for kind, handler in handlers.items() if handler.at_once}, log)
        self._results: queue.SimpleQueue[tuple[Effect, Exception | None]] = queue.SimpleQueue()
        self._untold: list[EffectResult] = []
        self._under_way: set[str] = set()
        self._backoffs: dict[str, Backoff] = {}
        self._later: dict[str, Effect] = {}

    def start(self, effects: Iterable[Effect]) -> None:
        """Begin what was committed; what is under way is left alone."""
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
        except Exception as raised:  # noqa: BLE001 - whatever it is, the service that wanted it hears of it
            error = raised
        self._results.put((effect, error))
        if threading.current_thread() is not threading.main_thread():
            self._wake()

    def take(self, now: float) -> list[EffectResult]:
        """The results since the last time. What may pass by itself is not told: it is tried again later."""
        found, self._untold = self._untold, []
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
        """The rows of these are gone."""
        self._under_way -= {result.effect.key for result in results}

    def give_back(self, results: Iterable[EffectResult]) -> None:
        """The turn that was to hear of these has failed: the next one does."""
        self._untold += results

    def retry(self, now: float) -> None:
        for key in [key for key in self._later if not self._backoffs[key].waits(now)]:
            self._begin(self._later.pop(key))

    def due(self) -> float:
        """When `retry` has work again (monotonic)."""
        return min((self._backoffs[key].until for key in self._later), default=float("inf"))

    def close(self) -> None:
        self._workers.close()
