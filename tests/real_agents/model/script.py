"""What the model does is said by a word in the prompt. Pure: the same prompt, the same answer.

DO-THINK 20         nothing for 20 s, then done
DO-REASON 20        thoughts, one every 0.2 s for 20 s, then done
DO-STREAM 20        a word every 0.2 s for 20 s
DO-BASH sleep 5     calls the agent's shell tool
DO-EDIT /tmp/x.txt  calls the agent's file writing tool
DO-QUESTION         calls the agent's question tool, where it has one
DO-PLAN             calls the agent's tool that shows a plan and asks whether to carry it out, where it has one
DO-AGENT DO-BASH ls calls the agent's subagent tool; the rest is the subagent's prompt, answered like any other
DO-BACKGROUND DO-BASH ls   the same, and the main agent need not wait for it
DO-WAIT             calls the agent's tool that waits for its subagents, where starting one does not
DO-QUOTE limit      says a text that only quotes what agents show (`quotes.py` has the names)
DO-LIMIT            the account is out of budget; DO-LIMIT seven_day 30 names the claim and says it resets in 30 s
DO-NEAR seven_day   answers, and warns that the budget of that claim is nearly spent
DO-OVERLOAD 2       fails twice for want of room, then answers
DO-ERROR            the server is broken (HTTP 500)
DO-AUTH             who asks is not known
DO-CREDIT           the account has no money left

One prompt may hold several steps of one turn: `DO-BASH ls THEN DO-EDIT x.txt THEN DO-STREAM 5`. Where lines say
different things, the last line counts.

A copy of a conversation that Muster asks how the work is says that it is in the middle of it; what a person asks one
instead is answered like any prompt.
"""

import json
import re
from dataclasses import dataclass
from enum import StrEnum

from services.monitor.health.question import FORM, SIDE_QUESTION
from tests.real_agents.model.quotes import QUOTES

ASKED = re.compile(
    r"\bDO-(?P<word>THINK|REASON|STREAM|BASH|EDIT|QUESTION|PLAN|AGENT|BACKGROUND|WAIT|QUOTE|LIMIT|NEAR|OVERLOAD|ERROR|AUTH|CREDIT)\b"
    r"[ \t]*(?P<rest>[^\n]*)"
)
NEXT = re.compile(r"\s+THEN\s+(?=DO-)")
PACE_S = 0.2
ROW = 4
"""Words on a line: Codex shows nothing of a line before its end."""
RESET_IN_S = 7200.0


class Tool(StrEnum):
    """What the model may ask its agent to do; each program has its own name and arguments for it."""

    BASH = "bash"
    EDIT = "edit"
    QUESTION = "question"
    PLAN = "plan"
    AGENT = "agent"
    BACKGROUND = "background"
    WAIT = "wait"
    STATE = "state"


class Why(StrEnum):
    """Why a request fails; each wire has its own status and words for it."""

    LIMIT = "limit"
    OVERLOAD = "overload"
    BROKEN = "broken"
    AUTH = "auth"
    CREDIT = "credit"


@dataclass(frozen=True)
class Say:
    """Thoughts and then words, one every `pace_s` seconds, after `first_s` seconds of nothing.

    `near` names the claim whose budget is nearly spent, where one is.
    """

    words: tuple[str, ...] = ("All done.",)
    first_s: float = 0.0
    pace_s: float = 0.0
    thoughts: tuple[str, ...] = ()
    near: str = ""


@dataclass(frozen=True)
class Call:
    tool: Tool
    argument: str


@dataclass(frozen=True)
class Refuse:
    """The request fails. `claim` names the budget that is spent; after `times` failures the same prompt is answered."""

    why: Why
    claim: str = ""
    reset_s: float = RESET_IN_S
    times: int | None = None


Answer = Say | Call | Refuse


STATE = {"state": "working", "summary": "It is in the middle of it.", "output": ""}


def side_answer(prompt: str, step: int = 0) -> Answer | None:
    """What a copy of a conversation answers to a side question; None for any other prompt."""
    if SIDE_QUESTION not in prompt:
        return None
    if FORM not in prompt:
        return answer(prompt, step)
    told = json.dumps(STATE)
    return Call(Tool.STATE, told) if step == 0 else Say((told,))


def answer(prompt: str, step: int = 0) -> Answer:
    """What the last line with such a word asks for, at that step of its turn."""
    line = None
    for line in ASKED.finditer(prompt):  # noqa: B007 - the last one counts
        pass
    if line is None:
        return Say()
    steps = NEXT.split(line[0])
    asked = ASKED.match(steps[step]) if step < len(steps) else None
    return _one(asked["word"], asked["rest"].strip()) if asked else Say()


def _one(word: str, rest: str) -> Answer:
    match word:
        case "THINK":
            return Say(first_s=_number(rest))
        case "REASON":
            return Say(thoughts=tuple(f"thought{n} " for n in range(_beats(rest))), pace_s=PACE_S)
        case "STREAM":
            words = tuple(f"word{n}" + (" " if n % ROW else "\n") for n in range(_beats(rest)))
            return Say(words=words, pace_s=PACE_S)
        case "QUOTE":
            return Say(words=(QUOTES[rest.split(maxsplit=1)[0]],))
        case "NEAR":
            return Say(near=rest.split(maxsplit=1)[0] if rest else "five_hour")
        case "LIMIT":
            claim, _, after = rest.partition(" ")
            return Refuse(Why.LIMIT, claim or "five_hour", _number(after, RESET_IN_S))
        case "OVERLOAD":
            return Refuse(Why.OVERLOAD, times=int(_number(rest)))
        case "ERROR":
            return Refuse(Why.BROKEN)
        case "AUTH" | "CREDIT":
            return Refuse(Why(word.lower()))
        case _:
            return Call(Tool(word.lower()), rest)


def _number(rest: str, otherwise: float = 5.0) -> float:
    found = re.match(r"\d+(\.\d+)?", rest)
    return float(found[0]) if found else otherwise


def _beats(rest: str) -> int:
    return int(_number(rest) / PACE_S)
