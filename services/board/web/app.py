"""The board's addresses: what each request gets. `access` has checked it before."""

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from services.board.page_verbs import BadPageCommand, page_command
from services.board.web.access import LOGIN, TOKEN_HEADER, AccessGate, PageOrigins, RateLimit, only, session_of
from services.board.web.answers import RequestRefused, answer, read_object, refusal
from services.board.web.command_ledger import CommandLedger
from services.board.web.page_files import PageFiles
from services.board.web.source import PageSource
from services.board.web.stream import PageStream, StreamHub
from services.board.web.work_lanes import ORDERS, QUESTIONS, WorkLanes
from shared.client.board_access import BoardAccess, BoardSession
from shared.contract.commands import Command
from shared.contract.ids import is_id
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.system.log import Log
from shared.version import __version__

TOPICS_OF_AN_AGENT = ("comments", "timeline", "evidence", "transcript", "record")
LOGINS_A_MINUTE = 10
COMMANDS_A_SECOND = 20


class BoardApp:
    """The ASGI application `asgi`, and what it takes to end it."""

    def __init__(
        self,
        fleet: Fleet,
        source: PageSource,
        files: PageFiles,
        access: BoardAccess,
        origins: PageOrigins,
        log: Log,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._fleet, self._source, self._files, self._access = fleet, source, files, access
        self._origins, self._log, self._clock = origins, log, clock
        self._lanes, self._ledger = WorkLanes(log), CommandLedger()
        self._logins, self._commands = RateLimit(LOGINS_A_MINUTE, 60.0), RateLimit(COMMANDS_A_SECOND, 1.0)
        self._hub = StreamHub(source, access, self._lanes, self._ledger, self._described, log)
        routes = [
            *(Route(path, self._file) for path in files.files),
            Route(LOGIN, self._log_in, methods=["POST"]),
            Route("/api/lock", self._lock, methods=["POST"]),
            Route("/api/logout", self._log_out, methods=["POST"]),
            Route("/api/session", self._session),
            Route("/api/stream", self._stream),
            Route("/api/commands", self._command, methods=["POST"]),
            Route("/api/commands/{id}", self._progress),
            Route("/api/agents/{name}/{what}", self._about),
            Route("/api/day", self._day),
        ]
        app = Starlette(routes=routes, exception_handlers={HTTPException: _not_found, MusterError: _failed})
        app.router.redirect_slashes = False
        self.asgi: ASGIApp = AccessGate(app, origins, access, log)

    def end(self) -> None:
        """End all streams, and take no more work. From the web server's loop."""
        self._hub.end_all()
        self._lanes.close()

    async def _file(self, request: Request) -> Response:
        found = self._files.files.get(request.scope["path"])
        if found is None:  # the path of one with a line end behind it, say
            raise RequestRefused(404, "there is no such address")
        return Response(found.content, media_type=None, headers={"content-type": found.content_type})

    # --- the session ---

    async def _log_in(self, request: Request) -> Response:
        token = (await read_object(request)).get("token")
        if not isinstance(token, str):
            raise RequestRefused(400, "the login needs a `token`")
        if not self._access.is_link(token):
            raise self._no_link()
        browser = session_of(request, self._origins, self._access)
        found = await self._lanes.run(ORDERS, lambda: self._access.log_in(token, browser))
        if found is None:
            raise self._no_link()
        secrets, session = found
        self._hub.wake_all()
        host = only(request, "host")
        said = {"token": secrets.token if secrets else only(request, TOKEN_HEADER), "session": self._described(session)}
        return answer(said, headers={"set-cookie": self._origins.cookie(host, secrets.id)} if secrets else None)

    def _no_link(self) -> RequestRefused:
        """Only wrong tokens are counted: else anybody on this machine could keep everybody out by a few tries."""
        if not self._logins.allows():
            return RequestRefused(429, "too many tries to log in; wait a minute")
        return RequestRefused(401, "this link was used already or is too old; run `muster board` for a new one")

    async def _lock(self, request: Request) -> Response:
        session = await self._lanes.run(ORDERS, lambda: self._access.lock(_session_in(request)))
        self._hub.wake_all()
        if session is None:
            raise _logged_out()
        return answer(self._described(session))

    async def _log_out(self, request: Request) -> Response:
        await self._lanes.run(ORDERS, lambda: self._access.close(_session_in(request)))
        self._hub.wake_all()
        return answer({}, headers={"set-cookie": self._origins.cookie(only(request, "host"), "")})

    async def _session(self, request: Request) -> Response:
        return answer(self._described(_session_in(request)))

    def _described(self, session: BoardSession) -> dict[str, Any]:
        may_act = session.may_act(self._clock())
        return {
            "fleet": self._fleet.path.parent.name,
            "host": self._fleet.space.host,
            "user": session.user,
            "may_act": may_act,
            "acts_until": _iso(session.acts_until) if may_act else None,
            "expires": _iso(session.expires),
            "version": __version__,
        }

    async def _stream(self, request: Request) -> PageStream:
        agent = request.query_params.get("agent")
        if agent is not None and not is_id(agent):
            raise RequestRefused(400, "`agent` is no agent's name")
        return PageStream(self._hub, _session_in(request), agent)

    # --- commands ---

    async def _command(self, request: Request) -> Response:
        command = _command_in(await read_object(request))
        # Asked again now that the whole body is there: the grant may have ended while it came.
        session = await self._lanes.run(ORDERS, lambda: self._access.extend(_session_in(request)))
        if session is None:
            raise _logged_out()
        if not session.may_act(self._clock()):
            said = "this page only looks; run `muster board --act`, and open or paste its link to unlock actions"
            raise RequestRefused(403, said, code="locked")
        if not self._commands.allows():
            raise RequestRefused(429, "too many commands at once; wait a second")
        by = f"{session.user} (page)"
        try:
            command_id = await self._lanes.run(ORDERS, lambda: self._source.submit(command, by))
        except RequestRefused:
            raise
        except MusterError as error:
            raise RequestRefused(400, str(error)) from error
        self._ledger.add(session, command_id)
        self._hub.wake_all()
        return answer({"id": command_id}, 202)

    async def _progress(self, request: Request) -> Response:
        command = request.path_params["id"]
        found = self._source.progress(command) if self._ledger.has(_session_in(request), command) else None
        if found is None:
            raise RequestRefused(404, "this page sent no such command, or it was too long ago")
        return answer(asdict(found))

    # --- questions ---

    async def _about(self, request: Request) -> Response:
        name, what = request.path_params["name"], request.path_params["what"]
        if what not in TOPICS_OF_AN_AGENT:
            raise RequestRefused(404, "the board tells no such thing of an agent")
        found = await self._lanes.run(QUESTIONS, lambda: self._source.about(name, what)) if is_id(name) else None
        if found is None:
            raise RequestRefused(404, "there is no such agent")
        return answer(found)

    async def _day(self, _: Request) -> Response:
        return answer(await self._lanes.run(QUESTIONS, self._source.day))


def _session_in(request: Request) -> BoardSession:
    session = request.state.session
    assert isinstance(session, BoardSession)  # noqa: S101 - `access` sets it for all of /api/ but the login
    return session


def _logged_out() -> RequestRefused:
    return RequestRefused(401, "you are not logged in any more; run `muster board`")


def _command_in(document: Mapping[str, Any]) -> Command:
    """The command that a page asks for. Raises RequestRefused for what no page sends."""
    arguments = {name: value for name, value in document.items() if name != "verb" and value is not None}
    try:
        return page_command(document.get("verb"), arguments)
    except BadPageCommand as error:
        raise RequestRefused(400, str(error)) from error


def _iso(seconds: float | None) -> str | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


async def _not_found(_: Request, error: Exception) -> Response:
    """What starlette itself refuses: no such address, or not by this method."""
    status = error.status_code if isinstance(error, HTTPException) else 404
    said = "this address is not asked in this way" if status == 405 else "there is no such address"
    return refusal(RequestRefused(status, said))


async def _failed(_: Request, error: Exception) -> Response:
    return refusal(error if isinstance(error, RequestRefused) else RequestRefused(503, str(error)))
