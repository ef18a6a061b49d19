"""What was done and what was seen in a run. Pure: the promises are checked over this and nothing else."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

EVENT_TOPICS = ("lifecycle", "drift", "activity", "event", "comment", "heartbeat")
"""The last levels of the topics whose documents are numbered."""

Number = tuple[str, str, int]
"""Epoch, source and number: there is one such event, ever."""


@dataclass(frozen=True, slots=True)
class SeenEvent:
    epoch: str
    source: str
    seq: int
    at: float
    """When it was made."""
    topic: str
    data: Mapping[str, Any]
    cause: str | None = None

    @property
    def number(self) -> Number:
        return self.epoch, self.source, self.seq

    @property
    def agent(self) -> str:
        return str(self.data.get("agent", ""))

    @property
    def kind(self) -> str:
        return str(self.data.get("kind", ""))


@dataclass(frozen=True, slots=True)
class SeenReply:
    command: str
    ok: bool
    said: str
    code: str = "ok"
    confirmed: str = ""
    """Of a text: by what it is known to have arrived."""


@dataclass
class Asked:
    """A command of a person: how it was sent, what it was answered, and the text's unique word."""

    at: float
    until: float
    verb: str
    agent: str
    way: str
    """`cli`, `pub` or `registry`."""
    code: int = 0
    said: str = ""
    word: str = ""
    command: str = ""
    reply: SeenReply | None = None
    is_open: bool = False
    """Whether the journal has it at the end, without an answer."""


@dataclass(frozen=True)
class Act:
    """A fault, by whom it was felt: an agent, or `*` for all. `until` is when it was undone."""

    at: float
    fault: str
    target: str
    until: float = 0.0


@dataclass(frozen=True)
class LostEpoch:
    """A journal that was taken away: what it had published by then must have been seen, the rest may be lost."""

    epoch: str
    at: float
    published: Mapping[str, int]


@dataclass(frozen=True)
class Absence:
    """From when to when a subscriber was away."""

    began: float
    ended: float


@dataclass
class AgentViews:
    """One agent at the end, as each place shows it."""

    registry: Mapping[str, Any] | None = None
    retained: Mapping[str, Any] | None = None
    status: Mapping[str, Any] | None = None
    tmux: str | None = None
    """The spawn id of its session."""


@dataclass
class Evidence:
    began: float = 0.0
    events: dict[str, list[SeenEvent]] = field(default_factory=dict)
    """By subscriber, in the order of arrival."""
    bases: dict[tuple[str, str], int] = field(default_factory=dict)
    """The last number of each source (epoch, source) that was told before the subscribers came."""
    journal: list[SeenEvent] = field(default_factory=list)
    unpublished: dict[str, int] = field(default_factory=dict)
    lost_epochs: list[LostEpoch] = field(default_factory=list)
    absences: list[Absence] = field(default_factory=list)
    replies: list[SeenReply] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    acts: list[Act] = field(default_factory=list)
    agents: dict[str, AgentViews] = field(default_factory=dict)
    heard: list[tuple[str, str]] = field(default_factory=list)
    """Conversation and text of each prompt that the agents themselves recorded."""
    registry_reads: int = 0
    broken_reads: list[tuple[float, str]] = field(default_factory=list)
    status_reads: int = 0
    logs: dict[str, str] = field(default_factory=dict)
    left_over: list[str] = field(default_factory=list)
    unsound: list[str] = field(default_factory=list)
    """What went wrong with the run itself: then it shows nothing."""
    bad_status: list[str] = field(default_factory=list)
    memory_mb: dict[str, list[float]] = field(default_factory=dict)
    """PSS of each process over time."""
    unsettled: str = ""
    """What was still different when the wait for the end was over."""
    not_online: dict[str, str] = field(default_factory=dict)
    """Services that do not say `online` at the end, and what they say."""

    def all_events(self) -> dict[Number, SeenEvent]:
        """Each event once, wherever it was seen."""
        found = {event.number: event for events in self.events.values() for event in events}
        return found | {event.number: event for event in self.journal}

    def felt(self, agent: str, since: float, until: float) -> Iterator[Act]:
        for act in self.acts:
            if act.target in (agent, "*") and act.at <= until and max(act.until, act.at) >= since:
                yield act


@dataclass(frozen=True)
class Finding:
    """A promise that was broken, with what shows it."""

    promise: str
    subject: str
    says: str
    at: float = 0.0


def highest(events: Iterable[SeenEvent]) -> dict[tuple[str, str], int]:
    """The highest number of each epoch and source."""
    found: dict[tuple[str, str], int] = {}
    for event in events:
        key = (event.epoch, event.source)
        found[key] = max(found.get(key, 0), event.seq)
    return found
