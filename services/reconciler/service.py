"""Looks at the registry and at tmux, and tells the drifts."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import ClassVar

from registry import AgentRecord, BadRegistry, RegistryFile
from services.reconciler.decide import DriftKind, drift_of, is_news
from shared.errors import Retryable
from shared.events import Data, PaneDead, SessionMissing
from shared.fleet import FleetFile
from shared.journal import Journal
from shared.tmux import Pane, Tmux
from shared.topics import AGENT_LIFECYCLE, AGENT_STATE, Topic
from shared.turn import Turn

GRACE = timedelta(seconds=2.5)
"""An agent that was asked to stop, start or restart until now is somebody's business: the record follows."""
LOOKS_AGAIN = timedelta(seconds=0.5)
PATIENCE = timedelta(seconds=30)
"""A registrar that has not caught up by then is not waited for."""


class Reconciler:
    name: ClassVar[str] = "reconciler"
    follows: ClassVar[tuple[Topic, ...]] = ()
    hints: ClassVar[tuple[Topic, ...]] = (AGENT_LIFECYCLE, AGENT_STATE)
    owns: ClassVar[tuple[Topic, ...]] = ()

    def __init__(self, fleet_file: FleetFile, registry: RegistryFile, tmux: Tmux, journal: Journal) -> None:
        self._file = fleet_file
        self._registry = registry
        self._tmux = tmux
        self._journal = journal
        self._held: dict[str, datetime] = {}
        """Since when a drift has been waiting for a record that may explain it."""

    def states(self) -> Iterable[Data]:
        return ()

    def step(self, turn: Turn) -> None:
        # The registry first: a session that is started in between is then only not known yet, never missing.
        try:
            records = self._registry.records()
        except BadRegistry as fault:
            raise Retryable(str(fault)) from fault
        stamp = self._file.fleet.stamp
        panes = {pane.agent: pane for pane in self._tmux.look() if pane.fleet == stamp and pane.agent}
        for agent, record in records.items():
            kind = drift_of(record, panes.get(agent))
            if kind is not None and record.spawn is not None:
                self._report(turn, agent, record, panes.get(agent), kind)

    def _report(self, turn: Turn, agent: str, record: AgentRecord, pane: Pane | None, kind: DriftKind) -> None:
        spawn = record.spawn or ""
        if not is_news(kind, spawn, turn.recall(f"told:{agent}")):
            return
        if self._is_somebodys_business(agent, spawn, turn):
            turn.again_at(turn.now + LOOKS_AGAIN)
            return
        session = record.session or agent
        self._held.pop(spawn, None)
        match kind:
            case DriftKind.MISSING:
                turn.tell(SessionMissing(agent=agent, spawn=spawn, session=session))
            case DriftKind.PANE_DEAD:
                status = pane.dead_status if pane is not None else None
                turn.tell(PaneDead(agent=agent, spawn=spawn, session=session, exit_status=status))
        turn.remember(f"told:{agent}", {"spawn": spawn, "kind": kind.value})

    def _is_somebodys_business(self, agent: str, spawn: str, turn: Turn) -> bool:
        """Whether somebody is busy with the agent, or has said something of it that is not recorded yet."""
        if self._journal.requests.about(agent, (turn.now - GRACE).timestamp()):
            return True
        if self._journal.has_read("registrar", f"/{self._file.fleet.space.host}/spawner", "spawner"):
            return False
        return turn.now - self._held.setdefault(spawn, turn.now) < PATIENCE
