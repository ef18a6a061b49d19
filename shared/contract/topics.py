"""The topic table: the whole MQTT surface in one place. A row builds, subscribes, parses and says who may write."""

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
from shared.contract.events.drift import DriftEvent
from shared.contract.events.lifecycle import LifecycleEvent
from shared.contract.events.loops import LoopEvent
from shared.contract.services import MANIFEST
from shared.contract.states import AgentState, ServiceState
from shared.errors import MusterError

FRONT_DESK = "spawner"
"""Answers for the host what is addressed to nobody in particular: unknown verbs, unknown services."""

EVERY_SERVICE = "*"
"""As a writer: each service, on its own name only."""


class MalformedDocument(MusterError):
    """A payload that is not what its topic carries."""


@dataclass(frozen=True)
class Space:
    """Where this host's topics live."""

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
    """The document; of events, the class of all its kinds."""
    says: str
    retain: bool = False
    others: tuple[str, ...] = ()
    """Who writes it beside the service whose own it is: see `writers`."""

    def name(self, space: Space, **ids: str) -> str:
        return f"{space.root}/{self.pattern.format(**ids)}"

    def name_of(self, space: Space, data: Data) -> str:
        """The topic of one document."""
        return self.name(space, **{name: str(getattr(data, name)) for name in self.ids})

    def filter(self, space: Space, **ids: str) -> str:
        """The subscription for this row; ids not given are wildcards."""
        return f"{space.root}/" + re.sub(r"\{(\w+)\}", lambda m: ids.get(m[1], "+"), self.pattern)

    def match(self, below_host: str) -> dict[str, str] | None:
        """The ids in a topic (given without prefix and host), or None when it belongs to another row."""
        found = self._regex.fullmatch(below_host)
        return found.groupdict() if found else None

    @cached_property
    def ids(self) -> tuple[str, ...]:
        return tuple(re.findall(r"\{(\w+)\}", self.pattern))

    @cached_property
    def writers(self) -> tuple[str, ...]:
        """Who may write it, as the manifest says."""
        return (*(entry.name for entry in MANIFEST if self.pattern in entry.writes), *self.others)

    @cached_property
    def documents(self) -> tuple[type[BaseModel], ...]:
        """The documents that it carries: one, or each kind of event."""
        return tuple(self.carries.kinds()) if issubclass(self.carries, Event) else (self.carries,)

    @cached_property
    def family(self) -> str:
        """The middle of an event's type: `muster.<family>.<kind>`."""
        parts = self.pattern.split("/")
        return parts[0] if self.retain or parts[-1] == "event" else parts[-1]

    @cached_property
    def _regex(self) -> re.Pattern[str]:
        return re.compile(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", self.pattern))

    @cached_property
    def _inside(self) -> Any:
        if len(self.documents) == 1:
            return self.documents[0]
        return Annotated[Union[self.documents], Field(discriminator="kind")]  # noqa: UP007 - made of a tuple

    @cached_property
    def _envelope(self) -> TypeAdapter[Envelope[Any]]:
        return TypeAdapter(Envelope[self._inside])  # type: ignore[name-defined]

    @cached_property
    def _data(self) -> TypeAdapter[Any]:
        return TypeAdapter(self._inside)

    def read_data(self, data: object) -> Any:
        """The inside of an envelope, from plain data. Raises MalformedDocument."""
        try:
            return self._data.validate_python(data)
        except ValidationError as error:
            raise MalformedDocument(f"not the data of {self.pattern!r}: {first_fault(error)}") from error

    def read(self, payload: bytes) -> Envelope[Any]:
        try:
            return self._envelope.validate_json(payload)
        except ValidationError as error:
            raise MalformedDocument(f"not a document of {self.pattern!r}: {first_fault(error)}") from error


AGENT_STATE = Topic("agent/{agent}/state", AgentState, "the agent as it is now", retain=True)
AGENT_LIFECYCLE = Topic("agent/{agent}/lifecycle", LifecycleEvent, "what was done to the agent")
AGENT_DRIFT = Topic("agent/{agent}/drift", DriftEvent, "where registry and world differ")
AGENT_ACTIVITY = Topic("agent/{agent}/activity", ActivityEvent, "what the agent is doing")
LOOP_EVENT = Topic("loop/{loop}/event", LoopEvent, "what happened in a loop that git drives")
SERVICE_STATE = Topic(
    "service/{service}/state",
    ServiceState,
    "a service as it is now, or its last will",
    retain=True,
    others=(EVERY_SERVICE,),
)
COMMAND = Topic("command/{verb}", Command, "plain JSON arguments; never retained", others=("operator",))
REPLY = Topic("reply/{command}", Reply, "the answer to a command", others=(EVERY_SERVICE,))

EVENTS = (AGENT_LIFECYCLE, AGENT_DRIFT, AGENT_ACTIVITY, LOOP_EVENT)
STATES = (AGENT_STATE, SERVICE_STATE)
TOPICS = (*STATES, *EVENTS, COMMAND, REPLY)


def rows(patterns: Iterable[str]) -> tuple[Topic, ...]:
    """The rows that the manifest names by their patterns."""
    by_pattern = {row.pattern: row for row in TOPICS}
    return tuple(by_pattern[pattern] for pattern in patterns)


def locate(topic: str, prefix: str) -> tuple[str, Topic, dict[str, str]] | None:
    """Which host, row and ids a topic name means; None for a topic that is not ours."""
    head, _, rest = topic.removeprefix(f"{prefix}/").partition("/")
    if not topic.startswith(f"{prefix}/") or not rest:
        return None
    for row in TOPICS:
        ids = row.match(rest)
        if ids is not None:
            return head, row, ids
    return None


class _Numbers(BaseModel):
    """What every event has, of whatever version."""

    source: str = Field(pattern=SOURCE_PATTERN)
    epoch: str
    seq: int = Field(ge=0, le=MAX_SEQ)


def read_numbers(payload: bytes) -> tuple[str, str, int] | None:
    """Source, epoch and number of an event whose kind is not known here: hosts may differ in version."""
    try:
        numbers = _Numbers.model_validate_json(payload)
    except ValidationError:
        return None
    return numbers.source, numbers.epoch, numbers.seq


def row_for(data: Data) -> Topic:
    """The row that carries such a document."""
    return _ROW_OF[type(data)]


_ROW_OF = {document: row for row in (*EVENTS, *STATES) for document in row.documents}


def first_fault(error: ValidationError) -> str:
    """The most telling thing wrong with a document, as a person would say it: a typo before what it left out."""
    faults = error.errors(include_url=False)
    fault = next((each for each in faults if each["type"] == "extra_forbidden"), faults[0])
    if fault["type"] == "extra_forbidden":
        return f"{str(fault['loc'][-1])[:80]!r} is not a key of it"
    where = ".".join(str(step) for step in fault["loc"])
    given = fault.get("input")
    shown = f" (got {json.dumps(given, default=str)[:80]})" if where and not isinstance(given, (dict, bytes)) else ""
    return f"{where}: {fault['msg']}{shown}" if where else fault["msg"]
