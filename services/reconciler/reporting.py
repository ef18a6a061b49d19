"""When a drift is reported: once, again only when it changes, and not while somebody may explain it.

An open command about the agent, or an event about it that is not in the record yet, comes first. What was reported
survives a restart.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

from services.reconciler.classification import DRIFTS, MISSING, PANE_DEAD, UNREGISTERED, Drift
from services.reconciler.comparison import Aspect
from shared.contract.envelope import AgentEvent
from shared.contract.events.drift import DriftResolved
from shared.contract.topics import AGENT_LIFECYCLE, Space
from shared.messaging.journal import Journal
from shared.runtime.turn import Turn
from shared.system.tmux import Pane

TOLD = "told:"


def forget_gone(turn: Turn, agents: Collection[str]) -> None:
    """Nothing can drift of whom there is neither a record nor a session."""
    for key, kept in turn.memory.items():
        if key.startswith(TOLD) and kept is not None and key.removeprefix(TOLD) not in agents:
            turn.remember(key, None)


class ReportedDrifts:
    """What was told of one agent, and of which of its sessions."""

    def __init__(self, turn: Turn, agent: str, spawn: str | None) -> None:
        self._turn, self._agent, self._spawn = turn, agent, spawn
        kept = turn.recall(f"{TOLD}{agent}") or {}
        same = kept.get("spawn") == spawn
        known = {name: how for name, how in kept.get("drifts", {}).items() if name in DRIFTS}
        self._drifts: dict[str, Any] = {
            name: how for name, how in known.items() if same or DRIFTS[name].kind.outlives_session
        }

    @property
    def is_empty(self) -> bool:
        return not self._drifts

    def is_news(self, drift: Drift, event: AgentEvent) -> bool:
        """Whether this was not reported yet. A session whose program ended and that then went away is reported once."""
        if drift is MISSING and PANE_DEAD.name in self._drifts:
            return False
        if drift.name not in self._drifts:
            return True
        return self._drifts[drift.name] != _how(event) and not drift.kind.ends_session

    def tell(self, drift: Drift, event: AgentEvent) -> None:
        self._turn.emit(event)
        self._drifts[drift.name] = _how(event)
        self._keep()

    def settle(self, present: Collection[Drift], seen: Collection[Aspect]) -> None:
        """Take back what is so no longer, and say so where it had stayed open."""
        for drift in [DRIFTS[name] for name in self._drifts if DRIFTS[name] not in present]:
            lasts = bool(drift.kind.resolved)
            if drift.kind.ends_session or (lasts and not set(drift.ended_by) & set(seen)):
                continue
            if lasts:
                reason = drift.kind.resolved
                self._turn.emit(DriftResolved(agent=self._agent, spawn=self._spawn, drift=drift.name, reason=reason))
            del self._drifts[drift.name]
            self._keep()

    def _keep(self) -> None:
        kept = {"spawn": self._spawn, "drifts": dict(self._drifts)} if self._drifts else None
        self._turn.remember(f"{TOLD}{self._agent}", kept)


def _how(event: AgentEvent) -> dict[str, Any]:
    """What makes it another drift when it changes."""
    return event.model_dump(mode="json", exclude={"agent", "kind", "pid", "pane", "command"})


GRACE = timedelta(seconds=2.5)
"""An agent that was asked to stop, start or restart until now is somebody's business: the record follows."""
LOOKS_AGAIN = timedelta(seconds=0.5)
PATIENCE = timedelta(seconds=30)
"""Whoever has not carried out a command by then, or a registrar that has not caught up, is not waited for."""
YOUNG_S = 3.0
"""A session that has just been made is told of by who made it."""


class Explanations:
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

    def waits(self, turn: Turn, drift: Drift, agent: str, spawn: str | None, pane: Pane | None) -> str:
        """What a drift waits for; nothing if it is to be told now."""
        if not (drift.kind.ends_session or drift is UNREGISTERED):
            return ""  # no command explains it
        key = (agent, f"{drift.name}:{spawn}")
        since = min(self._since.get(key, turn.now), turn.now)  # the clock may have been set back
        why = self._why(turn, drift, agent, pane, turn.now - since)
        if why:
            self._since[key] = since
            turn.look_again_at(turn.now + LOOKS_AGAIN)
        else:
            self._since.pop(key, None)
        return why

    def _why(self, turn: Turn, drift: Drift, agent: str, pane: Pane | None, waited: timedelta) -> str:
        if self._is_busy(agent, turn.now, waited):
            return "somebody is busy with the agent"
        lifecycle = AGENT_LIFECYCLE.name(self._space, agent=agent)
        if waited < PATIENCE and self._journal.has_told("spawner", lifecycle, after=self._recorded):
            return "what the spawner told of it is not recorded yet"
        if drift is UNREGISTERED:
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
