"""The stream of one open page: the whole board first, then what changes, until the page or its session ends.

A stream keeps the versions that it has sent, and nothing that waits: one whose page is slow skips what was overtaken.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

from starlette.types import Receive, Scope, Send

from services.board.web.answers import RequestRefused, encoded
from services.board.web.command_ledger import CommandLedger
from services.board.web.source import FINAL, CommandProgress, PageSource
from services.board.web.work_lanes import SCREENS, WorkLanes
from shared.client.board_access import BoardAccess, BoardSession
from shared.errors import MusterError, sentence_of
from shared.system.log import Log

MOST_STREAMS = 16
TURN_S = 0.03
"""Changes are gathered for so long."""
SCREEN_S = 0.2
PING_S = 5.0
SESSION_CHECK_S = 1.0
"""Another process may end a session."""
FRESH_S = 120.0
"""A new stream is told the end of commands that are not older than this."""


@dataclass
class StreamHub:
    """What all streams share. Used from the web server's loop only."""

    source: PageSource
    access: BoardAccess
    lanes: WorkLanes
    ledger: CommandLedger
    describe: Callable[[BoardSession], dict[str, Any]]
    """The session's document."""
    log: Log
    open: set["PageStream"] = field(default_factory=set)
    is_ending: bool = False

    def wake_all(self) -> None:
        for stream in self.open:
            stream.wake()

    def end_all(self) -> None:
        self.is_ending = True
        self.wake_all()


class PageStream:
    """One open page, as the answer to its request."""

    def __init__(self, hub: StreamHub, session: BoardSession, agent: str | None) -> None:
        self._hub, self._session, self._agent = hub, session, agent
        self._woken = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._last_turn = 0.0
        self._version = 0
        self._described: dict[str, Any] = {}
        self._told: dict[str, CommandProgress] = {}
        """What was sent about each command that is not at its end."""
        self._ended: set[str] = set()
        self._screen: Mapping[str, Any] | None = None
        self._reading: asyncio.Task[Mapping[str, Any]] | None = None
        self._screen_due = 0.0

    def wake(self) -> None:
        """Look for news; from any thread."""
        if not self._woken.is_set():
            with contextlib.suppress(RuntimeError):  # the loop has ended meanwhile
                self._loop.call_soon_threadsafe(self._woken.set)

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        if len(self._hub.open) >= MOST_STREAMS:
            raise RequestRefused(503, "too many pages of this board are open; close one of them")
        self._hub.open.add(self)
        leave = [self._hub.source.feed.subscribe(self.wake), self._hub.source.subscribe_progress(self.wake)]
        tasks: set[asyncio.Task[Any]] = set()
        try:
            headers = [(b"content-type", b"text/event-stream; charset=utf-8"), (b"x-accel-buffering", b"no")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            tasks = {asyncio.create_task(self._tell(send)), asyncio.create_task(_closed(receive))}
            done, _pending = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            with contextlib.suppress(OSError):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            self._hub.open.discard(self)
            for each in leave:
                each()
            for task in (*tasks, *([self._reading] if self._reading is not None else [])):
                task.cancel()

    # --- what is told ---

    async def _tell(self, send: Send) -> None:
        async def say(name: str, document: Any) -> None:
            body = b"event: %b\ndata: %b\n\n" % (name.encode(), encoded(document))
            await send({"type": "http.response.body", "body": body, "more_body": True})

        self._version, board = self._hub.source.feed.whole()
        self._described = self._hub.describe(self._session)
        await say("board", {**board, "now": _now()})
        ping_due = time.monotonic() + PING_S
        self._woken.set()
        while True:
            await self._wait(ping_due)
            if self._hub.is_ending or not await self._tell_session(say):
                return
            await self._tell_board(say)
            await self._tell_commands(say)
            await self._tell_screen(say)
            if time.monotonic() >= ping_due:
                await say("ping", {})
                ping_due = time.monotonic() + PING_S

    async def _wait(self, ping_due: float) -> None:
        """Until there may be news, or something is due; never shorter than a turn."""
        began = time.monotonic()
        due = min(ping_due, began + SESSION_CHECK_S)
        if self._agent is not None and self._reading is None:
            due = min(due, self._screen_due)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, due - began)):
                await self._woken.wait()
        await asyncio.sleep(max(0.0, self._last_turn + TURN_S - time.monotonic()))
        self._last_turn = time.monotonic()
        self._woken.clear()

    async def _tell_session(self, say: Callable[[str, Any], Any]) -> bool:
        """Whether the session goes on."""
        session = self._hub.access.current(self._session)
        if session is None:
            return False
        described = self._hub.describe(session)
        if described != self._described:
            self._described = described
            await say("session", described)
        return True

    async def _tell_board(self, say: Callable[[str, Any], Any]) -> None:
        self._version, changed = self._hub.source.feed.since(self._version)
        if changed is not None:
            await say("board", {**changed, "now": _now()})

    async def _tell_commands(self, say: Callable[[str, Any], Any]) -> None:
        for command, age_s in self._hub.ledger.of(self._session):
            progress = None if command in self._ended else self._hub.source.progress(command)
            if progress is None:
                continue
            is_news = progress != self._told.get(command)
            if progress.state in FINAL:
                is_news = is_news and (command in self._told or age_s <= FRESH_S)
                self._ended.add(command)
            self._told[command] = progress
            if is_news:
                await say("command", asdict(progress))

    async def _tell_screen(self, say: Callable[[str, Any], Any]) -> None:
        if self._agent is None:
            return
        if self._reading is not None and self._reading.done():
            screen, self._reading = self._reading.result(), None
            if screen != self._screen:
                self._screen = screen
                await say("screen", screen)
        if self._reading is None and time.monotonic() >= self._screen_due:
            self._screen_due = time.monotonic() + SCREEN_S
            if not self._hub.lanes.is_busy:  # commands and questions come first
                self._reading = asyncio.create_task(self._read_screen(self._agent))
                self._reading.add_done_callback(lambda _: self._woken.set())

    async def _read_screen(self, agent: str) -> Mapping[str, Any]:
        try:
            return await self._hub.lanes.run(SCREENS, lambda: self._hub.source.screen(agent))
        except MusterError as error:
            said = str(error)
        except Exception as error:  # noqa: BLE001 - the rest of the page goes on
            self._hub.log.failure("could not read a screen for a page", error, agent=agent)
            said = sentence_of(error)
        return {"agent": agent, "spawn": None, "width": 0, "height": 0, "styles": [], "rows": [], "said": said}


async def _closed(receive: Receive) -> None:
    """Until the page is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
