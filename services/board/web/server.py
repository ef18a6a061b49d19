"""The board's web server: uvicorn in a thread and a loop of its own."""

import asyncio
import contextlib
import logging
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import uvicorn

from services.board.web.access import PageOrigins
from services.board.web.app import BoardApp
from services.board.web.connections import BoundedConnection
from services.board.web.page_files import PageFiles
from services.board.web.source import PageSource
from shared.client.board_access import BoardAccess, BoardAddress, last_address, save_address
from shared.errors import MusterError, sentence_of
from shared.fleet import Fleet
from shared.system.log import Log

STARTS_WITHIN_S = 10.0
STOPS_WITHIN_S = 2.0
SEND_BUFFER = 128 * 1024
"""Of each connection: what a page that reads nothing costs."""
LOGGERS = ("uvicorn", "asyncio")


class BoardServer:
    """Serves the page from `start` to `stop`. Both are called from one thread, the service's own."""

    def __init__(self, fleet: Fleet, source: PageSource, page_directory: Path, log: Log) -> None:
        self._fleet, self._source, self._log = fleet, source, log
        self._page_directory = page_directory
        self._running: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> int:
        """Listen, say where in the fleet's files, and return the port. Raises MusterError with what to do."""
        files = PageFiles(self._page_directory)
        listener = self._bound()
        port = int(listener.getsockname()[1])
        access = BoardAccess(self._fleet.home, self._log)
        app = BoardApp(self._fleet, self._source, files, access, PageOrigins(self._fleet, port), self._log)
        self._running = _Server(_config(app, files), app)
        self._thread = threading.Thread(target=self._serve, args=(self._running, listener), name="web", daemon=True)
        self._thread.start()
        if not self._running.settled.wait(STARTS_WITHIN_S) or not self._running.started:
            self.stop()
            raise MusterError("the board's web server did not start; its log tells why")
        try:
            save_address(self._fleet.home, BoardAddress(port, os.getpid()))
        except (OSError, MusterError) as error:
            self.stop()  # else it would serve a page that nobody finds
            raise MusterError(f"the board can't write down where its page is: {sentence_of(error)}") from error
        self._log.info("began to serve the page", port=port)
        return port

    def stop(self) -> None:
        """End within two seconds, streams too."""
        if self._running is not None and self._thread is not None:
            self._running.end()
            self._thread.join(STOPS_WITHIN_S)
            if self._thread.is_alive():
                self._log.warning("the web server did not end in time")

    def _bound(self) -> socket.socket:
        """A socket on the address of the fleet file; for port 0 on the port of last time, or else on a free one."""
        host, port = self._fleet.declared.board.address
        known = last_address(self._fleet.home)
        if port == 0 and known is not None:
            with contextlib.suppress(OSError, OverflowError):
                return _listener(host, known.port)
        try:
            return _listener(host, port)
        except OSError as error:
            raise MusterError(
                f"the board can't listen on {self._fleet.declared.board.listen}: {error.strerror}; free that port, or"
                f" change `board.listen` in {self._fleet.path.name}"
            ) from error

    def _serve(self, server: "_Server", listener: socket.socket) -> None:
        try:
            with listener, _logged(self._log, server.is_ending):
                asyncio.run(server.serve(sockets=[listener]))
        except Exception as error:  # noqa: BLE001 - the thread's end is seen by `is_running`
            self._log.failure("the web server ended", error)
        finally:
            server.settled.set()


class _Server(uvicorn.Server):
    """uvicorn's server; it waits for its end without looking ten times a second whether it came."""

    def __init__(self, config: uvicorn.Config, app: BoardApp) -> None:
        super().__init__(config)
        self._app = app
        self.settled = threading.Event()
        """Set when it has started, or failed to."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending = asyncio.Event()
        self.is_ending = threading.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self.server_state.default_headers = self.config.encoded_headers
        await super().startup(sockets)
        self.settled.set()

    async def main_loop(self) -> None:
        await self._ending.wait()
        self._app.end()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        # Accept no more, and only then close: a connection that is being accepted while Python closes is never closed.
        for listener in sockets or ():
            asyncio.get_running_loop().remove_reader(listener.fileno())
        await asyncio.sleep(0.01)
        await super().shutdown(sockets)
        for connection in list(self.server_state.connections):
            if isinstance(connection, BoundedConnection):
                connection.transport.abort()  # it did not end in time
        await asyncio.sleep(0.01)

    def end(self) -> None:
        """From any thread."""
        self.is_ending.set()
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # it has ended already
                self._loop.call_soon_threadsafe(self._ending.set)


def _config(app: BoardApp, files: PageFiles) -> uvicorn.Config:
    return uvicorn.Config(
        app.asgi,
        http=BoundedConnection,
        ws="none",
        loop="asyncio",
        lifespan="off",
        interface="asgi3",
        log_config=None,
        access_log=False,
        proxy_headers=False,  # who is behind a proxy is nobody's word
        server_header=False,
        date_header=False,
        headers=files.security_headers(),
        h11_max_incomplete_event_size=32 * 1024,
        timeout_graceful_shutdown=1,
    )


def _listener(host: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER)
        if listener.family == socket.AF_INET6:
            listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listener.bind((host, port))
        listener.listen()  # at once, so that nobody else gets the port meanwhile
    except BaseException:
        listener.close()
        raise
    return listener


class _LogHandler(logging.Handler):
    """Puts the errors of uvicorn and asyncio into the service's own log.

    Not those while it ends: a page that takes nothing has its answer cancelled then, which is no fault.
    """

    def __init__(self, log: Log, is_ending: threading.Event) -> None:
        super().__init__(logging.ERROR)
        self._service_log, self._is_ending = log, is_ending

    def emit(self, record: logging.LogRecord) -> None:
        if self._is_ending.is_set():
            return
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            self._service_log.failure("the web server failed", error, what=record.getMessage())
        else:
            self._service_log.error("the web server failed", what=record.getMessage())


@contextlib.contextmanager
def _logged(log: Log, is_ending: threading.Event) -> Iterator[None]:
    handler = _LogHandler(log, is_ending)
    loggers = [logging.getLogger(name) for name in LOGGERS]
    before = [each.propagate for each in loggers]
    for each in loggers:
        each.addHandler(handler)
        each.propagate = False
    try:
        yield
    finally:
        for each, propagated in zip(loggers, before, strict=True):
            each.removeHandler(handler)
            each.propagate = propagated
