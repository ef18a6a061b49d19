"""One piece of evidence: what a source says an agent is doing, since when, and why."""

from dataclasses import dataclass
from enum import StrEnum

from shared.contract.states import Activity, Trouble


class EvidenceSource(StrEnum):
    """Where evidence comes from, in the order in which it is believed."""

    HOOKS = "hooks"
    LIVE_FILE = "live_file"
    TRANSCRIPT = "transcript"
    PROCESSES = "processes"
    TITLE = "title"
    SCREEN = "screen"


@dataclass(frozen=True, slots=True)
class LimitStatement:
    """What a source says of a usage limit, in the agent's own words."""

    at: float
    """When it was said."""
    words: str = ""
    """Sentences in which all of it is to be found."""
    scope: str = ""
    reset: str = ""
    continues: str = ""
    """The same, where a rule has found it already."""
    resets_at: float | None = None
    """The moment itself, where a file has it."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one source says of one agent."""

    source: EvidenceSource
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
    limit: LimitStatement | None = None
    trouble: Trouble | None = None
    """Why it can't go on by itself, where it says `failed`."""
    promise: str = ""
    """Until when it waits, by the agent's last words: `WAITING-UNTIL: <ISO time>`."""

    def age(self, now: float) -> float:
        return max(0.0, now - self.at)
