"""The envelope of every event and state (CloudEvents 1.0 as JSON), and the base classes of what is inside."""

from collections.abc import Iterator
from enum import StrEnum
from typing import ClassVar, Generic, Literal, Self, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from shared.contract.ids import Id

MAX_SEQ = 2**63 - 1
"""The largest number that SQLite stores."""
SOURCE_PATTERN = r"^/[a-z0-9_-]+/[a-z0-9_-]+$"
"""`/<host>/<service>`"""


class Tone(StrEnum):
    """How good the news is, for colours."""

    GOOD = "good"
    BAD = "bad"
    NEUTRAL = "neutral"


class Urgency(StrEnum):
    """How much attention an event needs."""

    LOG = "log"  # for the record
    NEWS = "news"  # worth telling people
    ACTION = "action"  # a person has to do something


class Data(BaseModel):  # noqa: PLW1641 - pydantic makes the hash, of all fields
    """The `data` of an envelope. Readers ignore fields that they don't know: hosts may differ in version."""

    # Deferred, since each process uses only some of the models.
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    def __eq__(self, other: object) -> bool:
        # Most comparisons are of hundreds of records with themselves, and pydantic's own looks at every field.
        return self is other or super().__eq__(other)

    def word(self) -> str:
        """The status or the kind of event, in one word."""
        raise NotImplementedError

    def sentence(self) -> str:
        """The details for people, without the word and the subject."""
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
    """Base of all events. A class that defines `kind` is one kind of event."""

    kind: str
    tone: ClassVar[Tone] = Tone.NEUTRAL
    urgency: ClassVar[Urgency] = Urgency.LOG

    def word(self) -> str:
        return self.kind

    @classmethod
    def kinds(cls) -> Iterator[type[Self]]:
        """Every kind of event below this class, in the order of definition."""
        if "kind" in cls.__annotations__ and cls is not Event:
            yield cls
        for below in cls.__subclasses__():
            yield from below.kinds()

    @classmethod
    def name(cls) -> str:
        """This class's value of `kind`."""
        return str(cls.model_fields["kind"].default)


class AgentEvent(Event):
    agent: Id
