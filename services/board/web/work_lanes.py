"""What would hold up the web server's loop runs in threads: in lanes, so that slow answers delay no command."""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from services.board.web.answers import RequestRefused
from shared.runtime.workers import Workers
from shared.system.log import Log

T = TypeVar("T")
ORDERS, QUESTIONS, SCREENS = "orders", "questions", "screens"
THREADS = {ORDERS: 1, QUESTIONS: 4, SCREENS: 2}
"""Orders change something: logins and commands, one after the other."""
MOST_WAITING = {ORDERS: 64, QUESTIONS: 16, SCREENS: 16}


class WorkLanes:
    """Threads of the web server. Used from its loop only."""

    def __init__(self, log: Log) -> None:
        self._workers = Workers(THREADS, log)
        self._waiting = dict.fromkeys(THREADS, 0)
        self._results: set[asyncio.Future[Any]] = set()
        self._is_closed = False

    @property
    def is_busy(self) -> bool:
        """Whether somebody waits for more than a screen."""
        return bool(self._waiting[ORDERS] or self._waiting[QUESTIONS])

    async def run(self, lane: str, work: Callable[[], T]) -> T:
        """The result of `work`, or what it raises. Refused while too many wait in this lane."""
        if self._is_closed:
            raise _ending()
        if self._waiting[lane] >= MOST_WAITING[lane]:
            raise RequestRefused(503, "the board is busy; try again in a moment")
        loop = asyncio.get_running_loop()
        result: asyncio.Future[T] = loop.create_future()

        def settle(set_it: Callable[[Any], None], value: Any) -> None:
            if not result.done():
                set_it(value)

        def tell(set_it: Callable[[Any], None], value: Any) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                loop.call_soon_threadsafe(settle, set_it, value)

        def do(_: threading.Event) -> None:
            try:
                tell(result.set_result, work())
            except Exception as error:  # noqa: BLE001 - told to who waits for it
                tell(result.set_exception, error)

        self._waiting[lane] += 1
        self._results.add(result)
        try:
            self._workers.submit(lane, lane, do)
            return await result
        finally:
            self._waiting[lane] -= 1
            self._results.discard(result)

    def close(self) -> None:
        """Nobody waits any longer, also for work that goes on in its thread."""
        self._is_closed = True
        self._workers.close()
        for result in self._results:
            if not result.done():
                result.set_exception(_ending())


def _ending() -> RequestRefused:
    return RequestRefused(503, "the board is ending; it may be back in a moment")
