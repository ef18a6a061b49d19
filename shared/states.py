"""Every state an agent, its wish and a service can be in."""

from enum import StrEnum


class Status(StrEnum):
    """What became of an agent's session."""

    RUNNING = "running"
    STOPPED = "stopped"  # a person or another service asked for it
    EXITED = "exited"  # its program ended; the exit status is known
    TERMINATED = "terminated"  # its session vanished; nobody asked for it
    GAVE_UP = "gave_up"  # it died more often than its restart policy allows


class Activity(StrEnum):
    """What an agent is doing."""

    STARTING = "starting"  # its program runs and is not ready yet
    WORKING = "working"
    WAITING = "waiting"  # for the next prompt
    NEEDS_APPROVAL = "needs_approval"  # a person is asked: for permission, or a question
    LIMITED = "limited"  # its account's usage limit is reached
    STALLED = "stalled"  # it waits longer than it promised or may
    DONE = "done"  # its program ended, and well
    FAILED = "failed"  # its program ended badly, or can't go on by itself: no credit, not logged in
    UNKNOWN = "unknown"  # nothing tells


class Trouble(StrEnum):
    """Why an agent can't go on by itself."""

    LOGIN = "login"  # it is not logged in
    CREDIT = "credit"  # its account has no money left
    SETUP = "setup"  # what it was started with is refused: its model, say
    SESSION = "session"  # its conversation is refused, whatever it is told next
    GONE = "gone"  # its program is gone from its pane, or is another one


class Desired(StrEnum):
    """What people want of an agent."""

    RUNNING = "running"
    STOPPED = "stopped"


class Presence(StrEnum):
    """How a service is."""

    ONLINE = "online"
    DEGRADED = "degraded"  # it runs, but something it needs does not answer
    OFFLINE = "offline"
