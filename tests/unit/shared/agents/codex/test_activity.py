"""Codex's lines, one by one: what each makes of the agent."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shared.agents.codex.activity import CodexActivity
from shared.agents.evidence import Evidence
from shared.contract.states import Activity

SAMPLES = Path(__file__).parents[4] / "samples" / "transcripts" / "codex-0.166.0"
T = 1794845000.0
WORKING, WAITING, ASKS = Activity.WORKING, Activity.WAITING, Activity.NEEDS_APPROVAL
LIMITED, FAILED = Activity.LIMITED, Activity.FAILED

Line = dict[str, Any]


def line(at: float, kind: str, **payload: Any) -> Line:
    return {"timestamp": datetime.fromtimestamp(T + at, UTC).isoformat(), "type": kind, "payload": payload}


def event(at: float, what: str, **more: Any) -> Line:
    return line(at, "event_msg", type=what, **more)


def item(at: float, what: str, **more: Any) -> Line:
    return line(at, "response_item", type=what, **more)


def called(at: float, call: str, name: str = "exec_command", given: str = '{"cmd": "touch x"}') -> Line:
    return item(at, "function_call", name=name, arguments=given, call_id=call)


BEGAN = event(0, "task_started", turn_id="1")
SAID = event(0.1, "item_completed", item={"type": "UserMessage", "content": [{"type": "text", "text": "do it"}]})
OUTPUT = item(2, "function_call_output", call_id="a", output="done")
OVER = event(3, "task_complete", turn_id="1", last_agent_message="All done.")


def claim(*lines: Line) -> Evidence | None:
    reading = CodexActivity()
    for each in lines:
        reading.take(each)
    return reading.claim()


@pytest.mark.parametrize(
    ("lines", "says", "at", "weak"),
    [
        ([BEGAN], WORKING, 0, False),
        ([BEGAN, SAID], WORKING, 0.1, False),
        ([event(0, "user_message", message="do it")], WORKING, 0, False),
        ([BEGAN, called(1, "a")], WORKING, 1, True),
        ([BEGAN, called(1, "a", given="{broken")], WORKING, 1, True),
        ([BEGAN, item(1, "custom_tool_call", name="apply_patch", input="*** Begin", call_id="a")], WORKING, 1, True),
        ([BEGAN, item(1, "local_shell_call", action={"command": ["ls"]}, call_id="a")], WORKING, 1, True),
        ([BEGAN, called(1, "a"), OUTPUT], WORKING, 2, False),
        ([BEGAN, called(1, "a"), called(1.1, "b"), OUTPUT], WORKING, 2, True),
        ([BEGAN, called(1, "a", "request_user_input")], ASKS, 1, False),
        ([BEGAN, event(1, "item_completed", item={"type": "AgentMessage"})], WORKING, 1, False),
        ([BEGAN, event(1, "stream_error", message="retrying 1/5")], WORKING, 1, False),
        ([BEGAN, called(1, "a"), OUTPUT, OVER], WAITING, 3, False),
        ([BEGAN, called(1, "s", "spawn_agent"), OVER], WAITING, 3, True),
        ([BEGAN, called(1, "a"), event(3, "turn_aborted", turn_id="1", reason="interrupted")], WAITING, 3, False),
        ([BEGAN, event(1, "task_started", turn_id="2"), OVER], WORKING, 1, False),
        ([BEGAN, OVER, event(4, "token_count")], WAITING, 3, False),
        ([OVER], WAITING, 3, False),
        ([BEGAN, OVER, event(5, "task_started", turn_id="2")], WORKING, 5, False),
    ],
)
def test_each_line_makes_its_claim(lines: list[Line], says: Activity, at: float, weak: bool) -> None:
    found = claim(*lines)
    assert found is not None
    assert (found.says, round(found.at - T, 3), found.weak) == (says, at, weak)


@pytest.mark.parametrize(
    ("text", "info", "says"),
    [
        ("You’ve hit your usage limit. … try again at 7:37 AM.", "usage_limit_exceeded", LIMITED),
        ("Quota exceeded. Check your plan and billing details.", "usage_limit_exceeded", FAILED),
        ("too many", {"response_too_many_failed_attempts": {"http_status_code": 429}}, LIMITED),
        ("401 Unauthorized", {"http_connection_failed": {"http_status_code": 401}}, FAILED),
        ("log in", "unauthorized", FAILED),
        ("overloaded", "server_overloaded", WAITING),
        ("gone", {"response_stream_disconnected": {"http_status_code": None}}, WAITING),
        ("too long", "context_window_exceeded", WAITING),
        ("strange", ["?"], WAITING),
    ],
)
def test_an_error_that_ends_the_turn(text: str, info: Any, says: Activity) -> None:
    error = {"message": text, "codex_error_info": info}
    now = [BEGAN, event(3, "task_complete", turn_id="1", error=error)]
    older = [BEGAN, event(2, "error", **error), OVER]
    for lines in (now, older):
        found = claim(*lines)
        assert found is not None
        assert (found.says, found.why) == (says, text)
        after = claim(*lines, event(5, "task_started", turn_id="2"))
        assert after is not None
        assert after.says is WORKING


@pytest.mark.parametrize(
    "broken", [{}, event(9, "item_completed"), line(9, "event_msg"), item(9, "function_call"), {"payload": 3}]
)
def test_what_is_not_understood_changes_nothing(broken: Line) -> None:
    assert claim(BEGAN, OVER, broken) == claim(BEGAN, OVER)


@pytest.mark.parametrize(("name", "says"), [("turns", LIMITED), ("queued", WAITING)])
def test_real_conversations(name: str, says: Activity) -> None:
    found = claim(*map(json.loads, (SAMPLES / f"{name}.jsonl").read_text().splitlines()))
    assert found is not None
    assert found.says is says
