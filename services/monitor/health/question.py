"""What a copy of an agent's conversation is asked, and what is made of its answer. Pure."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class WorkState(StrEnum):
    """How the work is, in the agent's own opinion."""

    WORKING = "working"
    WAITING = "waiting"
    BLOCKED = "blocked"
    FINISHED = "finished"


SIDE_QUESTION = "This is a side question to a copy of this conversation."
"""With this every question begins."""
FORM = "Answer with one JSON object and nothing else:"
"""With this the usual question demands its answer."""

_PREFACE = (
    f"{SIDE_QUESTION} The conversation itself goes on elsewhere and never learns of it. Where the last turn looks"
    " interrupted, aborted or unfinished here, that comes only of copying it in the middle of the turn: there it goes"
    " on. Do nothing: call no tool, change nothing, do not go on with the task. Answer from this conversation alone."
)
_USUAL = (
    f"How is the work that you were given? {FORM}\n"
    '{"state": "working" | "waiting" | "blocked" | "finished", "summary": "...", "output": "..."}\n'
    "working: you are in the middle of it, also where the last turn looks interrupted. waiting: for a time or for"
    " something that will come by itself. blocked: you can't go on before a person has decided or mended something."
    " finished: all that you were asked for is done and said, and nothing is under way. summary: one or two sentences"
    ' for a person who knows nothing of it. output: where it is finished, the whole result; else "".'
)

SCHEMA = json.dumps(
    {
        "type": "object",
        "properties": {
            "state": {"type": "string", "enum": [each.value for each in WorkState]},
            "summary": {"type": "string"},
            "output": {"type": "string"},
        },
        "required": ["state", "summary", "output"],
        "additionalProperties": False,
    }
)
"""The form of the answer to the usual question."""

SUMMARY_CHARACTERS = 500
LOOKED_AT_CHARACTERS = 500_000
TRIES, BRACES = 20, 50
"""How many places of a text may be the answer, and how far before each an object may begin."""
_STATE = re.compile(r'"state"\s*:')


@dataclass(frozen=True)
class WorkAnswer:
    """How the work is, as the copy says it."""

    state: WorkState
    summary: str = ""
    output: str = ""


def question_for(own: str | None = None) -> str:
    """The whole text; `own` is what a person asks instead of the usual."""
    return f"{_PREFACE}\n\n{own if own is not None else _USUAL}"


def read_answer(text: str, structured: Any = None) -> WorkAnswer | None:
    """What was answered: the object itself, else the last one in the text that has a state; None where none has."""
    for found in (structured, *_objects_in(text[-LOOKED_AT_CHARACTERS:])):
        if (answer := _answer(found)) is not None:
            return answer
    return None


def _objects_in(text: str) -> Iterator[Any]:
    """The objects around the last words `"state":`. Models put them into fences, or talk before and after."""
    decoder = json.JSONDecoder()
    for word in list(_STATE.finditer(text))[: -TRIES - 1 : -1]:
        begins = word.start()
        for _ in range(BRACES):
            begins = text.rfind("{", 0, begins)
            if begins < 0:
                break
            try:
                found, ends = decoder.raw_decode(text, begins)
            except (ValueError, RecursionError):
                continue
            if ends > word.start():
                yield found
                break


def _answer(found: Any) -> WorkAnswer | None:
    if not isinstance(found, dict):
        return None
    try:
        state = WorkState(str(found.get("state")).strip().lower())
    except ValueError:
        return None
    summary = " ".join(_text(found.get("summary")).split())
    return WorkAnswer(state, summary[:SUMMARY_CHARACTERS], _text(found.get("output")))


def _text(found: Any) -> str:
    """What should be a text; some models give a list or an object."""
    if found is None or isinstance(found, str):
        return _whole(found or "")
    return json.dumps(found, ensure_ascii=False)


def _whole(text: str) -> str:
    """Without halves of characters, which JSON can hold and no file in UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")
