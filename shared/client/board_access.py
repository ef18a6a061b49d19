"""Who may use the board's page: where it runs, one-time links into it, and the sessions that these open.

All of it is files in `<home>/board/`, which only the owner of the fleet reads. `muster board` writes links, the board
takes them; either may end everything. Of a token only its SHA-256 is stored: the files open nothing. One file lock is
held for each change, so that no session outlives a `revoke` that came in between.
"""

import contextlib
import fcntl
import hashlib
import hmac
import json
import os
import pwd
import secrets
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from shared.client.presence import QuietLog
from shared.fleet import Fleet
from shared.system.files import FileSignature, make_directory, signature_of, write
from shared.system.lock import holder
from shared.system.log import Log

LINK_LASTS_S = 600.0
SESSION_LASTS_S = 7 * 86_400.0
GRANT_LASTS_S = 1800.0
"""After the last action …"""
GRANT_LASTS_AT_MOST_S = 8 * 3600.0
"""… and after it was given."""
MOST_SESSIONS = 32
CLOCK_SLACK_S = 60.0
"""What was made later than this from now was made before the clock was set back, and could last for ever."""


# --- where it runs ---


@dataclass(frozen=True)
class BoardAddress:
    """The port of a board that listens, and its process."""

    port: int
    pid: int


def board_directory(home: Path) -> Path:
    return home / "board"


def save_address(home: Path, address: BoardAddress) -> None:
    make_directory(board_directory(home))
    write(board_directory(home) / "address.json", json.dumps(asdict(address)) + "\n")


def last_address(home: Path) -> BoardAddress | None:
    """Where the board was last, also when it does not run; None if nobody knows."""
    try:
        found = json.loads((board_directory(home) / "address.json").read_text(encoding="utf-8"))
        return BoardAddress(int(found["port"]), int(found["pid"]))
    except (OSError, ValueError, TypeError, KeyError):
        return None


def running_address(home: Path) -> BoardAddress | None:
    """Where the board is; None unless it runs: another program may have the port of one that ended."""
    found = last_address(home)
    return found if found is not None and holder(home / "run" / "board.lock") == found.pid else None


def page_url(fleet: Fleet, address: BoardAddress) -> str:
    """The page's address as people type it, without a slash at its end."""
    board = fleet.declared.board
    if board.public_origin is not None:
        return board.public_origin
    host = board.address[0]
    return f"http://{f'[{host}]' if ':' in host else host}:{address.port}"


# --- who is let in ---


@dataclass(frozen=True)
class LoginLink:
    """What a link that was taken allows, and who made it."""

    user: str
    acts: bool
    expires: float


@dataclass(frozen=True)
class BoardSession:
    """A browser that came in by a link. Times are seconds of the system's clock."""

    id_digest: str
    token_digest: str
    user: str
    created: float
    expires: float
    granted: float | None = None
    """When it was allowed to act, …"""
    acts_until: float | None = None
    """… and how long that lasts if nothing is done."""

    def is_open(self, now: float) -> bool:
        return self.created - CLOCK_SLACK_S <= now < self.expires

    def may_act(self, now: float) -> bool:
        if self.granted is None or self.acts_until is None or not self.is_open(now):
            return False
        return self.granted - CLOCK_SLACK_S <= now < self.acts_until


@dataclass(frozen=True)
class SessionSecrets:
    """What only the browser keeps: the cookie's value, and the token of the header."""

    id: str
    token: str


@dataclass(frozen=True)
class Revoked:
    sessions: int
    links: int


def digest_of(secret: str) -> str:
    return hashlib.sha256(secret.encode(errors="surrogatepass")).hexdigest()


def system_user() -> str:
    """The user of this process by the system's word, which no environment variable changes."""
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:  # a user that the system has no name for, as in containers
        return f"uid {os.getuid()}"


