"""The topic table: the whole MQTT surface in one place.

A row builds topic names and subscriptions, parses what arrives, and knows who may write.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Union

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from shared.contract.commands import Command, Reply
from shared.contract.envelope import MAX_SEQ, SOURCE_PATTERN, Data, Envelope, Event
from shared.contract.events.activity import ActivityEvent
from shared.contract.events.board import BoardHeartbeat, CardEvent
from shared.contract.events.drift import DriftEvent
from shared.contract.events.lifecycle import LifecycleEvent
from shared.contract.events.loops import LoopEvent
from shared.contract.services import MANIFEST
from shared.contract.states import AgentState, CardState, ServiceState
from shared.errors import MusterError

DEFAULT_OWNER = "spawner"
"""The service that answers commands without an owner: unknown verbs, unknown services."""

EVERY_SERVICE = "*"
"""As writer of a topic: each service, for its own name. As owner of a verb: the service that the command names."""


class MalformedDocument(MusterError):
    """A payload that is not what its topic carries."""


@dataclass(frozen=True)
class Space:
    """The first two levels of every topic of a host."""

    host: str
    prefix: str = "muster"

    @property
    def root(self) -> str:
        return f"{self.prefix}/{self.host}"

    @property
    def everything(self) -> str:
        return f"{self.prefix}/#"


@dataclass(frozen=True)
class Topic:
    """One row. `pattern` is the part after `<prefix>/<host>/`; `{name}` stands for an id."""

    pattern: str
    carries: type[BaseModel]
    """The class of the document; for events, the base class of all kinds."""
    says: str
    retain: bool = False
    others: tuple[str, ...] = ()
    """Writers beside those that the manifest names."""

    def name(self, space: Space, **ids: str) -> str:
        return f"{space.root}/{self.pattern.format(**ids)}"

    def name_of(self, space: Space, data: Data) -> str:
        """The topic on which this document is published; its ids are fields of the document."""
        return self.name(space, **{name: str(getattr(data, name)) for name in self.ids})

    def filter(self, space: Space, **ids: str) -> str:
        """The subscription to this row; ids that are not given become wildcards."""
        return f"{space.root}/" + re.sub(r"\{(\w+)\}", lambda m: ids.get(m[1], "+"), self.pattern)

    def match(self, below_host: str) -> dict[str, str] | None:
        """The ids in a topic name without prefix and host; None if it is not of this row."""
        found = self._regex.fullmatch(below_host)
        return found.groupdict() if found else None

    @cached_property
    def ids(self) -> tuple[str, ...]:
        return tuple(re.findall(r"\{(\w+)\}", self.pattern))

    @cached_property
    def writers(self) -> tuple[str, ...]:
        """The services and roles that may write it."""
        return (*(entry.name for entry in MANIFEST if self.pattern in entry.writes), *self.others)

    @cached_property
    def documents(self) -> tuple[type[BaseModel], ...]:
        """The classes of the documents that it carries: one, or one for each kind of event."""
        return tuple(self.carries.kinds()) if issubclass(self.carries, Event) else (self.carries,)

    @cached_property
    def family(self) -> str:
        """The middle of an event's type: `muster.<family>.<kind>`."""
        parts = self.pattern.split("/")
        return parts[0] if self.retain or parts[-1] == "event" or not self.ids else parts[-1]

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", self.pattern))

    @cached_property
    def _data_type(self) -> Any:
        if len(self.documents) == 1:
            return self.documents[0]
        return Annotated[Union[self.documents], Field(discriminator="kind")]  # noqa: UP007 - made of a tuple

    @cached_property
    def _envelope(self) -> TypeAdapter[Envelope[Any]]:
        return TypeAdapter(Envelope[self._data_type])  # type: ignore[name-defined]

    @cached_property
    def _data(self) -> TypeAdapter[Any]:
        return TypeAdapter(self._data_type)

    def read_data(self, data: object) -> Any:
        """Parse the `data` of an envelope. Raises MalformedDocument."""
        try:
            return self._data.validate_python(data)
        except ValidationError as error:
            raise MalformedDocument(f"not the data of {self.pattern!r}: {first_fault(error)}") from error

    def read(self, payload: bytes) -> Envelope[Any]:
        """Parse a whole message. Raises MalformedDocument."""
        try:
            return self._envelope.validate_json(payload)
        except ValidationError as error:
            raise MalformedDocument(f"not a document of {self.pattern!r}: {first_fault(error)}") from error


