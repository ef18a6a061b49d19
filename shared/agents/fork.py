"""Forks: a copy of a conversation is asked a question. How each program makes the copy, and how its output is read."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from shared.agents.parts import Parts
from shared.agents.transcript import json_object
from shared.errors import MusterError
from shared.system.child_process import ProgramResult

LIMITED = re.compile(
    r"rate.?limit|usage.?limit|hit your .*limit|limit reached|quota|out of budget|resource.?exhausted|\b429\b",
    re.IGNORECASE,
)
"""How all programs say that a usage limit is reached."""
LONGEST_REASON = 300


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
    """What the fork is run with: variables over the agent's own (None removes one), and a file instead of the
    transcript."""

    env: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    transcript: Path | None = None


@dataclass(frozen=True)
class ForkAnswer:
    """The fork's answer."""

    text: str
    structured: Any = None
    """The answer as an object, if the program gives one."""


@dataclass(frozen=True)
class ForkFailed:
    """There is no answer, for a reason that says nothing about the agent."""

    reason: str
    limited: bool = False
    """Whether the reason is a usage limit."""


@dataclass(frozen=True)
class ForkSilent:
    """There was no answer in time, for an unknown reason."""


Result = ForkAnswer | ForkFailed | ForkSilent


@dataclass(frozen=True)
class TimedResult:
    """The result of a question, and how long it took."""

    result: Result
    seconds: float


class CannotAsk(MusterError):
    """The copy of the conversation can't be made."""


@dataclass(frozen=True)
class Fork:
    """How one program is forked."""

    read: Callable[[ProgramResult], ForkAnswer | ForkFailed | None]
    """The result in a program's output; None if there is none in it. Never raises."""
    prepare: Callable[[OriginalConversation, Path], ForkSetup] = lambda _original, _scratch: ForkSetup()
    """Copy the conversation into a scratch directory. Raises CannotAsk or OSError."""
    is_hopeless: Callable[[str], bool] = lambda _complaints: False
    """Whether a program with this stderr will not answer in time: it waits for a limit, for example. It is ended."""


def failed(reason: str, *, limited: bool | None = None) -> ForkFailed:
    """A failure with its reason in one line. By default, the words of the reason decide whether it is a limit."""
    line = " ".join(reason.split())
    short = line if len(line) <= LONGEST_REASON else f"{line[:LONGEST_REASON]}…"
    return ForkFailed(short, bool(LIMITED.search(line)) if limited is None else limited)


def no_turn_yet() -> ForkFailed:
    return ForkFailed("its conversation is not on disk: it has had no turn yet, or it was removed")


def last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def objects(text: str) -> Iterator[dict[str, Any]]:
    """The JSON objects in a text, one a line; other lines are skipped."""
    yield from (found for line in text.splitlines() if (found := json_object(line)) is not None)


def text_at(found: Any, *path: str) -> str:
    """The text at a path of keys; empty if there is none."""
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, str) else ""


FORKS: Parts[Fork] = Parts("fork", "FORK")
"""By `ask.kind` of the backend."""
