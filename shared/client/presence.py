"""What every service says of itself on the bus; None when no broker answers."""

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
"""Retained messages come at once after the subscription; when none came for so long, that was all."""


@dataclass
class BusLook:
    services: dict[str, ServiceState] = field(default_factory=dict)
    service_times: dict[str, float] = field(default_factory=dict)

    def take(self, message: MessageArrived, prefix: str) -> bool:
        """Note what a service says; False for a message of any other kind."""
        located = locate(message.topic, prefix)
        if located is None or located[1] is not SERVICE_STATE:
            return False
        try:
            envelope = SERVICE_STATE.read(message.payload)
        except MalformedDocument:
            return True
        self.services[envelope.data.service] = envelope.data
        self.service_times[envelope.data.service] = envelope.time.timestamp()
        return True


class QuietLog(Log):
    """A passing client's troubles are told by its verb, in its own words."""

    def _write(self, level: str, said: str, fields: dict[str, object]) -> None:
        pass


class Glance:
    """A look that is under way: the connection is made while whoever wants it does something else."""

    def __init__(self, fleet: Fleet) -> None:
        self._prefix = fleet.space.prefix
        self._inbox = Inbox()
        self._bus = connect(fleet, "viewer", self._inbox, QuietLog("muster"))
        self._bus.subscribe([SERVICE_STATE.filter(fleet.space)])
        self._bus.start()

    def result(self, timeout_s: float, services: Collection[str] = ()) -> BusLook | None:
        """What was heard; who names the services that there are need not wait whether there are more."""
        look: BusLook | None = None
        deadline = time.monotonic() + timeout_s
        while items := self._inbox.take(deadline):
            for item in items:
                if isinstance(item, Connected):
                    look = BusLook()
                    deadline = time.monotonic() + timeout_s
                elif isinstance(item, MessageArrived) and look is not None:
                    look.take(item, self._prefix)
                    deadline = min(deadline, time.monotonic() + SETTLED_S)
            if look is not None and services and set(services) <= look.services.keys():
                break
        return look

    def close(self) -> None:
        self._bus.stop()


def look_at_bus(fleet: Fleet, timeout_s: float) -> BusLook | None:
    with closing(Glance(fleet)) as glance:
        return glance.result(timeout_s)


def may_answer(fleet: Fleet) -> bool:
    """Whether it is worth waiting for a broker: False while our own is known to be down."""
    try:
        return bool(endpoints_of(fleet))
    except MusterError:
        return True  # an address that is none: the connection tells of it
