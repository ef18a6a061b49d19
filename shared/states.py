"""Every state an agent, its wish and a service can be in."""

from enum import StrEnum


class Status(StrEnum):
    """What became of an agent's session."""

    RUNNING = "running"
    STOPPED = "stopped"  # a person or another service asked for it
    EXITED = "exited"  # its program ended; the exit status is known
    TERMINATED = "terminated"  # its session vanished; nobody asked for it
    GAVE_UP = "gave_up"  # it died more often than its restart policy allows


class Desired(StrEnum):
    """What people want of an agent."""

    RUNNING = "running"
    STOPPED = "stopped"


class Presence(StrEnum):
    """How a service is."""

    ONLINE = "online"
    DEGRADED = "degraded"  # it runs, but something it needs does not answer
    OFFLINE = "offline"