class BoardAccess:
    """The links and sessions of one fleet. Any thread and several processes may use it; a change is on disk at once."""

    def __init__(self, home: Path, log: Log | None = None, clock: Callable[[], float] = time.time) -> None:
        self._directory = board_directory(home)
        self._log = log or QuietLog("muster")
        self._clock = clock
        self._read: tuple[FileSignature, tuple[BoardSession, ...]] = ((), ())

    @property
    def _links(self) -> Path:
        return self._directory / "links"

    @property
    def _file(self) -> Path:
        return self._directory / "sessions.json"

    @property
    def redirect_page(self) -> Path:
        """A page that leads a browser to a link. It holds the link's token, and goes as soon as a link is taken."""
        return self._directory / "open.html"

    # --- links ---

    def make_link(self, *, acts: bool, user: str | None = None) -> str:
        """The token of a new link, which opens one session within ten minutes."""
        token = secrets.token_urlsafe(32)
        link = LoginLink(user or system_user(), acts, self._clock() + LINK_LASTS_S)
        with self._locked():
            self._drop_old_links()
            write(self._links / digest_of(token), json.dumps(asdict(link)) + "\n")
        return token

    def is_link(self, token: str) -> bool:
        """Whether there is a link with this token that nobody took yet. It may be too old."""
        return (self._links / digest_of(token)).is_file()

    def log_in(
        self, token: str, browser: BoardSession | None = None
    ) -> tuple[SessionSecrets | None, BoardSession] | None:
        """Let in the first who comes with a link in time; None for everybody else.

        A link of the same user adds to the session that the browser has already, which keeps its secrets: None.
        """
        with self._locked():
            link = self._take(self._links / digest_of(token))
            if link is None:
                return None
            known = self.current(browser) if browser is not None else None
            if known is None or known.user != link.user:
                return self._open(link)
            if link.acts:
                known = self._change(known, _granted) or known
            return None, known

    def _take(self, path: Path) -> LoginLink | None:
        link = self._link_in(path)
        try:
            path.unlink()  # of several who come with this token, one succeeds
        except OSError:
            return None
        self.redirect_page.unlink(missing_ok=True)
        return link if link is not None and self._is_fresh(link) else None

    def _link_in(self, path: Path) -> LoginLink | None:
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            return LoginLink(str(found["user"]), found["acts"] is True, float(found["expires"]))
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def _is_fresh(self, link: LoginLink) -> bool:
        return 0 < link.expires - self._clock() <= LINK_LASTS_S + CLOCK_SLACK_S

    def _drop_old_links(self) -> int:
        """Remove what nobody can take any more; returns how many are left."""
        left = 0
        for path in list(self._links.iterdir()):
            link = self._link_in(path)
            if link is not None and self._is_fresh(link):
                left += 1
            else:
                path.unlink(missing_ok=True)
        return left

    # --- sessions ---

    def _open(self, link: LoginLink) -> tuple[SessionSecrets, BoardSession]:
        """A new session. If there are too many, the oldest ends."""
        now = self._clock()
        kept = SessionSecrets(secrets.token_urlsafe(32), secrets.token_urlsafe(32))
        session = BoardSession(digest_of(kept.id), digest_of(kept.token), link.user, now, now + SESSION_LASTS_S)
        session = _granted(session, now) if link.acts else session
        others = sorted(self._sessions(), key=lambda each: each.created)
        self._save((*others[-(MOST_SESSIONS - 1) :], session))
        return kept, session

    def find(self, ids: Collection[str], token: str) -> BoardSession | None:
        """The open session of a browser that has both its secrets. A page on another port may have planted more ids."""
        digests, token_digest = [digest_of(each) for each in ids], digest_of(token)
        found = None
        for session in self._sessions():
            right_token = hmac.compare_digest(session.token_digest, token_digest)
            right_ids = sum(hmac.compare_digest(session.id_digest, each) for each in digests)
            found = session if right_token and right_ids else found
        return found

    def current(self, session: BoardSession) -> BoardSession | None:
        """The session as it is now; None if it has ended."""
        return next((each for each in self._sessions() if each.id_digest == session.id_digest), None)

    def extend(self, session: BoardSession) -> BoardSession | None:
        """It acted: its grant lasts on from now. None if it has ended."""
        with self._locked():
            return self._change(session, lambda each, now: _extended(each, now) if each.may_act(now) else each)

    def lock(self, session: BoardSession) -> BoardSession | None:
        """Take its grant back. None if it has ended."""
        with self._locked():
            return self._change(session, lambda each, _: replace(each, granted=None, acts_until=None))

    def close(self, session: BoardSession) -> None:
        with self._locked():
            self._save([each for each in self._sessions() if each.id_digest != session.id_digest])

    def revoke(self) -> Revoked:
        """End all sessions, and every link that nobody took; says how many there were."""
        if not self._directory.exists():
            return Revoked(0, 0)
        with self._locked():
            ended = Revoked(len(self._sessions()), self._drop_old_links())
            for path in [self._file, self.redirect_page, *self._links.iterdir()]:
                path.unlink(missing_ok=True)
        return ended

    def _change(
        self, session: BoardSession, changed: Callable[[BoardSession, float], BoardSession]
    ) -> BoardSession | None:
        now = self._clock()
        sessions = self._sessions()
        after = [changed(each, now) if each.id_digest == session.id_digest else each for each in sessions]
        if tuple(after) != sessions:
            self._save(after)
        return next((each for each in after if each.id_digest == session.id_digest), None)

    def _sessions(self) -> tuple[BoardSession, ...]:
        """The open ones. The file is read again when it changed."""
        signature = signature_of(self._file)
        known, sessions = self._read
        if signature != known:
            sessions = self._load() if signature else ()
            self._read = (signature, sessions)
        now = self._clock()
        return tuple(each for each in sessions if each.is_open(now))

    def _load(self) -> tuple[BoardSession, ...]:
        try:
            found = json.loads(self._file.read_text(encoding="utf-8"))
            return tuple(_session_of(each) for each in found["sessions"])
        except FileNotFoundError:
            return ()
        except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
            self._log.error(
                "could not read the board's sessions, so there are none", file=str(self._file), why=str(error)
            )
            return ()

    def _save(self, sessions: Collection[BoardSession]) -> None:
        write(self._file, json.dumps({"sessions": [asdict(each) for each in sessions]}) + "\n")
        self._read = ((), ())

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """One change at a time. The kernel gives the lock back when its process dies."""
        make_directory(self._directory)
        make_directory(self._links)
        descriptor = os.open(self._directory / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _granted(session: BoardSession, now: float) -> BoardSession:
    return replace(session, granted=now, acts_until=now + GRANT_LASTS_S)


def _extended(session: BoardSession, now: float) -> BoardSession:
    given = session.granted if session.granted is not None else now
    return replace(session, acts_until=min(now + GRANT_LASTS_S, given + GRANT_LASTS_AT_MOST_S))


def _session_of(found: dict[str, Any]) -> BoardSession:
    def moment(key: str) -> float | None:
        return None if found[key] is None else float(found[key])

    created, expires = float(found["created"]), float(found["expires"])
    return BoardSession(
        str(found["id_digest"]),
        str(found["token_digest"]),
        str(found["user"]),
        created,
        min(expires, created + SESSION_LASTS_S),
        moment("granted"),
        moment("acts_until"),
    )


def new_link(fleet: Fleet, *, acts: bool) -> str | None:
    """A link into the page that works once; None while the board does not run."""
    address = running_address(fleet.home)
    if address is None:
        return None
    # Behind the #, which browsers keep to themselves: no server, proxy or log gets the token by it.
    return f"{page_url(fleet, address)}/#{BoardAccess(fleet.home).make_link(acts=acts)}"
