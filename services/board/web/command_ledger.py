"""Which session sent which command: a page is told about its own ones only."""

import time
from collections import OrderedDict
from collections.abc import Callable

from shared.client.board_access import MOST_SESSIONS, BoardSession

MOST_COMMANDS = 200
"""Of each session; older ones are forgotten."""


class CommandLedger:
    """The latest commands of each session, by their ids. It lasts as long as the process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._sent: OrderedDict[str, OrderedDict[str, float]] = OrderedDict()

    def add(self, session: BoardSession, command: str) -> None:
        own = self._sent.setdefault(session.id_digest, OrderedDict())
        self._sent.move_to_end(session.id_digest)
        own[command] = self._clock()
        if len(own) > MOST_COMMANDS:
            own.popitem(last=False)
        if len(self._sent) > MOST_SESSIONS:
            self._sent.popitem(last=False)

    def has(self, session: BoardSession, command: str) -> bool:
        return command in self._sent.get(session.id_digest, ())

    def of(self, session: BoardSession) -> list[tuple[str, float]]:
        """The commands of a session and how many seconds ago each was sent, the oldest first."""
        now = self._clock()
        return [(command, now - at) for command, at in self._sent.get(session.id_digest, {}).items()]
