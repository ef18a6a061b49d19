"""Gemini CLI's and the demo agent's lines, one by one: what each makes of the agent."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shared.agents.evidence import Evidence
from shared.agents.transcript_activity import READINGS
from shared.contract.states import Activity

SAMPLES = Path(__file__).parents[4] / "samples" / "transcripts" / "gemini-0.61.0"
T = 1794845000.0
WORKING, WAITING = Activity.WORKING, Activity.WAITING
LIMITED, FAILED = Activity.LIMITED, Activity.FAILED

Line = dict[str, Any]


def stamp(at: float) -> str:
    return datetime.fromtimestamp(T + at, UTC).isoformat()


def message(at: float, kind: str, content: Any, **more: Any) -> Line:
    return {"id": f"{kind}{at}", "timestamp": stamp(at), "type": kind, "content": content, **more}


def tools(at: float, ended: float, *statuses: str) -> Line:
    calls = [{"id": str(place), "status": status, "timestamp": stamp(ended)} for place, status in enumerate(statuses)]
    return message(at, "gemini", "", toolCalls=calls)


OWN = [{"text": "<session_context>\nThis is the Gemini CLI."}]
PROMPT = message(0, "user", [{"text": "do it"}])
SET: Line = {"$set": {"lastUpdated": stamp(0)}}
ANSWER = message(1, "gemini", "All done.")
CANCELLED = message(2, "info", "Request cancelled.")
AGAIN = [message(2.1, "user", OWN), message(2.1, "user", [{"text": "do it"}]), message(2.1, "gemini", [{"text": "x"}])]
RESPONSE = message(3, "user", [{"functionResponse": {"response": {"output": "x"}}}])

STOPPED = message(3, "user", [{"functionResponse": {"response": {"error": "[Operation Cancelled] Reason: by user"}}}])


def claim(*lines: Line, kind: str = "gemini") -> Evidence | None:
    reading = READINGS[kind]()
    for each in lines:
        reading.take(each)
    return reading.claim()


@pytest.mark.parametrize(
    ("lines", "says", "at", "weak"),
    [
        ([PROMPT, SET], WORKING, 0, False),
        ([PROMPT, ANSWER], WAITING, 1, True),
        ([PROMPT, message(1, "gemini", "")], WORKING, 1, True),
        ([PROMPT, message(1, "gemini", ""), tools(1, 2, "success")], WORKING, 2, False),
        ([PROMPT, tools(1, 2, "success", "cancelled")], WORKING, 2, False),
        ([PROMPT, tools(1, 2, "cancelled")], WAITING, 2, False),
        ([PROMPT, tools(1, 2, "success"), RESPONSE], WORKING, 3, False),
        ([PROMPT, CANCELLED], WAITING, 2, False),
        ([PROMPT, CANCELLED, *AGAIN], WAITING, 2, False),
        ([PROMPT, CANCELLED, tools(2.1, 2.1, "cancelled"), STOPPED], WAITING, 3, False),
        ([PROMPT, CANCELLED, {"$set": {"messages": [PROMPT]}}], WAITING, 2, False),
        ([PROMPT, CANCELLED, *AGAIN, message(4, "user", [{"text": "next"}])], WORKING, 4, False),
        ([PROMPT, {"$rewindTo": "x", "timestamp": stamp(5)}], WAITING, 5, False),
        ([PROMPT, message(1, "info", "a new version is there")], WORKING, 0, False),
    ],
)
def test_each_line_makes_its_claim(lines: list[Line], says: Activity, at: float, weak: bool) -> None:
    found = claim(*lines)
    assert found is not None
    assert (found.says, round(found.at - T, 3), found.weak) == (says, at, weak)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Usage limit reached for all Pro models.\nAccess resets at 3:05 PM PDT.", LIMITED),
        ("[API Error: You exceeded your current quota (Status: RESOURCE_EXHAUSTED)]", LIMITED),
        ("[API Error: API key not valid. Please pass a valid API key.]", FAILED),
        ("[API Error: 403 PERMISSION_DENIED]", FAILED),
        ("[API Error: An internal error has occurred]", WAITING),
    ],
)
def test_an_error_that_ends_the_turn(text: str, says: Activity) -> None:
    found = claim(PROMPT, message(1, "error", text))
    assert found is not None
    assert (found.says, found.why) == (says, " ".join(text.split()))


def test_a_quoted_limit_is_none() -> None:
    found = claim(PROMPT, message(1, "gemini", "Usage limit reached for all Pro models."))
    assert found is not None
    assert found.says is WAITING


@pytest.mark.parametrize(
    "broken", [{}, {"type": "user"}, message(9, "gemini", 3, toolCalls=4), {"type": [], "timestamp": 1}]
)
def test_what_is_not_understood_changes_nothing(broken: Line) -> None:
    assert claim(PROMPT, CANCELLED, broken) == claim(PROMPT, CANCELLED)


@pytest.mark.parametrize("name", ["turns", "queued"])
def test_real_conversations(name: str) -> None:
    found = claim(*map(json.loads, (SAMPLES / f"{name}.jsonl").read_text().splitlines()))
    assert found is not None
    assert (found.says, found.rule) == (WAITING, "interrupted")


@pytest.mark.parametrize(
    ("lines", "says", "weak"),
    [
        ([{"time": T, "who": "user", "text": "work 10"}], WORKING, False),
        ([{"time": T, "who": "user", "text": "x"}, {"time": T, "who": "agent", "text": "All done."}], WAITING, True),
    ],
)
def test_the_demo_agent(lines: list[Line], says: Activity, weak: bool) -> None:
    found = claim(*lines, {"who": "user"}, {"time": "x"}, kind="demo")
    assert found is not None
    assert (found.says, found.at, found.weak) == (says, T, weak)
