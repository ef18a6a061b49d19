"""Asking a copy of an agent's conversation: what each program needs for it, and what its output means."""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.agents.parts import Parts
from shared.errors import MusterError
from shared.system.child_process import ProgramResult

LIMITED = re.compile(
    r"rate.?limit|usage.?limit|hit your .*limit|limit reached|quota|out of budget|resource.?exhausted|\b429\b",
    re.IGNORECASE,
)
"""Words by which every one of them tells that a budget is spent."""
REASON_CHARACTERS = 300


@dataclass(frozen=True)
class OriginalConversation:
    """The agent whose conversation is to be copied."""

    session: str
    """The agent's own id of the conversation."""
    transcript: Path | None
    workspace: Path
    env: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class ForkSetup:
    """What the copy needs to be asked: variables over the agent's own (None: without it), and a file in the place of
    the transcript."""

    env: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    transcript: Path | None = None


@dataclass(frozen=True)
class ForkAnswer:
    """An answer."""

    text: str
    structured: Any = None
    """The same as an object, where the program gives one."""


@dataclass(frozen=True)
class ForkFailed:
    """There is none, for a reason that has nothing to do with how the agent is."""

    reason: str
    limited: bool = False
    """Whether a usage limit is it."""


@dataclass(frozen=True)
class ForkSilent:
    """It took longer than it may, and nothing tells why."""


Result = ForkAnswer | ForkFailed | ForkSilent


@dataclass(frozen=True)
class TimedResult:
    """What came of a question."""

    result: Result
    seconds: float


class CannotAsk(MusterError):
    """The copy can't be made."""


@dataclass(frozen=True)
class Fork:
    """How one kind of agent is copied and asked."""

    read: Callable[[ProgramResult], ForkAnswer | ForkFailed | None]
    """What a program said; None where it said nothing that tells anything. Never raises."""
    prepare: Callable[[OriginalConversation, Path], ForkSetup] = lambda _original, _scratch: ForkSetup()
    """Make the copy in a directory of its own; may raise CannotAsk or OSError."""
    is_hopeless: Callable[[str], bool] = lambda _complaints: False
    """Whether a program that complains so will only wait: for the end of a limit, say. It is ended then."""


def failed(reason: str, *, limited: bool | None = None) -> ForkFailed:
    """In one line that is not too long."""
    said = " ".join(reason.split())
    short = said if len(said) <= REASON_CHARACTERS else f"{said[:REASON_CHARACTERS]}…"
    return ForkFailed(short, bool(LIMITED.search(said)) if limited is None else limited)


def no_turn_yet() -> ForkFailed:
    return ForkFailed("its conversation is not on disk: it has had no turn yet, or it was removed")


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def objects(text: str) -> Iterator[dict[str, Any]]:
    """Each line that is an object; what is none, a warning say, is passed over."""
    for line in text.splitlines():
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(found, dict):
            yield found


def text_at(found: Any, *path: str) -> str:
    """The text at a path of keys; empty where there is none."""
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""


FORKS: Parts[Fork] = Parts("fork", "FORK")
"""By `ask.kind` of the backend."""
