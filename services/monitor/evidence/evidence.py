"""One piece of evidence: what a source says an agent is doing, since when, and why."""

from dataclasses import dataclass
from enum import StrEnum

from shared.states import Activity


class Source(StrEnum):
    """Where evidence comes from, in the order in which it is believed."""

    HOOKS = "hooks"
    LIVE_FILE = "live_file"
    TRANSCRIPT = "transcript"
    PROCESSES = "processes"
    TITLE = "title"
    SCREEN = "screen"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one source says of one agent."""

    source: Source
    says: Activity
    at: float
    """Since when it says so, in seconds since 1970: the time of the event or line, or when it was first seen."""
    why: str
    """What was seen, for people: `PermissionRequest for Bash: touch x`."""
    rule: str = ""
    """Which rule read it so, where it is one of several."""
    weak: bool = False
    """Told by what is absent (an input box, and no sign of work): no reason to doubt another source."""
    dialog: str = ""
    """The dialog as it stands on the screen, where a person is asked."""
    part: str = ""
    """The subagent that it is about; empty: the main agent, or the session as a whole."""

    def age(self, now: float) -> float:
        return max(0.0, now - self.at)
