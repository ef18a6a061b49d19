"""The client: looks at sessions, starts and ends them, types into them, and hears of changes.

One control-mode client stays attached to the server. Questions go over it in batches, and what tmux tells unasked
calls `on_change`. A silent server raises and never reads as "no sessions"; only tmux's own word for it does.
The words are in `panes` and `stamps`, what is read of panes in `rows`, the framing in `control`, the wire in
`connection`.
"""

import os
import re
import signal
import socket as sockets
import subprocess
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path

from shared.errors import MusterError
from shared.system.child_process import end_with_parent
from shared.system.tmux import requests as words
from shared.system.tmux import stamps as marking
from shared.system.tmux.change_lock import ChangeLock, directory_of
from shared.system.tmux.connection import LEAVE_S, Connection
from shared.system.tmux.control import CommandLine, Garbled, TmuxAnswer, line
from shared.system.tmux.errors import (
    AlreadyStamped,
    ConnectionLost,
    NoSession,
    NotTyped,
    SessionExists,
    TmuxMissing,
    TmuxUnavailable,
    WrongSpawn,
)
from shared.system.tmux.requests import KEEP, KEEPER, MOVE, SERVER, TIDY
from shared.system.tmux.rows import LIST, LIST_CAREFULLY, LIST_QUICKLY, LIST_STAMPS, Pane, left_name, panes_in
from shared.system.tmux.server import call_back, socket_of

# How often a question is put when the connection ends under it: a client attached to a session that is killed is
# sent away, and the next one may meet the same fate.
TRIES = 4

# The texts with which tmux says that there is surely nothing to attach to. Anything else it may say is no proof.
NOTHING_THERE = re.compile(
    r"no sessions|no server running on .*|error connecting to .* \((No such file or directory|Connection refused)\)"
)


SOCKET_GONE = re.compile(r"error connecting to .* \(No such file or directory\)")

# With which it says that a target is not there; the last in the moment in which a session is being ended.
NOT_THERE = ("can't find ", "no such session: ", "no such pane: ", "no current target")


