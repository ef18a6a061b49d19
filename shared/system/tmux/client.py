"""The client of a tmux server: observes sessions, starts, stamps and ends them, types into them.

What is said to tmux is written in `requests` and `stamps`, what it says about panes is read in `rows`, and
`server_link` carries both.
"""

import os
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from shared.errors import MusterError
from shared.system.tmux import requests, stamps
from shared.system.tmux.control import Garbled, TmuxAnswer, line
from shared.system.tmux.errors import (
    AlreadyStamped,
    ConnectionLost,
    NoSession,
    NotTyped,
    SessionExists,
    TmuxUnavailable,
    WrongSpawn,
)
from shared.system.tmux.log_pipe import LogPipe
from shared.system.tmux.requests import END_UNUSED_KEEPER, KEEPER
from shared.system.tmux.rows import (
    LIST,
    LIST_CAREFULLY,
    LIST_QUICKLY,
    LIST_STAMPS,
    Pane,
    PaneStamp,
    left_name,
    panes_in,
)
from shared.system.tmux.server_link import TRIES, ServerLink, client_environment

NOT_THERE = ("can't find ", "no such session: ", "no such pane: ", "no current target")
"""How tmux says that a target does not exist; the last one while a session is being ended."""


class Tmux:
    """One tmux server. Methods may be called from any thread; they wait for each other.

    Every method but `close` raises TmuxUnavailable if tmux does not answer; "no sessions" is an answer, and none of
    them raises NoSession unless it says so. Targets are tmux's ids (`$3`, `%5`). An action with `spawn` is done only if
    the target still has this spawn stamp, which tmux checks in the same step: after a restart of the server, ids start
    at $0 and %0 again.

    `on_change` is called from another thread when sessions, windows or programs may have changed, or the connection has
    ended. It should only wake whoever then calls `look`.
    """

    def __init__(
        self, socket: str = "default", *, on_change: Callable[[], None] | None = None, timeout_s: float = 5.0
    ) -> None:
        self._link = ServerLink(socket, on_change or (lambda: None), timeout_s)

    @property
    def server(self) -> str | None:
        """The identity (`pid-start_time`) of the server that answered last; None if it said that there is none."""
        return self._link.server

    def expect(self, servers: Iterable[str]) -> None:
        """Name servers of an earlier process. While one of them lives, a missing socket does not mean "no sessions"."""
        self._link.expect(servers)

    @property
    def connected(self) -> bool:
        """Whether changes are pushed. If not, only `look` finds them, and connects again."""
        return self._link.connected

    def close(self) -> None:
        """Leave the server. It and its sessions live on, and the next call connects again."""
        self._link.close()

    # --- observing ---

    def look(self) -> list[Pane]:
        """All panes that an agent runs in or may run in; [] only if tmux has no session.

        The panes of a session come in order, but the agent's own first if the session is stamped. Its other panes come
        without stamps, unless they have their own.
        """
        try:
            panes = self._list()
        except NoSession:
            self._link.server = None
            return []
        agents = [pane for pane in panes if pane.session != KEEPER]
        self._link.note_keeper(exists=len(agents) < len(panes))
        self._collect_exit_statuses(agents)
        return agents

    def agent_panes(self, fleet: str) -> dict[str, Pane]:
        """The panes of a fleet's agents, by agent, without program and directory, which cost most of `look`."""
        try:
            panes = _panes_or_raise(self._link.read(LIST_QUICKLY)[0], "list-panes")
        except NoSession:
            return {}
        self._collect_exit_statuses(panes)
        return {pane.agent: pane for pane in panes if pane.agent and pane.fleet == fleet}

    def stamps(self, fleet: str) -> set[PaneStamp]:
        """The panes that show the stamps of a fleet's agents: the cheapest observation.

        All panes of an agent's session show them.
        """
        try:
            answer = self._link.read(LIST_STAMPS)[0]
        except NoSession:
            return set()
        rows = [row.split("\t") for row in answer.lines]
        # Where there is a session there is a pane, and each has its row.
        if not answer.ok or not answer.text or any(len(row) != 5 for row in rows):
            raise TmuxUnavailable("list-panes", answer.text)
        return {
            PaneStamp(agent, spawn, pane_id, dead == "1") for of, agent, spawn, pane_id, dead in rows if of == fleet
        }

    def screens(self, pane_ids: Sequence[str], *, styled: bool = False) -> dict[str, str]:
        """What panes show, without empty lines at the end, by pane id. Panes that are gone are left out.

        `styled` keeps colours and weights as escape sequences.
        """
        try:
            answers = self._link.read(*(requests.capture(pane_id, styled=styled) for pane_id in pane_ids))
        except NoSession:
            return {}
        return {
            pane_id: answer.text.rstrip("\n")
            for pane_id, answer in zip(pane_ids, answers, strict=True)
            if _is_there(answer, "capture-pane")
        }

    def variables(self) -> set[str]:
        """The names of the environment variables that every new session gets from the server."""
        try:
            answer = self._link.read(requests.VARIABLES)[0]
        except NoSession:
            return set(client_environment())  # a server would be started with these
        return {found[1] for found in requests.EXPORTED.finditer(answer.text) if found[1]}

    def ask(self, *commands: Sequence[str]) -> list[TmuxAnswer]:
        """Put commands to tmux in one batch, once, and return their answers in order. Raises NoSession.

        Only for commands with one immediate answer: not `wait-for`, `run-shell` or `if-shell`.
        """
        return self._link.ask(*(line(command) for command in commands))

    def _list(self) -> list[Pane]:
        try:
            return _panes(self._link.read(LIST)[0])
        except Garbled:
            return _panes_or_raise(self._link.read(LIST_CAREFULLY)[0], "list-panes")

    def _collect_exit_statuses(self, panes: Iterable[Pane]) -> None:
        """Make tmux collect its dead children, if a dead agent's exit status is missing. It then pushes a change.

        Where tmux keeps utmp records (Debian's does), it ignores SIGCHLD while it removes that of a pane that has
        just closed, and so may miss the end of the pane's own program until the next child ends.
        """
        if any(pane.dead and pane.dead_status is None for pane in panes if pane.is_stamped):
            with suppress(TmuxUnavailable, NoSession, OSError):
                os.kill(int(self.ask(("display-message", "-p", "#{pid}"))[0].text), signal.SIGCHLD)

    # --- sessions ---

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
        log: LogPipe | None = None,
    ) -> Pane:
        """Start a program, without a shell, in a stamped session of its own; starts the server too if none runs.

        The program gets the server's environment without `unset`, and `env`. Its output is appended to `log`. The
        session stays when the program ends, so that its exit status can be read: `kill` ends it.
        After TmuxUnavailable the session may still appear: look for the spawn stamp before starting it again.
        """
        if not cwd.is_dir():
            # tmux would quietly start the program in the home directory.
            raise MusterError(f"session {session!r} can't start in {cwd}: it is not a directory; create it first")
        marks = {"agent": agent, "spawn": spawn, "fleet": fleet}
        order = requests.start(
            session, argv=argv, cwd=cwd, env=env, stamps=marks, width=width, height=height, unset=unset, log=log
        )
        for _ in range(TRIES):
            try:
                answer = self._link.create_session(order)
            except ConnectionLost:
                if ours := [pane for pane in self.look() if pane.spawn == spawn]:
                    return ours[0]
                continue
            if answer.text == f"duplicate session: {session}":
                raise SessionExists(session)
            return _panes_or_raise(answer, "new-session")[0]
        raise TmuxUnavailable("new-session", "every connection ended before the answer")

    def kill(self, target: str, *, spawn: str | None = None) -> bool:
        """End this session or pane; False if it is gone already. Raises WrongSpawn.

        Its programs get SIGHUP and nothing more. With `spawn`, a session in which another agent has a pane is not
        ended: only the agent's own pane is, and the session loses its stamps.
        """
        try:
            answer = self._link.ask_safely(stamps.kill(target, spawn), END_UNUSED_KEEPER, changes=True)[0]
        except NoSession:
            return False
        if spawn and (found := _other_spawn(answer)) is not None:
            if f"{stamps.SPAWN}{spawn}" in answer.lines:
                return self._kill_own_pane(target, spawn)
            raise WrongSpawn(target, spawn, found)
        return _is_there(answer, "kill-session")

    def kill_all(self, targets: Sequence[tuple[str, str | None]]) -> None:
        """End many sessions or panes, each with the spawn stamp that it must have, in one batch. Raises WrongSpawn."""
        orders = [stamps.kill(target, spawn) for target, spawn in targets]
        try:
            answers = self._link.ask_safely(*orders, END_UNUSED_KEEPER, changes=True)
        except NoSession:
            return
        for (target, spawn), answer in zip(targets, answers[:-1], strict=True):
            if not answer.ok or (spawn and _other_spawn(answer) is not None):
                self.kill(target, spawn=spawn)  # gone already, or not as usual

    def end_unused_keeper(self) -> None:
        """End Muster's own session if no agent has one, and so a server that has no other session."""
        with suppress(NoSession):
            self._link.ask_safely(END_UNUSED_KEEPER, changes=True)

    def _kill_own_pane(self, session_id: str, spawn: str) -> bool:
        """End an agent in a session that it shares with another agent."""
        panes = [pane for pane in self.look() if (pane.session_id, pane.spawn) == (session_id, spawn)]
        if not panes:
            return False
        (pane,) = panes
        rename = left_name(pane)
        if pane.own not in (None, pane.pane_id):  # its own pane is gone, and this one only stands for it
            return self.unstamp(session_id, spawn=spawn, rename=rename)
        order = stamps.leave(session_id, spawn, pane.pane_id, rename=rename)
        try:
            answer = self._link.ask_safely(order, END_UNUSED_KEEPER, changes=True)[0]
        except NoSession:
            return False
        return _is_there(answer, "kill-pane")

    def stamp(self, session: str, *, agent: str, spawn: str, fleet: str, pane_id: str | None = None) -> Pane | None:
        """Stamp a session that somebody else started, or one pane of it; None if it does not exist.

        Raises AlreadyStamped if it belongs to an agent. A session does if one of its panes does. A pane of a stamped
        session is free, unless it is the agent's own.
        """
        marks = {"agent": agent, "spawn": spawn, "fleet": fleet}
        wanted = [pane for pane in self.look() if pane.session == session and pane_id in (None, pane.pane_id)]
        if not wanted:
            return None
        try:
            # By its id: as a target, a name may be read as something else.
            answer = self._link.ask_safely(stamps.stamp(wanted[0], marks, pane_only=pane_id is not None))[0]
        except NoSession:
            return None
        if answer.ok and answer.text.startswith(stamps.TAKEN):
            fleets = [name for row in answer.lines if (name := row.removeprefix(stamps.TAKEN))]
            what = f"the pane {pane_id} of the session {session!r}" if pane_id else f"the session {session!r}"
            raise AlreadyStamped(what, fleets[0] if fleets else "")
        if not _is_there(answer, "set-option"):
            return None
        return next(pane for pane in _panes_or_raise(answer, "set-option") if pane.spawn == spawn)

    def unstamp(
        self, target: str, *, spawn: str | None = None, rename: str | None = None, left: str | None = None
    ) -> bool:
        """Remove the stamps of a session or pane, which goes on; False if it does not exist. Raises WrongSpawn.

        `rename` gives a session another name. `left` is stored as `Pane.left`. A target without stamps is no error.
        """
        try:
            answer = self._link.ask_safely(stamps.unstamp(target, spawn, rename=rename, left=left), changes=True)[0]
        except NoSession:
            return False
        if spawn and (found := _other_spawn(answer)):
            raise WrongSpawn(target, spawn, found)
        return _is_there(answer, "set-option")

    # --- one pane: typing and logging ---

    def paste(self, pane_id: str, text: str, *, spawn: str) -> None:
        """Type text into a pane as one paste. Raises NotTyped if tmux refused, and NoSession.

        After TmuxUnavailable it may have been typed: look at the screen before doing it again.
        """
        lines = requests.paste(pane_id, spawn, text)
        if not text:
            return  # tmux makes no buffer of nothing
        buffer, pasted, _ = self._link.ask(*lines)
        if not buffer.ok:
            raise TmuxUnavailable("set-buffer", buffer.text)
        _must_be_typed(pane_id, pasted)

    def press(self, pane_id: str, keys: Sequence[str], *, spawn: str) -> None:
        """Press keys in a pane, by tmux's names for them. Raises as `paste` does."""
        _must_be_typed(pane_id, self._link.ask(requests.press(pane_id, spawn, keys))[0])

    def pipe(self, pane_id: str, log: LogPipe) -> bool:
        """Append a pane's output to a log from now on; False if the pane is gone."""
        try:
            answer = self._link.ask_safely(requests.pipe(pane_id, log))[0]
        except NoSession:
            return False
        return answer.text != "target pane has exited" and _is_there(answer, "pipe-pane")

    def unpipe(self, pane_id: str) -> bool:
        """End the pipe of a pane, whoever made it; False if the pane is gone."""
        try:
            return _is_there(self._link.ask_safely(requests.unpipe(pane_id))[0], "pipe-pane")
        except NoSession:
            return False


