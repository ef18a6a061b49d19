"""A tmux server that is a dictionary. `tests/integration/tmux/test_fake.py` runs the same calls on it and on tmux."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from shared.errors import MusterError
from shared.screen import unstyle
from shared.system.tmux import (
    AlreadyStamped,
    LogPipe,
    NoSession,
    NotTyped,
    Pane,
    PaneStamp,
    SessionExists,
    Tmux,
    TmuxAnswer,
    WrongSpawn,
)

NOW = 1_000_000
"""When every session was made and was last active, unless a test says otherwise."""


class FakeTmux(Tmux):
    """Every session has one pane. What is typed is only recorded."""

    def __init__(self) -> None:
        self.panes: dict[str, Pane] = {}
        """By session. A test may add and remove any."""
        self.shown: dict[str, str] = {}
        """What each pane shows, by its id."""
        self.trouble: Exception | None = None
        """Raised instead of every answer, while it is set."""
        self.captured: list[list[str]] = []
        self.typed: list[tuple[str, str | Sequence[str]]] = []
        self.pipes: list[tuple[str, LogPipe]] = []
        self.expected: set[str] = set()
        self._made = 0

    @property
    def server(self) -> str | None:
        return "fake" if self.panes else None

    @property
    def connected(self) -> bool:
        return self.trouble is None

    def expect(self, servers: Iterable[str]) -> None:
        self.expected.update(servers)

    def close(self) -> None:
        pass

    # --- looking ---

    def look(self) -> list[Pane]:
        self._answer()
        return [pane for _, pane in sorted(self.panes.items())]

    def stamps(self, fleet: str) -> set[PaneStamp]:
        panes = self.agent_panes(fleet)
        return {PaneStamp(agent, pane.spawn or "", pane.pane_id, pane.dead) for agent, pane in panes.items()}

    def agent_panes(self, fleet: str) -> dict[str, Pane]:
        return {pane.agent: pane for pane in self.look() if pane.agent and pane.fleet == fleet}

    def screens(self, pane_ids: Sequence[str], *, styled: bool = False) -> dict[str, str]:
        self._answer()
        self.captured.append(list(pane_ids))
        there = {pane.pane_id for pane in self.panes.values()}
        shown = {pane_id: self.shown.get(pane_id, "") for pane_id in pane_ids if pane_id in there}
        return shown if styled else {pane_id: unstyle(screen)[0] for pane_id, screen in shown.items()}

    def variables(self) -> set[str]:
        self._answer()
        return set()

    def ask(self, *commands: Sequence[str]) -> list[TmuxAnswer]:
        """`1` for every command, also for the pid of the server."""
        self._answer(must_have_sessions=True)
        return [TmuxAnswer(True, "1") for _ in commands]

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
        self._answer()
        if not cwd.is_dir():
            raise MusterError(f"session {session!r} can't start in {cwd}: it is not a directory; create it first")
        if session in self.panes:
            raise SessionExists(session)
        number, self._made = self._made, self._made + 1
        self.panes[session] = Pane(
            session=session,
            session_id=f"${number}",
            pane_id=f"%{number}",
            pid=2**22 + 1 + number,  # a number that no process has
            command=Path(argv[0]).name,
            dead=False,
            dead_status=None,
            path=str(cwd),
            title="",
            created=NOW,
            activity=NOW,
            agent=agent,
            spawn=spawn,
            fleet=fleet,
            piped=log is not None,
            own=f"%{number}",
        )
        return self.panes[session]

    def kill(self, target: str, *, spawn: str | None = None) -> bool:
        pane = self._owned(target, spawn)
        if pane is not None:
            del self.panes[pane.session]
        return pane is not None

    def end_unused_keeper(self) -> None:
        self._answer()

    def kill_all(self, targets: Sequence[tuple[str, str | None]]) -> None:
        for target, spawn in targets:
            self.kill(target, spawn=spawn)

    def stamp(self, session: str, *, agent: str, spawn: str, fleet: str, pane_id: str | None = None) -> Pane | None:
        self._answer()
        pane = self.panes.get(session)
        if pane is None or pane_id not in (None, pane.pane_id):
            return None
        if pane.is_stamped:
            what = f"the pane {pane_id} of the session {session!r}" if pane_id else f"the session {session!r}"
            raise AlreadyStamped(what, pane.fleet or "")
        own = None if pane_id else pane.pane_id
        stamps = {"agent": agent, "spawn": spawn, "fleet": fleet, "own": own, "left": None}
        return self._change(pane, **stamps, pane_only=pane_id is not None)

    def unstamp(
        self, target: str, *, spawn: str | None = None, rename: str | None = None, left: str | None = None
    ) -> bool:
        pane = self._find(target)
        if pane is None or not pane.is_stamped:
            return pane is not None  # what bears no stamp is let go already
        self._owned(target, spawn)
        del self.panes[pane.session]
        free = replace(pane, agent=None, spawn=None, fleet=None, own=None, pane_only=False, left=left)
        self.panes[rename or pane.session] = replace(free, session=rename or pane.session)
        return True

    # --- one pane ---

    def paste(self, pane_id: str, text: str, *, spawn: str) -> None:
        self._must_be_typed_into(pane_id, spawn)
        if text:
            self.typed.append((pane_id, text))

    def press(self, pane_id: str, keys: Sequence[str], *, spawn: str) -> None:
        self._must_be_typed_into(pane_id, spawn)
        self.typed.append((pane_id, list(keys)))

    def pipe(self, pane_id: str, log: LogPipe) -> bool:
        pane = self._find(pane_id)
        if pane is None or pane.dead:
            return False
        self._change(pane, piped=True)
        self.pipes.append((pane_id, log))
        return True

    def unpipe(self, pane_id: str) -> bool:
        pane = self._find(pane_id)
        return pane is not None and self._change(pane, piped=False) is not None

    # --- inside ---

    def _answer(self, *, must_have_sessions: bool = False) -> None:
        if self.trouble is not None:
            raise self.trouble
        if must_have_sessions and not self.panes:
            raise NoSession("fake", "no sessions")

    def _find(self, target: str) -> Pane | None:
        self._answer()
        return next((pane for pane in self.panes.values() if target in (pane.session_id, pane.pane_id)), None)

    def _owned(self, target: str, spawn: str | None) -> Pane | None:
        pane = self._find(target)
        if pane is not None and spawn is not None and pane.spawn != spawn:
            raise WrongSpawn(target, spawn, pane.spawn or "")
        return pane

    def _change(self, pane: Pane, **changes: object) -> Pane:
        self.panes[pane.session] = replace(pane, **changes)  # type: ignore[arg-type]
        return self.panes[pane.session]

    def _must_be_typed_into(self, pane_id: str, spawn: str) -> None:
        self._answer(must_have_sessions=True)
        pane = self._find(pane_id)
        if pane is None:
            raise NotTyped(pane_id, "it is gone")
        if pane.dead:
            raise NotTyped(pane_id, "its program has ended")
        if pane.in_mode:
            raise NotTyped(pane_id, "somebody scrolls in it")
        if pane.spawn != spawn:
            raise NotTyped(pane_id, f"it is of another session now ({pane.spawn or ''})")
