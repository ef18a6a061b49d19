"""Waiting for an explanation: whoever is busy with an agent, or has said what is not recorded yet, goes first."""

from datetime import datetime, timedelta

from services.reconciler.decide import DriftKind
from shared.journal import Journal
from shared.tmux import Pane
from shared.topics import AGENT_LIFECYCLE, Space
from shared.turn import Turn

GRACE = timedelta(seconds=2.5)
"""An agent that was asked to stop, start or restart until now is somebody's business: the record follows."""
LOOKS_AGAIN = timedelta(seconds=0.5)
PATIENCE = timedelta(seconds=30)
"""Whoever has not carried out a command by then, or a registrar that has not caught up, is not waited for."""
YOUNG_S = 3.0
"""A session that has just been made is told of by who made it."""
EXPLAINED = (DriftKind.MISSING, DriftKind.PANE_DEAD, DriftKind.UNREGISTERED)
"""Drifts that a command under way would explain."""


class Patience:
    def __init__(self, journal: Journal, space: Space) -> None:
        self._journal = journal
        self._space = space
        self._since: dict[tuple[str, str], datetime] = {}
        """Since when a drift has been waiting."""
        self._recorded = 0
        """How much of what the spawner told is surely in the records that are being looked at."""

    def begin(self) -> None:
        """To be called before the records are read: what the registrar reads from now on may not be in them."""
        self._recorded = self._journal.place_of("registrar", f"/{self._space.host}/spawner")

    def forget(self, now: datetime) -> None:
        """Drifts that are no more do not wait."""
        self._since = {key: since for key, since in self._since.items() if abs(now - since) < 2 * PATIENCE}

    def waits(self, turn: Turn, kind: DriftKind, agent: str, spawn: str | None, pane: Pane | None) -> str:
        """What a drift waits for; nothing if it is to be told now."""
        key = (agent, f"{kind}:{spawn}")
        if kind not in EXPLAINED:
            return ""
        since = min(self._since.get(key, turn.now), turn.now)  # the clock may have been set back
        why = self._why(turn, kind, agent, pane, turn.now - since)
        if why:
            self._since[key] = since
            turn.again_at(turn.now + LOOKS_AGAIN)
        else:
            self._since.pop(key, None)
        return why

    def _why(self, turn: Turn, kind: DriftKind, agent: str, pane: Pane | None, waited: timedelta) -> str:
        if self._is_busy(agent, turn.now, waited):
            return "somebody is busy with the agent"
        lifecycle = AGENT_LIFECYCLE.name(self._space, agent=agent)
        if waited < PATIENCE and self._journal.has_told("spawner", lifecycle, after=self._recorded):
            return "what the spawner told of it is not recorded yet"
        if kind is DriftKind.UNREGISTERED:
            if pane is not None and abs(turn.now.timestamp() - pane.created) < YOUNG_S:
                return "its session has just been made"
            if waited < GRACE:
                return "its record may follow"
        return ""

    def _is_busy(self, agent: str, now: datetime, waited: timedelta) -> bool:
        """Whether somebody is just doing, or did until now, what was asked of the agent.

        An answer may be given while we look; one that is of later than that is from before the clock was set back.
        """
        requests, at, grace_s = self._journal.requests, now.timestamp(), GRACE.total_seconds()
        if waited < PATIENCE and requests.open_about(agent, at):
            return True
        return requests.answered_about(agent, at - grace_s, at + grace_s)
