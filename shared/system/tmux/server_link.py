"""Puts commands to one tmux server, over one control connection that it makes when it is needed.

This module decides what an ended connection or a missing server means. A server that does not answer raises, and never
reads as "no sessions"; only tmux's own words for that raise NoSession. `connection` is the wire, `control` its format.
"""

import os
import re
import socket as sockets
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import nullcontext, suppress
from pathlib import Path

from shared.system.child_process import end_with_parent
from shared.system.tmux.change_lock import ChangeLock, directory_of
from shared.system.tmux.connection import LEAVE_S, Connection
from shared.system.tmux.control import CommandLine, Garbled, TmuxAnswer
from shared.system.tmux.errors import ConnectionLost, NoSession, TmuxMissing, TmuxUnavailable
from shared.system.tmux.requests import CREATE_KEEPER, SERVER_IDENTITY, SWITCH_TO_KEEPER
from shared.system.tmux.server import restore_socket, socket_of

TRIES = 4
"""How often a question is put when its connection ends: a client attached to a session that is killed is detached, and
so may be the next one."""

NOTHING_THERE = re.compile(
    r"no sessions|no server running on .*|error connecting to .* \((No such file or directory|Connection refused)\)"
)
"""The texts with which tmux says that there is nothing to attach to. Any other text proves nothing."""
SOCKET_GONE = re.compile(r"error connecting to .* \(No such file or directory\)")


