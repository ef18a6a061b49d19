"""Evidence: what one source says an agent is doing, since when, and why."""

from dataclasses import dataclass
from enum import StrEnum

from shared.contract.states import Activity, Trouble


class EvidenceSource(StrEnum):
    """The sources of evidence, the most reliable first."""

    HOOKS = "hooks"
    LIVE_FILE = "live_file"
    TRANSCRIPT = "transcript"
    PROCESSES = "processes"
    TITLE = "title"
    SCREEN = "screen"


@dataclass(frozen=True, slots=True)
class LimitStatement:
    """What a source says about a usage limit."""

    at: float
    """When the source said it."""
    words: str = ""
    """The agent's own sentences, from which scope and reset are read."""
    scope: str = ""
    reset: str = ""
    continues: str = ""
    """These three, if a screen rule has found them already."""
    resets_at: float | None = None
    """The time of the reset, if a file has it."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one source says about one agent."""

    source: EvidenceSource
    says: Activity
    at: float
    """Since when, in seconds since 1970: the time of the event or line, or of the first observation."""
    why: str
    """What was observed, for people: `PermissionRequest for Bash: touch x`."""
    rule: str = ""
    """The rule that it follows from, if the source has several."""
    weak: bool = False
    """Whether it follows from something absent (an input box, and no sign of work): it contradicts no other source."""
    dialog: str = ""
    """The dialog as the screen shows it, if a person is asked."""
    part: str = ""
    """The subagent that it is about; empty for the main agent, or the session as a whole."""
    limit: LimitStatement | None = None
    trouble: Trouble | None = None
    """Why it can't go on by itself, with `failed`."""
    promise: str = ""
    """The time in the agent's last `WAITING-UNTIL: <ISO time>`."""

    def age(self, now: float) -> float:
        return max(0.0, now - self.at)
