"""What the model does is said by a word in the prompt. Pure: the same prompt, the same answer.

DO-THINK 20         nothing for 20 s, then done
DO-STREAM 20        a word every 0.2 s for 20 s
DO-BASH sleep 5     calls the agent's shell tool
DO-EDIT /tmp/x.txt  calls the agent's file writing tool
DO-QUESTION         calls the agent's question tool, where it has one
DO-LIMIT            the account is out of budget; DO-LIMIT seven_day names Claude's claim
DO-ERROR            the server is broken (HTTP 500)
"""

import re
from dataclasses import dataclass
from enum import StrEnum

ASKED = re.compile(r"\bDO-(?P<word>THINK|STREAM|BASH|EDIT|QUESTION|LIMIT|ERROR)\b[ \t]*(?P<rest>[^\n]*)")
PACE_S = 0.2


class Tool(StrEnum):
    """What the model may ask its agent to do; each program has its own name and arguments for it."""

    BASH = "bash"
    EDIT = "edit"
    QUESTION = "question"


@dataclass(frozen=True)
class Say:
    """Words, one every `pace_s` seconds, after `first_s` seconds of nothing."""

    words: tuple[str, ...] = ("All done.",)
    first_s: float = 0.0
    pace_s: float = 0.0


@dataclass(frozen=True)
class Call:
    tool: Tool
    argument: str


@dataclass(frozen=True)
class Refuse:
    """The request fails: no budget is left (`claim` names which), or the server is broken."""

    status: int
    claim: str = ""


Answer = Say | Call | Refuse


def answer(prompt: str) -> Answer:
    """What the last word of that kind in the prompt asks for."""
    asked = None
    for asked in ASKED.finditer(prompt):  # noqa: B007 - the last one counts
        pass
    if asked is None:
        return Say()
    rest = asked["rest"].strip()
    match asked["word"]:
        case "THINK":
            return Say(first_s=_seconds(rest))
        case "STREAM":
            return Say(words=tuple(f"word{n} " for n in range(int(_seconds(rest) / PACE_S))), pace_s=PACE_S)
        case "LIMIT":
            return Refuse(429, rest.split()[0] if rest else "five_hour")
        case "ERROR":
            return Refuse(500)
        case word:
            return Call(Tool(word.lower()), rest)


def _seconds(rest: str) -> float:
    found = re.match(r"\d+(\.\d+)?", rest)
    return float(found[0]) if found else 5.0