class ServerLink:
    """The connection to one tmux server. Methods may be called from any thread; one question is put at a time."""

    def __init__(self, socket: str, on_change: Callable[[], None], timeout_s: float) -> None:
        self._socket = socket
        where = ("-S", str(Path(socket).absolute())) if "/" in socket else ("-L", socket)
        self._argv = ("tmux", "-u", *where)
        self._on_change = on_change
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._change_lock = ChangeLock(directory_of(socket))
        self._connection: Connection | None = None
        self._in_keeper = False
        """Whether the connection is attached to the keeper session, which no agent's end can close."""
        self.server: str | None = None
        """The identity of the server that answered last."""
        self._servers: set[str] = set()
        """Servers that may still live though their socket is gone."""

    @property
    def connected(self) -> bool:
        connection = self._connection
        return connection is not None and not connection.ended.is_set()

    def expect(self, servers: Iterable[str]) -> None:
        self._servers.update(servers)

    # --- questions ---

    def ask(self, *lines: CommandLine, changes: bool = False, closely: bool = True) -> list[TmuxAnswer]:
        """Put commands in one batch, once; `changes` if they create, end or rename sessions.

        Raises NoSession if there is nothing to attach to, ConnectionLost if they may or may not have been run, and
        TmuxUnavailable if there was no answer in time. For `closely` see `Connection.ask`.
        """
        if not lines:
            return []
        asked = lines[0].asks
        with self._lock:
            deadline = time.monotonic() + self._timeout_s
            try:
                connection = self._connect(deadline)
                with self._change_lock.changing() if changes else nullcontext():
                    return connection.ask(lines, deadline, closely=closely)
            except TimeoutError:
                # Dropped, so that a late answer can't be taken for the answer to another question.
                self._drop(patience_s=0)
                raise TmuxUnavailable(asked, f"no reply within {self._timeout_s:g} s") from None
            except (ConnectionError, Garbled) as error:
                self._drop()
                raise ConnectionLost(asked, str(error)) from error

    def ask_safely(self, *lines: CommandLine, changes: bool = False, closely: bool = True) -> list[TmuxAnswer]:
        """Put commands that do no harm when they are run twice, again on each new connection."""
        for _ in range(TRIES - 1):
            with suppress(ConnectionLost):
                return self.ask(*lines, changes=changes, closely=closely)
        return self.ask(*lines, changes=changes, closely=closely)

    def read(self, *lines: CommandLine) -> list[TmuxAnswer]:
        """Put commands that change nothing: quickly, and closely if an answer may contain another one's frame."""
        answers = self.ask_safely(*lines, closely=False)
        if any("%end " in answer.text or "%error " in answer.text for answer in answers):
            return self.ask_safely(*lines)
        return answers

    def create_session(self, order: CommandLine) -> TmuxAnswer:
        """Put an order that creates a session, once; starts the server and the keeper session if they are missing."""
        try:
            if self._in_keeper and self.connected:
                return self.ask(order, changes=True)[0]
            answer, _ = self.ask(order, CREATE_KEEPER, changes=True)
        except NoSession:
            return self._start_server(order)
        if not self._in_keeper:
            self._switch_to_keeper()
        return answer

    def note_keeper(self, *, exists: bool) -> None:
        """Tell whether the keeper session was seen. If it was ended, tmux may have moved this client elsewhere."""
        if not exists:
            self._in_keeper = False
        elif not self._in_keeper:
            self._switch_to_keeper()

    def close(self) -> None:
        """Leave the server. It and its sessions live on, and the next question connects again."""
        with self._lock, self._change_lock.changing():
            self._drop()

    # --- the connection ---

    def _connect(self, deadline: float) -> Connection:
        if self._connection is None or self._connection.ended.is_set():
            self._drop()
            self._check_server()
            with self._change_lock.connecting():
                self._connection = self._attach()
                moved, server = self._connection.ask([SWITCH_TO_KEEPER, SERVER_IDENTITY], deadline)
                self._connection.wait_until_attached(deadline)
                self._in_keeper, self.server = moved.ok, server.text or None
                self._servers = {server.text} if server.text else set()
        return self._connection

    def _check_server(self) -> None:
        """Ask with a plain client whether a server with sessions answers: a control client would wait for it."""
        # Under load, a plain client was seen to lose its output and still exit with 0. So an option is asked for before
        # and after: "no sessions" must be an answer, not a missing one.
        mark = ("show-options", "-sv", "exit-empty")
        ok, output, errors = self._run_client(*mark, ";", "list-sessions", "-F", "#{session_id}", ";", *mark)
        if SOCKET_GONE.fullmatch(errors) and (lives := self._restore_socket()):
            raise ConnectionError(f"the socket of the server {lives} was removed, and it was told to make it anew")
        if (ok and output in ("on\non", "off\noff")) or NOTHING_THERE.fullmatch(errors):
            raise NoSession(self._socket, errors or "no sessions")
        if not ok or not output:
            raise ConnectionError(errors)

    def _restore_socket(self) -> str | None:
        """Make a living server create its removed socket again; returns that server, None if none lives."""
        for server in list(self._servers):
            if restore_socket(server, socket_of(self._socket)):
                return server
            self._servers.discard(server)
        return None

    def _attach(self) -> Connection:
        # A socket pair, not pipes: shutting it down wakes the reader even while a stopped server holds its end.
        ours, theirs = sockets.socketpair()
        with theirs:
            # -N: asking must not start a server. -E: the session keeps its own environment.
            attach = ("-N", "-C", "attach-session", "-E", "-f", "no-output,ignore-size")
            try:
                client = self._start_client(*attach, stdin=theirs.fileno(), stdout=theirs.fileno())
            except BaseException:
                ours.close()
                raise
        return Connection(client, ours, self._on_change)

    def _switch_to_keeper(self) -> None:
        with suppress(TmuxUnavailable, NoSession):
            self._in_keeper = self.ask_safely(SWITCH_TO_KEEPER)[0].ok

    def _drop(self, patience_s: float = LEAVE_S) -> None:
        if self._connection is not None:
            self._connection.close(patience_s)
            self._connection = None

    # --- plain clients ---

    def _start_server(self, order: CommandLine) -> TmuxAnswer:
        """Put an order through a plain client, which starts the server if none runs; then connect."""
        # On stdin and not as arguments: tmux takes no more than 16 KB of those.
        text = order.text + CREATE_KEEPER.text
        try:
            with self._change_lock.changing():
                _, output, errors = self._run_client("start-server", ";", "source-file", "-", text=text)
        except TimeoutError:
            raise TmuxUnavailable(order.asks, f"no reply within {self._timeout_s:g} s") from None
        self._switch_to_keeper()
        if not output and not errors:
            raise ConnectionLost(order.asks, "")
        return TmuxAnswer(bool(output), output or errors.split("\n")[0])

    def _run_client(self, *arguments: str, text: bytes = b"") -> tuple[bool, str, str]:
        """Run a plain client to its end; returns whether it succeeded, its output and its errors."""
        with self._start_client(*arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
            try:
                output, errors = client.communicate(text, self._timeout_s)
            except subprocess.TimeoutExpired:
                # Not read to the end: the server that does not answer holds the other end of the pipes.
                client.kill()
                raise TimeoutError from None
        return client.returncode == 0, _text(output), _text(errors)

    def _start_client(self, *arguments: str, stdin: int, stdout: int) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                (*self._argv, *arguments),
                env=client_environment(),
                stdin=stdin,
                stdout=stdout,
                stderr=subprocess.PIPE,
                cwd="/",  # a server that starts here keeps it, and another directory may have to be unmounted
                start_new_session=True,  # an interrupt at the service's terminal must not reach the client
                preexec_fn=end_with_parent,  # noqa: PLW1509 - one system call, and nothing that takes a lock
            )
        except FileNotFoundError:
            raise TmuxMissing from None


def client_environment() -> dict[str, str]:
    """The environment of tmux clients, and so of a server that they start."""
    return {name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE")}


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace").rstrip("\n")
