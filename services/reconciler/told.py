"""What was told already: each drift once, again only when it changes. It survives a restart."""

from collections.abc import Collection
from typing import Any

from services.reconciler.decide import LASTING, Aspect, DriftKind, is_over
from shared.events import AgentEvent, DriftResolved
from shared.turn import Turn

TOLD = "told:"
FOR_A_SESSION = (DriftKind.MISSING, DriftKind.PANE_DEAD)
"""Told of a session once and for all."""
SETTLED = {
    DriftKind.WRONG_BACKEND: "its pane runs its backend's program again",
    DriftKind.DUPLICATE_ID: "nobody else runs on its conversation any more",
    DriftKind.STALE_ID: "its conversation is on disk",
}


def forget_gone(turn: Turn, agents: Collection[str]) -> None:
    """Nothing can drift of whom there is neither a record nor a session."""
    for key, kept in turn.memory.items():
        if key.startswith(TOLD) and kept is not None and key.removeprefix(TOLD) not in agents:
            turn.remember(key, None)


class Told:
    """What was told of one agent, and of which of its sessions."""

    def __init__(self, turn: Turn, agent: str, spawn: str | None) -> None:
        self._turn, self._agent, self._spawn = turn, agent, spawn
        kept = turn.recall(f"{TOLD}{agent}") or {}
        same = kept.get("spawn") == spawn
        # Once there was one kind only, and nothing said how it was told.
        drifts = kept.get("drifts") or ({kept["kind"]: None} if "kind" in kept else {})
        stays = (DriftKind.STALE_ID,)  # a conversation outlives its session
        self._drifts: dict[str, Any] = {kind: how for kind, how in drifts.items() if same or kind in stays}

    @property
    def is_empty(self) -> bool:
        return not self._drifts

    def is_news(self, kind: DriftKind, event: AgentEvent) -> bool:
        """Whether this was not said yet. A session whose program ended and that then went away is told once."""
        if kind is DriftKind.MISSING and DriftKind.PANE_DEAD in self._drifts:
            return False
        if kind not in self._drifts:
            return True
        return self._drifts[kind] not in (None, _how(event)) and kind not in FOR_A_SESSION

    def tell(self, kind: DriftKind, event: AgentEvent) -> None:
        self._turn.tell(event)
        self._drifts[kind] = _how(event)
        self._keep()

    def settle(self, present: list[DriftKind], seen: tuple[Aspect, ...]) -> None:
        """Take back what is so no longer, and say so where it had stayed open."""
        for kind in [each for each in DriftKind if each in self._drifts and each not in present]:
            if kind in FOR_A_SESSION or (kind in LASTING and not is_over(kind, seen)):
                continue
            if kind in LASTING:
                reason = SETTLED[kind]
                self._turn.tell(DriftResolved(agent=self._agent, spawn=self._spawn, drift=kind.value, reason=reason))
            del self._drifts[kind]
            self._keep()

    def _keep(self) -> None:
        kept = {"spawn": self._spawn, "drifts": dict(self._drifts)} if self._drifts else None
        self._turn.remember(f"{TOLD}{self._agent}", kept)


def _how(event: AgentEvent) -> dict[str, Any]:
    """What makes it another drift when it changes."""
    return event.model_dump(mode="json", exclude={"agent", "kind", "pid", "pane", "command"})
