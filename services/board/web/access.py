"""Who may talk to the board: checked for every request, before anything else reads it.

A browser sends requests to this server for any page that asks it to, with the cookie of any page on this host, and a
foreign name may point to it. So a request counts only if it names the server as people do (`Host`), comes from the
server's own page (`Origin`, `Sec-Fetch-Site`), and carries beside the cookie a token that only this page can read.
"""

import time
from collections import deque
from collections.abc import Awaitable, Callable
from ipaddress import ip_address

from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from services.board.web.answers import RequestRefused, answer, refusal
from shared.client.board_access import SESSION_LASTS_S, BoardAccess, BoardSession
from shared.fleet import Fleet
from shared.system.log import Log

TOKEN_HEADER = "x-muster-token"  # noqa: S105 - its name
LOGIN = "/api/login"
MOST_COOKIES = 8


class PageOrigins:
    """The names by which people reach the page, and the origin that a browser sends for each."""

    def __init__(self, fleet: Fleet, port: int) -> None:
        board = fleet.declared.board
        address = ip_address(board.address[0])
        names = [str(address)] if address.is_loopback else []
        if address.is_unspecified:
            names = ["127.0.0.1" if address.version == 4 else "::1"]
        if any(name in ("127.0.0.1", "::1") for name in names):
            names.append("localhost")
        hosts = [f"[{name}]:{port}" if ":" in name else f"{name}:{port}" for name in names]
        self._origins = {host: f"http://{host}" for host in hosts}
        if board.public_host is not None and board.public_origin is not None:
            self._origins[board.public_host] = board.public_origin
        self._stamp = fleet.stamp

    def origin_of(self, host: str | None) -> str | None:
        return None if host is None else self._origins.get(host.lower())

    def cookie_name(self, host: str | None) -> str:
        """With TLS, a name that no other page of the host can set."""
        return f"__Host-muster-{self._stamp}" if self._is_secure(host) else f"muster-{self._stamp}"

    def cookie(self, host: str | None, value: str) -> str:
        """The header that makes a browser keep the cookie; an empty value removes it."""
        lasts = int(SESSION_LASTS_S) if value else 0
        secure = "; Secure" if self._is_secure(host) else ""
        return f"{self.cookie_name(host)}={value}; Path=/; Max-Age={lasts}; HttpOnly; SameSite=Strict{secure}"

    def _is_secure(self, host: str | None) -> bool:
        return (self.origin_of(host) or "").startswith("https:")


class RateLimit:
    """At most so many within a time; `allows` counts what it allows."""

    def __init__(self, most: int, within_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._within_s, self._clock = most, within_s, clock
        self._times: deque[float] = deque()

    def allows(self) -> bool:
        now = self._clock()
        while self._times and now - self._times[0] >= self._within_s:
            self._times.popleft()
        if len(self._times) >= self._most:
            return False
        self._times.append(now)
        return True


class AccessGate:
    """Lets only proper requests through, with `request.state.session` set for all of `/api/` but the login."""

    def __init__(self, app: ASGIApp, origins: PageOrigins, access: BoardAccess, log: Log) -> None:
        self._app, self._origins, self._access, self._log = app, origins, access, log

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return  # a web socket: nothing is said, and the server closes it
        request = Request(scope, receive)
        sent = _Sent(send)
        try:
            session = self._admitted(request)
            if session is not None:
                request.state.session = session
            await self._app(scope, receive, sent)
        except RequestRefused as refused:
            await refusal(refused)(scope, receive, send)
        except Exception as error:  # noqa: BLE001 - one request fails, the server goes on
            self._log.failure("an answer of the board failed", error, path=scope["path"])
            if not sent.has_begun:
                await answer({"said": "the board failed to answer; its log tells why"}, 500)(scope, receive, send)

    def _admitted(self, request: Request) -> BoardSession | None:
        """Raises RequestRefused, or returns the session that the request is from; None where none is needed."""
        host = only(request, "host")
        origin = self._origins.origin_of(host)
        if origin is None:
            raise RequestRefused(421, "this is not an address of the board; `muster board` opens the right one")
        if request.method not in ("GET", "POST"):
            raise RequestRefused(405, "the board knows GET and POST only")
        if request.method == "POST":
            _check_post(request, origin)
        if not request.scope["path"].startswith("/api/"):
            return None
        if only(request, "sec-fetch-site") not in (None, "same-origin"):
            raise RequestRefused(403, "only the board's own page may ask this")
        if request.scope["path"] == LOGIN:
            return None
        session = self.session_of(request)
        if session is None:
            raise RequestRefused(401, "you are not logged in (any more); run `muster board`")
        return session

    def session_of(self, request: Request) -> BoardSession | None:
        """The open session whose cookie and token a request carries."""
        return session_of(request, self._origins, self._access)


def session_of(request: Request, origins: PageOrigins, access: BoardAccess) -> BoardSession | None:
    name, token = origins.cookie_name(only(request, "host")), only(request, TOKEN_HEADER)
    pairs = [each.partition("=") for line in request.headers.getlist("cookie") for each in line.split(";")]
    # All of this name: a page on another port of this host can plant one that the browser sends first.
    ids = [value.strip() for key, _, value in pairs if key.strip() == name][:MOST_COOKIES]
    return access.find(ids, token) if ids and token else None


def only(request: Request, header: str) -> str | None:
    """The value of a header that came once; None if it did not come. A second one is no request of a browser."""
    values = request.headers.getlist(header)
    if len(values) > 1:
        raise RequestRefused(400, f"the header {header} came twice")
    return values[0] if values else None


def _check_post(request: Request, origin: str) -> None:
    if only(request, "origin") != origin:
        raise RequestRefused(403, "only the board's own page may send this")
    if (only(request, "content-type") or "").partition(";")[0].strip().lower() != "application/json":
        raise RequestRefused(400, "the body must be sent as application/json")


class _Sent:
    """Passes messages on, and knows whether an answer has begun."""

    def __init__(self, send: Callable[[Message], Awaitable[None]]) -> None:
        self._send = send
        self.has_begun = False

    async def __call__(self, message: Message) -> None:
        self.has_begun = True
        await self._send(message)
