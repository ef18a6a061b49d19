"""What policies ask of the spawner: a text, only into an agent that is idle, and soon or not at all; a new session."""

from datetime import UTC, datetime, timedelta

from services.monitor.care.sight import Sight
from shared.commands import Restart, Send

WITHIN_S = 30.0
"""So long it may wait for an input box; what is typed later would be about what was."""


def send(sight: Sight, text: str, errand: str) -> Send:
    """A menu that offers something is left for it, where that costs and changes nothing; no other ever is."""
    return Send(
        agent=sight.agent,
        spawn=sight.spawn,
        text=text,
        when="if_idle",
        leaves_menu=True,
        wait_s=WITHIN_S,
        expires=datetime.fromtimestamp(sight.now, UTC) + timedelta(seconds=2 * WITHIN_S),
        id=errand,
    )


RESTARTS_WITHIN = timedelta(minutes=10)
"""So long the spawner may be away: it is about one session, so that nothing else can come of it."""


def restart(sight: Sight, errand: str) -> Restart:
    """End its session as if it had died: it is started again within its restart limits."""
    expires = datetime.fromtimestamp(sight.now, UTC) + RESTARTS_WITHIN
    return Restart(agent=sight.agent, spawn=sight.spawn, counts=True, id=errand, expires=expires)
