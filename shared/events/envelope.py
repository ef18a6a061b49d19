"""The envelope that every event and state travels in: CloudEvents 1.0 as JSON."""

from typing import Generic, Literal, TypeVar

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field

from shared.ids import Id

MAX_SEQ = 2**63 - 1
"""What a journal can count to."""
SOURCE_PATTERN = r"^/[a-z0-9_-]+/[a-z0-9_-]+$"
"""`/<host>/<service>`"""


class Data(BaseModel):
    """The inside of an envelope. A reader passes over fields it does not know: hosts may differ in version.

    A model is made ready when it is first used: no process speaks of everything.
    """

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)


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
    """Something that happened."""

    kind: str


class AgentEvent(Event):
    agent: Id
