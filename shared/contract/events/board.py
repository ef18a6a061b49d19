"""What the board says: comments on cards, and its heartbeat.

Comments that people make are commands (`comment`); the board publishes them here.
"""

from typing import ClassVar, Literal

from pydantic import AwareDatetime, Field

from shared.contract.envelope import Event, Tone, Urgency
from shared.contract.ids import Id

MUSTER = "muster"
"""The author of what no person says."""


class CardEvent(Event):
    """A comment on a card."""

    card: Id
    number: int = Field(ge=1, description="Counts the comments on this card.")
    at: AwareDatetime = Field(description="When it happened.")
    by: str = Field(description="Who says it: `muster`, or a person.")
    text: str

    def sentence(self) -> str:
        return self.text if self.by == MUSTER else f"{self.by}: {self.text}"


class CardObserved(CardEvent):
    """Something worth knowing happened to the agent: a drift, an approval, a limit, an end."""

    kind: Literal["observed"] = "observed"
    about: str = Field(description="The event that led to it: `drift.missing`, `activity.limit_hit`.")
    tells: Tone = Field(description="How good the news is.")
    needs: Urgency = Field(description="How much attention it needs.")
    recorded: str = Field(default="", description="Of a drift: what the record says.")
    found: str = Field(default="", description="Of a drift: what was found instead.")
    held_back: int = Field(default=0, ge=0, description="How many comments this one stands for: there were too many.")


class CardCommented(CardEvent):
    """A person said something on the card."""

    kind: Literal["said"] = "said"


class MonitoringStopped(CardEvent):
    """A person stopped monitoring the agent: its card gets no more comments."""

    kind: Literal["monitoring_stopped"] = "monitoring_stopped"
    urgency: ClassVar[Urgency] = Urgency.NEWS


class MonitoringResumed(CardEvent):
    """The agent is monitored again."""

    kind: Literal["monitoring_resumed"] = "monitoring_resumed"
    tone: ClassVar[Tone] = Tone.GOOD

    missed: dict[str, int] = Field(description="What the card got no comments on meanwhile, and how often.")


class BoardHeartbeat(Event):
    """The board is alive. It says so every five minutes."""

    kind: Literal["heartbeat"] = "heartbeat"
    cards: int = Field(ge=0)
    columns: dict[str, int] = Field(description="How many cards each column has.")
    drifts: int = Field(ge=0, description="How many drifts it has seen, ever.")
    last_drift: AwareDatetime | None = Field(default=None, description="When the last one was.")
    comments: int = Field(ge=0, description="How many comments it has made, ever.")
    needs_you_s: float | None = Field(default=None, description="How long the oldest question has waited.")
    pages: int = Field(default=0, ge=0, description="How many pages are open.")

    def sentence(self) -> str:
        counts = ", ".join(f"{count} {column}" for column, count in self.columns.items() if count)
        waits = f"; the oldest question has waited {self.needs_you_s:.0f} s" if self.needs_you_s is not None else ""
        last = f", the last at {self.last_drift:%Y-%m-%d %H:%M:%S %Z}" if self.last_drift is not None else ""
        return f"{self.cards} cards ({counts}); {self.drifts} drifts{last}; {self.comments} comments{waits}"
