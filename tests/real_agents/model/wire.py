"""What the three wires have in common: a request is read into `Asked`, an answer is written as server-sent events."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.real_agents.model.script import Refuse, Say

Json = dict[str, Any]
Pause = Callable[[float], None]


@dataclass(frozen=True)
class Asked:
    """One request. `said` is what people wrote since the model last spoke, piece by piece and exactly as it came."""

    said: tuple[str, ...]
    tools: tuple[str, ...]
    model: str
    main: bool = field(default=True)
    """False for what a program asks for itself: a title, a route, a count."""


@dataclass(frozen=True)
class Refusal:
    status: int
    headers: dict[str, str]
    body: Json


def event(data: Json, name: str | None = None) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def paced(say: Say, pause: Pause) -> Iterator[str]:
    """The words at their times."""
    pause(say.first_s)
    for word in say.words:
        yield word
        pause(say.pace_s)


def named(tools: tuple[str, ...], *wanted: str) -> str | None:
    """The first of the wanted tools that the program offers, by its own spelling."""
    offered = {tool.lower(): tool for tool in tools}
    return next((offered[name.lower()] for name in wanted if name.lower() in offered), None)


def questions() -> list[Json]:
    """What the question tools of Claude Code, opencode and Gemini CLI are called with."""
    options = [
        {"label": "Red", "description": "A warm colour"},
        {"label": "Blue", "description": "A cold colour"},
    ]
    return [
        {
            "question": "Which colour do you want?",
            "header": "Colour",
            "type": "choice",
            "multiSelect": False,
            "multiple": False,
            "options": options,
        }
    ]


def broken(refuse: Refuse) -> Refusal:
    return Refusal(refuse.status, {}, {"error": {"type": "api_error", "message": "scripted failure"}})
