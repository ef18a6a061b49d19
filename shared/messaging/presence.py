"""A service's own retained state: online, degraded or offline, with figures, and its last will.

Every connection has a number, and the will carries it. So an `offline` that the broker sends late does not hide a newer
`online`: readers compare the numbers, and the service publishes its state again.
"""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from shared.contract.states import Presence, ServiceState
from shared.contract.topics import SERVICE_STATE, MalformedDocument, read_position
from shared.contract.writer import DocumentWriter
from shared.messaging.bus import Bus, Will
from shared.messaging.inbox import MessageArrived
from shared.version import __version__


def state_of(
    writer: DocumentWriter, status: Presence, connection: int, reason: str = "", **health: Any
) -> ServiceState:
    return ServiceState(
        service=writer.service,
        status=status,
        connection=connection,
        pid=os.getpid(),
        version=__version__,
        reason=reason,
        health=health,
    )


def make_will(writer: DocumentWriter) -> Callable[[int], Will]:
    """The will of each connection, by its number."""

    def will(connection: int) -> Will:
        state = state_of(writer, Presence.OFFLINE, connection, "the connection broke")
        return Will(*writer.state(state, seq=0, time=datetime.now(UTC)))

    return will


class OwnPresence:
    """Publishes the service's state, and reads what others published on its topic."""

    def __init__(self, writer: DocumentWriter, bus: Bus) -> None:
        self._writer = writer
        self._bus = bus
        self.topic = SERVICE_STATE.name(writer.space, service=writer.service)
        self.connection = 0
        """The number of the current connection; 0 while there is none."""
        self._began = datetime.now(UTC)

    def publish(self, status: Presence, seq: int, reason: str = "", **health: Any) -> None:
        state = state_of(self._writer, status, self.connection, reason, **health)
        _, payload = self._writer.state(state, seq=seq, time=datetime.now(UTC))
        self._bus.publish(self.topic, payload, retain=True)

    def is_of_another_fleet(self, message: MessageArrived, state: ServiceState) -> bool:
        """Whether a service with another journal publishes on this topic: two fleets use one host id.

        What was made before this process began may be its own, of a journal that was lost since: the broker kept it.
        """
        position = read_position(message.payload)
        if position is None or position[1] == self._writer.epoch or state.status is Presence.OFFLINE:
            return False
        return SERVICE_STATE.read(message.payload).time >= self._began

    def read(self, message: MessageArrived) -> ServiceState | None:
        try:
            data = SERVICE_STATE.read(message.payload).data
        except MalformedDocument:
            return None
        return data if isinstance(data, ServiceState) else None
