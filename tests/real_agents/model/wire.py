"""What the three wires have in common: a request is read into `Asked`, an answer is written as server-sent events."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.real_agents.model.script import Call, Say, Tool

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
    turn: str = ""
    """What people wrote last, whenever that was: the prompt whose turn this is."""
    step: int = 0
    """How often the model has spoken in this turn."""
    agents: tuple[str, ...] = ()
    """The subagents that were started and can be waited for."""


@dataclass(frozen=True)
class Refusal:
    status: int
    headers: dict[str, str]
    body: Json


class Reader:
    """Goes over a conversation from its start, and keeps what `Asked` wants of it."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.turn = ""
        self.step = 0
        self.agents: list[str] = []

    def person(self, text: str) -> None:
        self.said.append(text)
        self.turn, self.step = text, 0

    def model(self) -> None:
        self.said.clear()
        self.step += 1

    def asked(self, tools: tuple[str, ...], model: str, *, main: bool) -> Asked:
        return Asked(tuple(self.said), tools, model, main, self.turn, self.step, tuple(self.agents))


def event(data: Json, name: str | None = None) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def paced(words: tuple[str, ...], pace_s: float, pause: Pause) -> Iterator[str]:
    """The words at their times."""
    for word in words:
        yield word
        pause(pace_s)


def spoken(answer: object) -> Say:
    """What is said where nothing can be called."""
    if isinstance(answer, Call) and answer.tool is Tool.STATE:
        return Say((answer.argument,))
    return answer if isinstance(answer, Say) else Say(("No such tool here.",))


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
            "id": "colour",
            "question": "Which colour do you want?",
            "header": "Colour",
            "type": "choice",
            "multiSelect": False,
            "multiple": False,
            "options": options,
        }
    ]


def broken(status: int = 500, kind: str = "api_error", message: str = "scripted failure") -> Refusal:
    return Refusal(status, {}, {"error": {"type": kind, "message": message}})
