"""What is remembered of the checks of one session. Pure."""

from datetime import UTC, datetime
from typing import Any

from services.monitor.health.checks import Health
from shared.turn import Turn

HEALTH = "health:"


def health_of(turn: Turn, agent: str, spawn: str) -> Health:
    """What is remembered of a session."""
    return Health.read(turn.recall(f"{HEALTH}{agent}"), spawn)


def report(turn: Turn, agent: str, spawn: str) -> dict[str, Any] | None:
    """The last check, for people and programs; None where there was none."""
    health = health_of(turn, agent, spawn)
    if not health.asked_at:
        return None
    asked = datetime.fromtimestamp(health.asked_at, UTC).isoformat()
    return {"asked": asked, "state": health.state, "summary": health.summary, "trouble": health.trouble}
