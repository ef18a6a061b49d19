"""One look at the bus: every retained state, as a viewer sees it, or None when no broker answers in time."""

import time
from dataclasses import dataclass, field

from shared.events import AgentState, ServiceState
from shared.fleet import Fleet
from shared.inbox import Arrived, Connected, Inbox
from shared.log import Log
from shared.process import connect
from shared.topics import AGENT_STATE, SERVICE_STATE, Malformed, locate

SETTLED_S = 0.15
"""Retained messages come at once after the subscription; when none came for so long, that was all."""


@dataclass
class BusLook:
    services: dict[str, ServiceState] = field(default_factory=dict)
    agents: dict[str, AgentState] = field(default_factory=dict)
    service_times: dict[str, float] = field(default_factory=dict)


class Quiet(Log):
    """A passing client's troubles are told by its verb, in its own words."""

    def _write(self, level: str, said: str, fields: dict[str, object]) -> None:
        pass


def look_at_bus(fleet: Fleet, timeout_s: float) -> BusLook | None:
    inbox = Inbox()
    bus = connect(fleet, "viewer", inbox, Quiet("muster"))
    rows = (SERVICE_STATE, AGENT_STATE)
    bus.subscribe([row.filter(fleet.space) for row in rows])
    bus.start()
    look: BusLook | None = None
    deadline = time.monotonic() + timeout_s
    try:
        while items := inbox.take(deadline):
            for item in items:
                if isinstance(item, Connected):
                    look = BusLook()
                    deadline = time.monotonic() + timeout_s
                elif isinstance(item, Arrived) and look is not None:
                    _take(look, item, fleet.space.prefix)
                    deadline = min(deadline, time.monotonic() + SETTLED_S)
    finally:
        bus.stop()
    return look


def _take(look: BusLook, message: Arrived, prefix: str) -> None:
    located = locate(message.topic, prefix)
    if located is None or not message.payload:
        return
    try:
        envelope = located[1].read(message.payload)
    except Malformed:
        return
    if isinstance(envelope.data, ServiceState):
        look.services[envelope.data.service] = envelope.data
        look.service_times[envelope.data.service] = envelope.time.timestamp()
    elif isinstance(envelope.data, AgentState):
        look.agents[envelope.data.agent] = envelope.data
