"""The envelope of every event and state (CloudEvents 1.0 as JSON), and what all documents have in common."""

from collections.abc import Iterator
from enum import StrEnum
from typing import ClassVar, Generic, Literal, Self, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from shared.contract.ids import Id

MAX_SEQ = 2**63 - 1
"""What a journal can count to."""
SOURCE_PATTERN = r"^/[a-z0-9_-]+/[a-z0-9_-]+$"
"""`/<host>/<service>`"""


class Tone(StrEnum):
    """How a document strikes a person: terminals and pages colour it so."""

    GOOD = "good"
    BAD = "bad"
    NEUTRAL = "neutral"


class Urgency(StrEnum):
    """Whom an event is for."""

    LOG = "log"  # whoever reads along
    NEWS = "news"  # worth a word to those who care
    ACTION = "action"  # a person has to do something


class Data(BaseModel):
    """The inside of an envelope. A reader ignores fields it does not know: hosts may differ in version.

    A model is built when it is first used: no process speaks of everything.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    def word(self) -> str:
        """The one word that says what this is."""
        raise NotImplementedError

    def sentence(self) -> str:
        """What a person wants to know beside that word."""
        return str(getattr(self, "reason", ""))


D = TypeVar("D", bound=Data)


class Envelope(BaseModel, Generic[D]):
    """CloudEvents 1.0 in JSON, what a person reads first in front."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    type: str = Field(examples=["muster.drift.missing"])
    subject: str = Field(description="The id of the agent or service it is about.")
    time: AwareDatetime
    data: D
    cause: str | None = Field(default=None, description="The id of the event or command that led to this one.")
    source: str = Field(pattern=SOURCE_PATTERN, examples=["/box/reconciler"])
    seq: int = Field(
        ge=0,
        le=MAX_SEQ,
        description="Events: one more than the source's last in this epoch. States: the source's last event so far.",
    )
    epoch: str = Field(description="The life of the source's journal; a new journal counts anew.")
    id: str
    specversion: Literal["1.0"] = "1.0"


class Event(Data):
    """Something that happened. A class with a `kind` of its own is one kind of event."""

    kind: str
    tone: ClassVar[Tone] = Tone.NEUTRAL
    urgency: ClassVar[Urgency] = Urgency.LOG

    def word(self) -> str:
        return self.kind

    @classmethod
    def kinds(cls) -> Iterator[type[Self]]:
        """Every kind of event below this class, in the order of the source."""
        if "kind" in cls.__annotations__ and cls is not Event:
            yield cls
        for below in cls.__subclasses__():
            yield from below.kinds()

    @classmethod
    def name(cls) -> str:
        """The value of `kind` of this class."""
        return str(cls.model_fields["kind"].default)


class AgentEvent(Event):
    agent: Id
