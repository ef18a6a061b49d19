"""Limits of one connection, which uvicorn does not have: how many there are, and how slow one may be."""

import asyncio
import socket
from collections.abc import Callable

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from services.board.web.answers import encoded

MOST_CONNECTIONS = 64
REQUEST_WITHIN_S = 10.0
"""A request that is not complete by then ends its connection."""
TAKES_WITHIN_S = 20.0
"""A peer that takes nothing of what waits for it for so long loses its connection."""


class BoundedConnection(H11Protocol):
    """A connection that can't be held for nothing."""

    _patience: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn's own
        super().connection_made(transport)
        if len(self.connections) > MOST_CONNECTIONS:
            self._refuse(503, "Service Unavailable", "the board has too many connections; close some pages")
            return
        _end_when_unreachable(transport.get_extra_info("socket"))
        self._expect_request()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._expect_request()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY:  # of the next request, whose beginning came with this one
            self._expect_request()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_patience()
        self._stop_stuck()
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        super().pause_writing()
        self._stuck = self._stuck or self._later(TAKES_WITHIN_S)

    def resume_writing(self) -> None:
        super().resume_writing()
        self._stop_stuck()

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's own words
        """For what is no HTTP."""
        self._refuse(400, "Bad Request", "this is no request that the board understands")

    def _expect_request(self) -> None:
        """The time runs from the first byte of a request, and for a new connection at once, until all of it is here."""
        if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE, h11.CLOSED):
            self._stop_patience()
        elif self._patience is None and not self.transport.is_closing():
            self._patience = self._later(REQUEST_WITHIN_S)

    def _stop_patience(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _stop_stuck(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None

    def _later(self, seconds: float) -> asyncio.TimerHandle:
        # Not `close`: that would wait until the peer has taken the rest.
        abort: Callable[[], None] = self.transport.abort
        return self.loop.call_later(seconds, abort)

    def _refuse(self, status: int, phrase: str, said: str) -> None:
        """Answer past h11, which may be in any state, and close."""
        if self.cycle is not None and self.cycle.response_started and not self.cycle.response_complete:
            self.transport.abort()  # another answer is half sent
            return
        body = encoded({"said": said})
        headers = [
            *self.config.encoded_headers,
            (b"content-type", b"application/json"),
            (b"content-length", str(len(body)).encode()),
            (b"connection", b"close"),
        ]
        lines = b"".join(b"%b: %b\r\n" % header for header in headers)
        self.transport.write(f"HTTP/1.1 {status} {phrase}\r\n".encode() + lines + b"\r\n" + body)
        self.transport.close()


def _end_when_unreachable(peer: socket.socket | None) -> None:
    """Let the kernel end a connection whose peer acknowledges nothing: a laptop that was closed, say."""
    option = getattr(socket, "TCP_USER_TIMEOUT", None)
    if peer is not None and option is not None:
        peer.setsockopt(socket.IPPROTO_TCP, option, int(TAKES_WITHIN_S * 1000))