# --- reading answers ---


def _panes(answer: TmuxAnswer) -> list[Pane]:
    if not answer.ok or not answer.text:
        raise Garbled(answer.text)
    return panes_in(answer.lines)


def _panes_or_raise(answer: TmuxAnswer, asked: str) -> list[Pane]:
    try:
        return _panes(answer)
    except Garbled as error:
        raise TmuxUnavailable(asked, str(error)) from error


def _is_there(answer: TmuxAnswer, asked: str) -> bool:
    """Whether the target of a command exists; any other refusal raises TmuxUnavailable."""
    if not answer.ok and not answer.text.startswith(NOT_THERE):
        raise TmuxUnavailable(asked, answer.text)
    return answer.ok


def _other_spawn(answer: TmuxAnswer) -> str | None:
    """The stamp that was found instead of the expected one, empty if there was none; None if it was the expected."""
    if not answer.ok or not answer.text.startswith(stamps.SPAWN):
        return None
    return answer.lines[0].removeprefix(stamps.SPAWN)


def _must_be_typed(pane_id: str, answer: TmuxAnswer) -> None:
    # If the pane is gone, tmux evaluates the condition for another one: so the answer names its pane.
    text = answer.text if answer.text.startswith("refused ") else f"typed {pane_id}    "
    _, there, mode, dead, off, spawn = text.split(" ", 5)
    if not _is_there(answer, "if-shell") or there != pane_id:
        raise NotTyped(pane_id, "it is gone")
    if dead == "1":
        raise NotTyped(pane_id, "its program has ended")
    if off == "1":
        raise NotTyped(pane_id, "its input is switched off")
    if mode:
        raise NotTyped(pane_id, "somebody scrolls in it" if mode != "0" else f"it is of another session now ({spawn})")