AGENT_STATE = Topic("agent/{agent}/state", AgentState, "the agent as it is now", retain=True)
AGENT_LIFECYCLE = Topic("agent/{agent}/lifecycle", LifecycleEvent, "what was done to the agent")
AGENT_DRIFT = Topic("agent/{agent}/drift", DriftEvent, "where registry and world differ")
AGENT_ACTIVITY = Topic("agent/{agent}/activity", ActivityEvent, "what the agent is doing")
LOOP_EVENT = Topic("loop/{loop}/event", LoopEvent, "what happened in a loop that git drives")
CARD_STATE = Topic("board/{card}/state", CardState, "a card of the board as it is now", retain=True)
CARD_COMMENT = Topic("board/{card}/comment", CardEvent, "what was observed about a card, or said on it")
BOARD_HEARTBEAT = Topic("board/heartbeat", BoardHeartbeat, "that the board is alive, and what it has seen")
SERVICE_STATE = Topic(
    "service/{service}/state",
    ServiceState,
    "a service as it is now, or its last will",
    retain=True,
    others=(EVERY_SERVICE,),
)
COMMAND = Topic("command/{verb}", Command, "plain JSON arguments; never retained", others=("operator",))
REPLY = Topic("reply/{command}", Reply, "the answer to a command", others=(EVERY_SERVICE,))

EVENTS = (AGENT_LIFECYCLE, AGENT_DRIFT, AGENT_ACTIVITY, LOOP_EVENT, CARD_COMMENT, BOARD_HEARTBEAT)
STATES = (AGENT_STATE, CARD_STATE, SERVICE_STATE)
TOPICS = (*STATES, *EVENTS, COMMAND, REPLY)


def rows(patterns: Iterable[str]) -> tuple[Topic, ...]:
    """The rows with these patterns."""
    by_pattern = {row.pattern: row for row in TOPICS}
    return tuple(by_pattern[pattern] for pattern in patterns)


def locate(topic: str, prefix: str) -> tuple[str, Topic, dict[str, str]] | None:
    """The host, row and ids of a topic name; None if no row matches."""
    host, _, rest = topic.removeprefix(f"{prefix}/").partition("/")
    if not topic.startswith(f"{prefix}/") or not rest:
        return None
    for row in TOPICS:
        ids = row.match(rest)
        if ids is not None:
            return host, row, ids
    return None


class _Position(BaseModel):
    """The fields that place an event in its source's stream."""

    source: str = Field(pattern=SOURCE_PATTERN)
    epoch: str
    seq: int = Field(ge=0, le=MAX_SEQ)


def read_position(payload: bytes) -> tuple[str, str, int] | None:
    """Source, epoch and number of a document, also of a kind that this version does not know; None if it has none."""
    try:
        position = _Position.model_validate_json(payload)
    except ValidationError:
        return None
    return position.source, position.epoch, position.seq


def row_for(data: Data) -> Topic:
    """The row that carries documents of this class."""
    return _ROW_OF[type(data)]


_ROW_OF = {document: row for row in (*EVENTS, *STATES) for document in row.documents}


def first_fault(error: ValidationError) -> str:
    """One fault of a document, for people. An unknown key comes first: it is often a typo of a missing one."""
    faults = error.errors(include_url=False)
    fault = next((each for each in faults if each["type"] == "extra_forbidden"), faults[0])
    if fault["type"] == "extra_forbidden":
        return f"{str(fault['loc'][-1])[:80]!r} is not a key of it"
    where = ".".join(str(step) for step in fault["loc"])
    given = fault.get("input")
    shown = f" (got {json.dumps(given, default=str)[:80]})" if where and not isinstance(given, (dict, bytes)) else ""
    return f"{where}: {fault['msg']}{shown}" if where else fault["msg"]
