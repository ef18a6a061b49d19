"""What the board remembers: cards, comments, loops and figures. It outlives the process."""

from dataclasses import dataclass, field

from shared.contract.envelope import Tone, Urgency
from shared.contract.states import CardColumn, CardQuestion
from shared.runtime.memory import MemoryTable


@dataclass(frozen=True)
class CardMemory:
    """What the records don't tell of one card. Times are epoch seconds."""

    column: CardColumn | None = None
    spawn: str | None = None
    since: float = 0.0
    """Since when its session `spawn` has been in this column."""
    question: CardQuestion | None = None
    """What the agent asked last …"""
    asked_by: str = ""
    """… and in which session."""
    last_words: str = ""
    """The last line on the screen of its last session that ended badly."""
    stopped_by: str = ""
    """Who stopped monitoring it; empty while it is monitored."""
    stopped_at: float = 0.0
    missed: dict[str, int] = field(default_factory=dict)
    """What it got no comments on since then, and how often."""
    comments: int = 0
    notable: int = 0
    """How many of its comments were worth a person's attention."""
    commented: tuple[float, ...] = ()
    """When it got its last comments of Muster's own, for the rate limit."""
    held_back: dict[str, int] = field(default_factory=dict)
    """What it got no comments on because there were too many, and how often."""

    @property
    def is_monitored(self) -> bool:
        return not self.stopped_by


@dataclass(frozen=True)
class StoredComment:
    """A comment as the page shows it."""

    number: int
    time: float
    kind: str
    by: str
    text: str
    about: str = ""
    tone: Tone = Tone.NEUTRAL
    urgency: Urgency = Urgency.LOG
    recorded: str = ""
    found: str = ""
    same: str = ""
    """What makes another observation the same one."""
    ends: str = ""
    """The kind of drift that is over by it."""
    times: int = 1
    """How often the same was observed."""


@dataclass(frozen=True)
class CardComments:
    """The last comments on one card, oldest first."""

    comments: tuple[StoredComment, ...] = ()


@dataclass(frozen=True)
class LoopProgress:
    """How far a loop is, by its events."""

    number: int = 0
    phase: str = ""
    since: float = 0.0
    complete: bool = False
    waits: bool = False
    """Whether a person has to let it go on."""


@dataclass(frozen=True)
class BoardFigures:
    """What the heartbeat tells."""

    since: float
    """When the board was first started: what happened before is history, and gets no comments."""
    drifts: int = 0
    last_drift: float | None = None
    comments: int = 0
    beat_at: float = 0.0


CARDS = MemoryTable("card:", CardMemory)
COMMENTS = MemoryTable("comments:", CardComments)
LOOPS = MemoryTable("loop:", LoopProgress)
FIGURES = MemoryTable("figures", BoardFigures)
