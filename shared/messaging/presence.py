"""A service's own retained state: online, degraded or offline, with its figures, and the last will that says it died.

Every connection has a number, and the will carries it: an `offline` that a broker sends late can't hide a newer
`online`, for readers compare the numbers and the service itself answers it.
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
    teller: DocumentWriter, status: Presence, connection: int, reason: str = "", **health: Any
) -> ServiceState:
    return ServiceState(
        service=teller.service,
        status=status,
        connection=connection,
        pid=os.getpid(),
        version=__version__,
        reason=reason,
        health=health,
    )


def make_will(teller: DocumentWriter) -> Callable[[int], Will]:
    """What the broker says of us when we die, for each connection anew."""

    def will(connection: int) -> Will:
        state = state_of(teller, Presence.OFFLINE, connection, "the connection broke")
        return Will(*teller.state(state, seq=0, time=datetime.now(UTC)))

    return will


class OwnPresence:
    """Says our state on the bus, and listens to what the bus says of us."""

    def __init__(self, teller: DocumentWriter, bus: Bus) -> None:
        self._teller = teller
        self._bus = bus
        self.topic = SERVICE_STATE.name(teller.space, service=teller.service)
        self.connection = 0
        """The number of the connection that we have greeted; 0 while there is none."""

    def say(self, status: Presence, seq: int, reason: str = "", **health: Any) -> None:
        state = state_of(self._teller, status, self.connection, reason, **health)
        _, payload = self._teller.state(state, seq=seq, time=datetime.now(UTC))
        self._bus.publish(self.topic, payload, retain=True)

    def is_another(self, message: MessageArrived, state: ServiceState) -> bool:
        """Whether a state on our topic comes from another journal than ours: two fleets have one host id."""
        other = read_position(message.payload)
        return other is not None and other[1] != self._teller.epoch and state.status is not Presence.OFFLINE

    def read(self, message: MessageArrived) -> ServiceState | None:
        try:
            data = SERVICE_STATE.read(message.payload).data
        except MalformedDocument:
            return None
        return data if isinstance(data, ServiceState) else None
