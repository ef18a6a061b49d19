"""The text of a question to a copy of an agent's conversation, and the reading of its answer. Pure."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class WorkState(StrEnum):
    """How the work is, as the agent says."""

    WORKING = "working"
    WAITING = "waiting"
    BLOCKED = "blocked"
    FINISHED = "finished"


SIDE_QUESTION = "This is a side question to a copy of this conversation."
"""Every question begins with this."""
FORM = "Answer with one JSON object and nothing else:"
"""The usual question asks for its answer with this."""

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
READ_CHARACTERS = 500_000
MAX_PLACES, MAX_BRACES = 20, 50
"""How many places with `"state":` are tried, the last first, and how many braces before each."""
_STATE = re.compile(r'"state"\s*:')


@dataclass(frozen=True)
class WorkAnswer:
    """The answer to the usual question."""

    state: WorkState
    summary: str = ""
    output: str = ""


def question_for(own: str | None = None) -> str:
    """The whole text; `own` is a person's question instead of the usual one."""
    return f"{_PREFACE}\n\n{own if own is not None else _USUAL}"


def read_answer(text: str, structured: Any = None) -> WorkAnswer | None:
    """The answer: the structured object, else the last object in the text that has a state; None where none has."""
    for found in (structured, *_objects_in(text[-READ_CHARACTERS:])):
        if (answer := _answer(found)) is not None:
            return answer
    return None


def _objects_in(text: str) -> Iterator[Any]:
    """The objects around `"state":`, the last first. Models put them into fences, or talk before and after."""
    decoder = json.JSONDecoder()
    for word in list(_STATE.finditer(text))[: -MAX_PLACES - 1 : -1]:
        begins = word.start()
        for _ in range(MAX_BRACES):
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
    """A text, even where a model gave a list or an object."""
    if found is None or isinstance(found, str):
        return _whole(found or "")
    return json.dumps(found, ensure_ascii=False)


def _whole(text: str) -> str:
    """Without lone surrogates, which JSON can hold and UTF-8 can't."""
    return text.encode("utf-8", "replace").decode("utf-8")