class Tmux:
    """One tmux server. Methods may be called from any thread; questions are put one after another.

    `on_change` is called from a thread of its own whenever sessions, windows or programs may have changed, and
    when the connection has ended by itself. It should only wake somebody who then looks.
    """

    def __init__(
        self, socket: str = "default", *, on_change: Callable[[], None] | None = None, timeout_s: float = 5.0
    ) -> None:
        self._socket = socket
        where = ("-S", str(Path(socket).absolute())) if "/" in socket else ("-L", socket)
        self._argv = ("tmux", "-u", *where)
        self._on_change = on_change or (lambda: None)
        self._timeout_s = timeout_s
        self._lock = threading.Lock()
        self._calm = ChangeLock(directory_of(socket))
        self._connection: Connection | None = None
        self._is_kept = False
        self._server: str | None = None
        self._servers: set[str] = set()
        """Those that may still live though their socket is gone."""

    @property
    def server(self) -> str | None:
        """Which tmux server answered last, never the same as of another one; None when it said that there is none."""
        return self._server

    def expect(self, servers: Iterable[str]) -> None:
        """Name servers that an earlier process was connected to: while one lives on this socket, tmux's word that there
        is no such file is not believed."""
        self._servers.update(servers)

    @property
    def connected(self) -> bool:
        """Whether changes are pushed. While this is False only looking finds out, and looking connects again."""
        connection = self._connection
        return connection is not None and not connection.ended.is_set()

    def look(self) -> list[Pane]:
        """Give the panes of agents and those in which somebody's agent may run; [] only if tmux said surely that it
        has no session.

        A session's first pane comes before its others, but the agent's own where it is stamped as a whole: the others
        in it are nobody's, if they have no stamps of their own.
        """
        try:
            panes = self._list()
        except NoSession:
            self._server = None
            return []
        agents = [pane for pane in panes if pane.session != KEEPER]
        if len(agents) == len(panes):
            self._is_kept = False  # somebody ended the keeper, and tmux may have moved us elsewhere
        elif not self._is_kept:
            self._move()
        if any(pane.dead and pane.dead_status is None for pane in agents if pane.is_stamped):
            self._remind()
        return agents

    def stamps(self, fleet: str) -> dict[str, str]:
        """The fleet's agents that have a session, and its spawn stamp: a quicker look that tells no more.

        Raises as `look` does, and is {} only if tmux said surely that it has no session.
        """
        try:
            answer = self._read(LIST_STAMPS)[0]
        except NoSession:
            return {}
        rows = [row.split("\t") for row in answer.lines]
        # Where there is a session there is a pane, and each has its row.
        if not answer.ok or not answer.text or any(len(row) != 3 for row in rows):
            raise TmuxUnavailable("list-panes", answer.text)
        return {agent: spawn for of, agent, spawn in rows if of == fleet}

    def glance(self, fleet: str) -> dict[str, Pane]:
        """The panes of a fleet's agents, by agent, without the program and the directory of each: those cost most.

        Raises as `look` does, and is {} only if tmux said surely that it has no session.
        """
        try:
            panes = _panes_or_raise(self._read(LIST_QUICKLY)[0], "list-panes")
        except NoSession:
            return {}
        if any(pane.dead and pane.dead_status is None for pane in panes if pane.is_stamped):
            self._remind()
        return {pane.agent: pane for pane in panes if pane.agent and pane.fleet == fleet}

    def screens(self, pane_ids: Sequence[str], *, styled: bool = False) -> dict[str, str]:
        """Give what the panes show, without empty lines at the end. Panes that are gone are left out.

        `styled` keeps colours and weights as escape sequences.
        """
        try:
            answers = self._read(*(words.capture(pane_id, styled=styled) for pane_id in pane_ids))
        except NoSession:
            return {}
        return {
            pane_id: answer.text.rstrip("\n")
            for pane_id, answer in zip(pane_ids, answers, strict=True)
            if _is_there(answer, "capture-pane")
        }

    def start(
        self,
        *,
        session: str,
        argv: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        agent: str,
        spawn: str,
        fleet: str,
        width: int = 200,
        height: int = 50,
        unset: Sequence[str] = (),
        log: Path | None = None,
    ) -> Pane:
        """Start a program, with no shell, in a stamped session of its own, and the server too if none runs.

        Of the server's own environment it gets what is not in `unset`; what it writes is appended to `log`.

        The session stays when the program ends, so that looking can tell its status: `kill` ends it.
        After TmuxUnavailable the session may still appear: look for the spawn stamp before starting it again.
        """
        stamps = {"agent": agent, "spawn": spawn, "fleet": fleet}
        if not cwd.is_dir():
            # tmux would quietly start the program in the home directory.
            raise MusterError(f"session {session!r} can't start in {cwd}: it is not a directory; create it first")
        order = words.start(
            session, argv=argv, cwd=cwd, env=env, stamps=stamps, width=width, height=height, unset=unset, log=log
        )
        for _ in range(TRIES):
            try:
                answer = self._order(order)
            except ConnectionLost:
                if ours := [pane for pane in self.look() if pane.spawn == spawn]:
                    return ours[0]
                continue
            if answer.text == f"duplicate session: {session}":
                raise SessionExists(session)
            return _panes_or_raise(answer, "new-session")[0]
        raise TmuxUnavailable("new-session", "every connection ended before the answer")

    def kill(self, target: str, *, spawn: str | None = None) -> bool:
        """End exactly this session, or, by the id of a pane, this pane alone; False if it is gone already.

        Its programs get SIGHUP and nothing more. With `spawn`, tmux compares the stamp in the same step, and
        WrongSpawn is raised if it is another: ids begin at $0 and %0 again in a new server. A session in which another
        agent has a pane is let go then, and only the agent's own pane is ended.
        """
        try:
            answer = self._ask_safely(marking.kill(target, spawn), TIDY, changes=True)[0]
        except NoSession:
            return False
        if spawn and (found := _other_spawn(answer)) is not None:
            if f"{marking.SPAWN}{spawn}" in answer.lines:
                return self._leave(target, spawn)
            raise WrongSpawn(target, spawn, found)
        return _is_there(answer, "kill-session")

    def _leave(self, session_id: str, spawn: str) -> bool:
        """End an agent in a session that it shares with another."""
        panes = [pane for pane in self.look() if (pane.session_id, pane.spawn) == (session_id, spawn)]
        if not panes:
            return False
        (pane,) = panes
        rename = left_name(pane)
        if pane.own not in (None, pane.pane_id):  # its own is gone, and this only stands for it
            return self.unstamp(session_id, spawn=spawn, rename=rename)
        try:
            answer = self._ask_safely(
                marking.leave(session_id, spawn, pane.pane_id, rename=rename), TIDY, changes=True
            )[0]
        except NoSession:
            return False
        return _is_there(answer, "kill-pane")

    def paste(self, pane_id: str, text: str, *, spawn: str) -> None:
        """Put text into a pane as one paste. Raises NotTyped if tmux found a reason not to.

        After TmuxUnavailable it may have been put in: look at the screen before doing it again.
        """
        lines = words.paste(pane_id, spawn, text)
        if not text:
            return  # tmux makes no buffer of nothing
        buffer, put, _ = self._ask(*lines)
        if not buffer.ok:
            raise TmuxUnavailable("set-buffer", buffer.text)
        _must_be_typed(pane_id, put)

    def press(self, pane_id: str, keys: Sequence[str], *, spawn: str) -> None:
        """Press keys in a pane, by tmux's names for them. Raises as `paste` does."""
        _must_be_typed(pane_id, self._ask(words.press(pane_id, spawn, keys))[0])

    def pipe(self, pane_id: str, log: Path) -> bool:
        """Have a pane's output appended to a file from now on; False if the pane is gone."""
        try:
            answer = self._ask_safely(words.pipe(pane_id, log))[0]
        except NoSession:
            return False
        return answer.text != "target pane has exited" and _is_there(answer, "pipe-pane")

    def unpipe(self, pane_id: str) -> bool:
        """End the pipe of a pane, whoever made it; False if the pane is gone."""
        try:
            return _is_there(self._ask_safely(words.unpipe(pane_id))[0], "pipe-pane")
        except NoSession:
            return False

    def stamp(self, session: str, *, agent: str, spawn: str, fleet: str, pane_id: str | None = None) -> Pane | None:
        """Take over a session that somebody else started, or one pane of it alone; None if there is no such.

        tmux looks in the same step whether it is somebody's already, and AlreadyStamped is raised if it is. A session
        is, too, if one of its panes is; but a pane is not because its session is, unless it is the one for which that
        was stamped.
        """
        stamps = {"agent": agent, "spawn": spawn, "fleet": fleet}
        wanted = [pane for pane in self.look() if pane.session == session and pane_id in (None, pane.pane_id)]
        if not wanted:
            return None
        try:
            # By its id: as a target, a name may be read as something else.
            answer = self._ask_safely(marking.stamp(wanted[0], stamps, pane_only=pane_id is not None))[0]
        except NoSession:
            return None
        if answer.ok and answer.text.startswith(marking.TAKEN):
            fleets = [said for line in answer.lines if (said := line.removeprefix(marking.TAKEN))]
            what = f"the pane {pane_id} of the session {session!r}" if pane_id else f"the session {session!r}"
            raise AlreadyStamped(what, fleets[0] if fleets else "")
        if not _is_there(answer, "set-option"):
            return None
        return next(pane for pane in _panes_or_raise(answer, "set-option") if pane.spawn == spawn)

    def own(self, session_id: str, pane_id: str, *, spawn: str) -> Pane | None:
        """Say which pane of a stamped session is the agent's; None if it is gone. Spawns are compared as by `kill`."""
        try:
            answer = self._ask_safely(marking.own(session_id, spawn, pane_id))[0]
        except NoSession:
            return None
        if (found := _other_spawn(answer)) is not None:
            raise WrongSpawn(session_id, spawn, found)
        if not _is_there(answer, "set-option"):
            return None
        panes = _panes_or_raise(answer, "set-option")
        return next((pane for pane in panes if pane.spawn == spawn and pane.pane_id == pane_id), None)

    def unstamp(
        self, target: str, *, spawn: str | None = None, rename: str | None = None, left: str | None = None
    ) -> bool:
        """Let go of a session, or, by the id of a pane, of this pane: it goes on as anybody's. False if it is gone.

        A session gets another name if one is given. `left` is kept with it, for `Pane.left`. Spawns are compared as
        `kill` does it; what bears no stamp is let go already.
        """
        try:
            answer = self._ask_safely(marking.unstamp(target, spawn, rename=rename, left=left), changes=True)[0]
        except NoSession:
            return False
        if spawn and (found := _other_spawn(answer)):
            raise WrongSpawn(target, spawn, found)
        return _is_there(answer, "set-option")

    def variables(self) -> set[str]:
        """The names in the environment that every new session would get from the server.

        Where none runs, it would be started by us and have what we have.
        """
        try:
            answer = self._read(words.VARIABLES)[0]
        except NoSession:
            return set(_environment())
        return {found[1] for found in words.EXPORTED.finditer(answer.text) if found[1]}

    def ask(self, *commands: Sequence[str]) -> list[TmuxAnswer]:
        """Put commands to tmux in one batch, once, and give the answers in their order.

        Raises NoSession if there is nothing to attach to, TmuxUnavailable if not every answer came.
        Only for commands that are answered at once, with one answer: not `wait-for`, `run-shell` or `if-shell`.
        """
        return self._ask(*(line(command) for command in commands))

    def close(self) -> None:
        """Leave the server. It and its sessions live on, and asking connects again."""
        with self._lock, self._calm.changing():
            self._drop()

    def _order(self, order: CommandLine) -> TmuxAnswer:
        """Have a session started, and the one to which connections can keep."""
        try:
            if self._is_kept and self.connected:
                return self._ask(order, changes=True)[0]
            answer, _ = self._ask(order, KEEP, changes=True)
        except NoSession:
            return self._start_server(order)
        if not self._is_kept:
            self._move()
        return answer

    def _list(self) -> list[Pane]:
        try:
            return _panes(self._read(LIST)[0])
        except Garbled:
            return _panes_or_raise(self._read(LIST_CAREFULLY)[0], "list-panes")

    def _read(self, *lines: CommandLine) -> list[TmuxAnswer]:
        """Ask what changes nothing: quickly, and closely if an answer looks as if it might hold another."""
        answers = self._ask_safely(*lines, closely=False)
        if any("%end " in answer.text or "%error " in answer.text for answer in answers):
            return self._ask_safely(*lines)
        return answers

    def _ask_safely(self, *lines: CommandLine, changes: bool = False, closely: bool = True) -> list[TmuxAnswer]:
        """Ask what does no harm when it is asked twice, until a connection lasts."""
        for _ in range(TRIES - 1):
            with suppress(ConnectionLost):
                return self._ask(*lines, changes=changes, closely=closely)
        return self._ask(*lines, changes=changes, closely=closely)

    def _ask(self, *lines: CommandLine, changes: bool = False, closely: bool = True) -> list[TmuxAnswer]:
        if not lines:
            return []
        asked = lines[0].asks
        with self._lock:
            deadline = time.monotonic() + self._timeout_s
            try:
                connection = self._connect(deadline)
                with self._calm.changing() if changes else nullcontext():
                    return connection.ask(lines, deadline, closely=closely)
            except TimeoutError:
                # Dropped, so that an answer that comes late can't be taken for the answer to another question.
                self._drop(patience_s=0)
                raise TmuxUnavailable(asked, f"no reply within {self._timeout_s:g} s") from None
            except (ConnectionError, Garbled) as error:
                self._drop()
                raise ConnectionLost(asked, str(error)) from error

    def _connect(self, deadline: float) -> Connection:
        if self._connection is None or self._connection.ended.is_set():
            self._drop()
            self._knock()
            with self._calm.connecting():
                self._connection = self._attach()
                moved, server = self._connection.ask([MOVE, SERVER], deadline)
                self._is_kept, self._server = moved.ok, server.text or None
                self._servers = {server.text} if server.text else set()
        return self._connection

    def _knock(self) -> None:
        """Ask as a plain client whether a server with sessions answers, for a control client must not have to wait."""
        # Under load, what a plain client prints was seen to be lost though it ended well. So an option is asked for
        # before and after: no sessions must be an answer, and not the want of one.
        mark = ("show-options", "-sv", "exit-empty")
        ok, said, errors = self._talk(*mark, ";", "list-sessions", "-F", "#{session_id}", ";", *mark)
        if SOCKET_GONE.fullmatch(errors) and (lives := self._call_back()):
            raise ConnectionError(f"the socket of the server {lives} was removed, and it was told to make it anew")
        if (ok and said in ("on\non", "off\noff")) or NOTHING_THERE.fullmatch(errors):
            raise NoSession(self._socket, errors or "no sessions")
        if not ok or not said:
            raise ConnectionError(errors)

    def _call_back(self) -> str | None:
        """Have a server whose socket somebody removed make it anew; None if no such server lives."""
        for server in list(self._servers):
            if call_back(server, socket_of(self._socket)):
                return server
            self._servers.discard(server)
        return None

    def _attach(self) -> Connection:
        # A socket pair and not pipes: shutting it down wakes the reader though a stopped server holds its end.
        ours, theirs = sockets.socketpair()
        with theirs:
            # -N: asking must not start a server. -E: our environment is not the session's.
            attach = ("-N", "-C", "attach-session", "-E", "-f", "no-output,ignore-size")
            try:
                client = self._run(*attach, stdin=theirs.fileno(), stdout=theirs.fileno())
            except BaseException:
                ours.close()
                raise
        return Connection(client, ours, self._on_change)

    def _move(self) -> None:
        """Go where nobody is sent away, if there is such a session."""
        with suppress(TmuxUnavailable, NoSession):
            self._is_kept = self._ask_safely(MOVE)[0].ok

    def _remind(self) -> None:
        """Have tmux collect its dead children. What it then learns is pushed.

        Where tmux keeps utmp records (Debian's does), it ignores SIGCHLD while it removes that of a pane that has
        just closed, and so may miss the end of the pane's own program until the next child ends.
        """
        with suppress(TmuxUnavailable, NoSession, OSError):
            os.kill(int(self.ask(("display-message", "-p", "#{pid}"))[0].text), signal.SIGCHLD)

    def _drop(self, patience_s: float = LEAVE_S) -> None:
        if self._connection is not None:
            self._connection.close(patience_s)
            self._connection = None

    def _start_server(self, order: CommandLine) -> TmuxAnswer:
        """Give an order where no client can attach, starting the server if none runs; then connect."""
        # On stdin and not as arguments: tmux takes no more than 16 KB of those.
        try:
            with self._calm.changing():
                _, said, errors = self._talk("start-server", ";", "source-file", "-", text=order.text + KEEP.text)
        except TimeoutError:
            raise TmuxUnavailable(order.asks, f"no reply within {self._timeout_s:g} s") from None
        self._move()
        if not said and not errors:
            raise ConnectionLost(order.asks, "")
        return TmuxAnswer(bool(said), said or errors.split("\n")[0])

    def _talk(self, *arguments: str, text: bytes = b"") -> tuple[bool, str, str]:
        """Run a plain client to its end; give whether it went well, and its two outputs."""
        with self._run(*arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
            try:
                said, errors = client.communicate(text, self._timeout_s)
            except subprocess.TimeoutExpired:
                # Not read to the end: the server that does not answer holds the other end of the pipes.
                client.kill()
                raise TimeoutError from None
        return client.returncode == 0, _text(said), _text(errors)

    def _run(self, *arguments: str, stdin: int, stdout: int) -> subprocess.Popen[bytes]:
        try:
            return subprocess.Popen(
                (*self._argv, *arguments),
                env=_environment(),
                stdin=stdin,
                stdout=stdout,
                stderr=subprocess.PIPE,
                cwd="/",  # a server that starts here keeps it, and ours may have to be unmounted
                start_new_session=True,  # an interrupt at our terminal is for us, not for the client
                preexec_fn=end_with_parent,  # noqa: PLW1509 - one system call, and nothing that takes a lock
            )
        except FileNotFoundError:
            raise TmuxMissing from None


def _environment() -> dict[str, str]:
    """What tmux is run with."""
    return {name: value for name, value in os.environ.items() if name not in ("TMUX", "TMUX_PANE")}


def _panes(answer: TmuxAnswer) -> list[Pane]:
    if not answer.ok or not answer.text:
        raise Garbled(answer.text)
    return panes_in(answer.lines)


def _panes_or_raise(answer: TmuxAnswer, asked: str) -> list[Pane]:
    try:
        return _panes(answer)
    except Garbled as error:
        raise TmuxUnavailable(asked, str(error)) from error


def _other_spawn(answer: TmuxAnswer) -> str | None:
    """The stamp that was found where another was expected; empty where there was none."""
    if not answer.ok or not answer.text.startswith(marking.SPAWN):
        return None
    return answer.lines[0].removeprefix(marking.SPAWN)


def _text(output: bytes) -> str:
    return output.decode("utf-8", "replace").rstrip("\n")


def _must_be_typed(pane_id: str, answer: TmuxAnswer) -> None:
    # Where a pane is gone, tmux asks its condition of another one.
    said = answer.text if answer.text.startswith("refused ") else f"typed {pane_id}    "
    _, there, mode, dead, off, spawn = said.split(" ", 5)
    if not _is_there(answer, "if-shell") or there != pane_id:
        raise NotTyped(pane_id, "it is gone")
    if dead == "1":
        raise NotTyped(pane_id, "its program has ended")
    if off == "1":
        raise NotTyped(pane_id, "its input is switched off")
    if mode:
        raise NotTyped(pane_id, "somebody scrolls in it" if mode != "0" else f"it is of another session now ({spawn})")


def _is_there(answer: TmuxAnswer, asked: str) -> bool:
    """Whether the target of a command was there; any other refusal is raised."""
    if not answer.ok and not answer.text.startswith(NOT_THERE):
        raise TmuxUnavailable(asked, answer.text)
    return answer.ok
