"""Agents in panes that bear nobody's stamp: somebody started them by hand."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from services.reconciler.insides import Look
from shared.fleet import Fleet
from shared.identity import Identity, identify
from shared.processes import Process, agent_in
from shared.tmux import Pane

SETTLES_S = 3.0
"""A program in a person's pane is no agent of anybody's before it has run for so long."""
GOOD_FOR_S = 2.5
"""How long one look into such a pane is good."""


@dataclass(frozen=True)
class Stranger:
    """An agent that runs in tmux and bears no stamp."""

    pane: Pane
    backend: str
    process: Process
    alone: bool
    """Whether its session has no other pane."""
    identity: Identity | None = None


Key = tuple[str, int, str]
"""Pane, process and program: with another one, a pane is looked into again."""


@dataclass
class Unstamped:
    _seen: dict[Key, tuple[float, Stranger | None]] = field(default_factory=dict)
    next_look: float | None = None
    """When one that has just been started is to be looked at again."""

    def look(self, fleet: Fleet, panes: Sequence[Pane], look: Look, now: float) -> Iterator[Stranger]:
        self.next_look = None
        # One that somebody told a fleet to forget is left alone until somebody asks for it.
        unstamped = [pane for pane in panes if not (pane.fleet or pane.dead or pane.left)]
        keys = {_key(pane) for pane in unstamped}
        self._seen = {key: seen for key, seen in self._seen.items() if key in keys}
        for pane in unstamped:
            at, stranger = self._seen.get(_key(pane), (float("-inf"), None))
            if not 0 <= now - at < GOOD_FOR_S:
                alone = sum(other.session_id == pane.session_id for other in panes) == 1
                stranger = self._into(fleet, pane, look, now, alone=alone)
            if stranger is not None:
                yield stranger

    def _into(self, fleet: Fleet, pane: Pane, look: Look, now: float, *, alone: bool) -> Stranger | None:
        processes = look()
        found = agent_in(processes, fleet.backends, pane.pid)
        if found is not None and abs(now - found[1].started) < SETTLES_S:
            self._look_again(found[1].started + SETTLES_S)
            return None
        stranger = None
        if found is None and _key(pane) not in self._seen:
            self._look_again(now + SETTLES_S)  # it may be a shell that is just about to start one
        if found is not None:
            backend, process = found
            identity = identify(backend, fleet.backends[backend], processes, process, Path(pane.path))
            stranger = Stranger(pane, backend, process, alone, identity)
        self._seen[_key(pane)] = (now, stranger)
        return stranger

    def _look_again(self, at: float) -> None:
        self.next_look = at if self.next_look is None else min(at, self.next_look)

    def forget(self) -> None:
        self._seen.clear()


def _key(pane: Pane) -> Key:
    return (pane.pane_id, pane.pid, pane.command)
