"""Reads the retained states of all services from the broker."""

import time
from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass, field

from shared.contract.states import ServiceState
from shared.contract.topics import SERVICE_STATE, MalformedDocument, locate
from shared.errors import MusterError
from shared.fleet import Fleet
from shared.messaging.inbox import Connected, Inbox, MessageArrived
from shared.runtime.bootstrap import connect, endpoints_of
from shared.system.log import Log

SETTLED_S = 0.15
"""Retained messages come right after the subscription; after this pause there are no more."""


@dataclass
class PresenceReport:
    """The services that have published their state, and when."""

    services: dict[str, ServiceState] = field(default_factory=dict)
    service_times: dict[str, float] = field(default_factory=dict)

    def take(self, topic: str, payload: bytes, prefix: str) -> bool:
        """Take a service's state; False if the message is something else."""
        located = locate(topic, prefix)
        if located is None or located[1] is not SERVICE_STATE:
            return False
        try:
            envelope = SERVICE_STATE.read(payload)
        except MalformedDocument:
            return True
        self.services[envelope.data.service] = envelope.data
        self.service_times[envelope.data.service] = envelope.time.timestamp()
        return True


class QuietLog(Log):
    """Drops everything: the CLI reports a client's errors itself."""

    def _write(self, level: str, said: str, fields: dict[str, object]) -> None:
        pass


class PresenceQuery:
    """A query of all services' states, which connects in the background until `result` is called."""

    def __init__(self, fleet: Fleet) -> None:
        self._prefix = fleet.space.prefix
        self._inbox = Inbox()
        self._bus = connect(fleet, "viewer", self._inbox, QuietLog("muster"))
        self._bus.subscribe([SERVICE_STATE.filter(fleet.space)])
        self._bus.start()

    def result(self, timeout_s: float, services: Collection[str] = ()) -> PresenceReport | None:
        """The states; None if no broker answered in time. It returns as soon as the named services are there."""
        look: PresenceReport | None = None
        deadline = time.monotonic() + timeout_s
        while items := self._inbox.take(deadline):
            for item in items:
                if isinstance(item, Connected):
                    look = PresenceReport()
                    deadline = time.monotonic() + timeout_s
                elif isinstance(item, MessageArrived) and look is not None:
                    look.take(item.topic, item.payload, self._prefix)
                    deadline = min(deadline, time.monotonic() + SETTLED_S)
            if look is not None and services and set(services) <= look.services.keys():
                break
        return look

    def close(self) -> None:
        self._bus.stop()


def read_presence(fleet: Fleet, timeout_s: float) -> PresenceReport | None:
    """The states of all services; None if no broker answered in time."""
    with closing(PresenceQuery(fleet)) as query:
        return query.result(timeout_s)


def may_answer(fleet: Fleet) -> bool:
    """Whether there is a broker to wait for: False while the private one is known to be down."""
    try:
        return bool(endpoints_of(fleet))
    except MusterError:
        return True  # a bad address, which the connection reports
