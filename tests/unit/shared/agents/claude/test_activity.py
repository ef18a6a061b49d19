"""Claude Code's lines, one by one: what each makes of the agent."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from shared.agents.claude.activity import ClaudeActivity
from shared.agents.evidence import Evidence, EvidenceSource
from shared.contract.states import Activity

SAMPLES = Path(__file__).parents[4] / "samples" / "transcripts" / "claude-2.1.197"
T = 1794845000.0
WORKING, WAITING, ASKS = Activity.WORKING, Activity.WAITING, Activity.NEEDS_APPROVAL
LIMITED, FAILED = Activity.LIMITED, Activity.FAILED

Line = dict[str, Any]
REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected (eg. …). "


def stamp(at: float) -> str:
    return datetime.fromtimestamp(T + at, UTC).isoformat().replace("+00:00", "Z")


def user(at: float, content: Any, **more: Any) -> Line:
    return {"type": "user", "timestamp": stamp(at), "isSidechain": False, "message": {"content": content}, **more}


def result(at: float, call: str, text: str = "done", **more: Any) -> Line:
    return user(at, [{"type": "tool_result", "tool_use_id": call, "content": text}], **more)


def answer(at: float, *blocks: Line, reason: str | None = "end_turn", **more: Any) -> Line:
    message = {"role": "assistant", "content": list(blocks), "stop_reason": reason}
    return {"type": "assistant", "timestamp": stamp(at), "isSidechain": False, "message": message, **more}


def tool(call: str, name: str = "Bash", **given: Any) -> Line:
    return {"type": "tool_use", "id": call, "name": name, "input": given}


def calls(*tools: Line) -> Line:
    return answer(1, *tools, reason="tool_use")


def error(at: float, text: str, kind: str | None, status: int | None, **more: Any) -> Line:
    return answer(
        at,
        TEXT | {"text": text},
        reason="stop_sequence",
        isApiErrorMessage=True,
        error=kind,
        apiErrorStatus=status,
        **more,
    )


def system(at: float, subtype: str, **more: Any) -> Line:
    return {"type": "system", "subtype": subtype, "timestamp": stamp(at), "isSidechain": False, **more}


def request(at: float, source: str = "repl_main_thread") -> Line:
    return {"type": "api-request", "timestamp": stamp(at), "querySource": source}


TEXT: Line = {"type": "text", "text": "All done."}
THINKING: Line = {"type": "thinking", "thinking": "hm"}
PROMPT = user(0, "do it")
ENDED = answer(1, TEXT)
LAUNCHED = result(2, "a", "Async agent launched successfully. …")


def claim(*lines: Line) -> Evidence | None:
    reading = ClaudeActivity()
    for line in lines:
        reading.take(line)
    return reading.claim()


@pytest.mark.parametrize(
    ("lines", "says", "at", "weak"),
    [
        ([PROMPT], WORKING, 0, False),
        ([user(0, [{"type": "image", "source": {}}])], WORKING, 0, False),
        ([user(0, "<task-notification>done</task-notification>")], WORKING, 0, False),
        ([PROMPT, answer(1, THINKING)], WORKING, 1, False),
        ([PROMPT, answer(1, THINKING), answer(1.1, TEXT)], WAITING, 1.1, False),
        ([PROMPT, answer(1, TEXT, reason="tool_use")], WORKING, 1, False),
        ([PROMPT, answer(1, TEXT, reason=None)], WORKING, 1, True),
        ([PROMPT, answer(1, TEXT, reason="max_tokens")], WORKING, 1, False),
        ([PROMPT, calls(tool("a", command="touch x"))], WORKING, 1, True),
        ([PROMPT, calls(tool("a")), result(2, "a")], WORKING, 2, False),
        ([PROMPT, calls(tool("a"), tool("b")), result(2, "a")], WORKING, 2, True),
        ([PROMPT, calls(tool("a")), result(2, "a"), answer(3, TEXT)], WAITING, 3, False),
        ([PROMPT, ENDED, system(1.2, "turn_duration")], WAITING, 1.2, False),
        ([PROMPT, ENDED, user(2, "Stop hook feedback:\n- go on", isMeta=True)], WORKING, 2, False),
        ([PROMPT, ENDED, user(2, "next")], WORKING, 2, False),
        ([PROMPT, system(1, "api_error", retryAttempt=2, maxRetries=10)], WORKING, 1, False),
        ([PROMPT, ENDED, request(2)], WORKING, 2, False),
        ([PROMPT, ENDED, request(2, "agent:general")], WAITING, 1, False),
        # subagents that outlast the turn
        ([PROMPT, calls(tool("a", "Agent")), LAUNCHED, answer(3, TEXT)], WORKING, 3, True),
        (
            [PROMPT, LAUNCHED, answer(3, TEXT), system(4, "turn_duration", pendingBackgroundAgentCount=1)],
            WORKING,
            4,
            True,
        ),
        ([PROMPT, LAUNCHED, answer(3, TEXT), system(4, "turn_duration")], WAITING, 4, False),
        ([PROMPT, LAUNCHED, answer(3, TEXT), user(5, "<task-notification>…"), answer(6, TEXT)], WAITING, 6, False),
        # a person stopped it
        ([PROMPT, user(1, [{"type": "text", "text": "[Request interrupted by user]"}])], WAITING, 1, False),
        ([PROMPT, calls(tool("a")), result(2, "a", REFUSED + "STOP what you are doing")], WAITING, 2, False),
        ([PROMPT, calls(tool("a")), result(2, "a", REFUSED + "the user said: use y")], WORKING, 2, False),
        # a person is asked
        ([PROMPT, calls(tool("a", "AskUserQuestion"))], ASKS, 1, False),
        ([PROMPT, calls(tool("a", "ExitPlanMode"))], ASKS, 1, False),
        ([PROMPT, calls(tool("b"), tool("a", "AskUserQuestion")), result(2, "b")], ASKS, 2, False),
        ([PROMPT, calls(tool("a", "AskUserQuestion")), result(2, "a")], WORKING, 2, False),
        # a command of its own is no prompt
        ([PROMPT, ENDED, user(2, "<command-name>/model</command-name>")], WAITING, 1, False),
        ([PROMPT, ENDED, user(2, "<local-command-stdout>x</local-command-stdout>")], WAITING, 1, False),
        ([PROMPT, ENDED, user(2, "<bash-input>ls</bash-input>")], WAITING, 1, False),
        ([PROMPT, ENDED, system(2, "compact_boundary"), user(2, "so far …", isCompactSummary=True)], WAITING, 1, False),
        ([PROMPT, ENDED, user(2, "Caveat: …", isMeta=True)], WAITING, 1, False),
    ],
)
def test_each_line_makes_its_claim(lines: list[Line], says: Activity, at: float, weak: bool) -> None:
    found = claim(*lines)
    assert found is not None
    assert (found.source, found.says, round(found.at - T, 3), found.weak) == (EvidenceSource.TRANSCRIPT, says, at, weak)


@pytest.mark.parametrize(
    ("text", "kind", "status", "says"),
    [
        ("You've hit your session limit · resets 3pm (UTC)", "rate_limit", 429, LIMITED),
        ("API Error: Request rejected (429) · out of budget", "rate_limit", 429, LIMITED),
        ("API Error: 400 … You will regain access on 2026-08-01 at 00:00 UTC.", "invalid_request", 400, LIMITED),
        ("limited", None, 429, LIMITED),
        ("API Error: Server is temporarily limiting requests (not your usage limit) · …", "rate_limit", 429, WAITING),
        ("Opus is experiencing high load, please use /model to switch to Sonnet", "rate_limit", None, WAITING),
        ("Not logged in · Please run /login", "authentication_failed", 401, FAILED),
        ("Credit balance is too low", "billing_error", 400, FAILED),
        ("No such model", "model_not_found", 404, FAILED),
        ("forbidden", "unknown", 403, FAILED),
        ("API Error: 500", "server_error", 500, WAITING),
        ("Prompt is too long", "invalid_request", 400, WAITING),
    ],
)
def test_an_error_that_ends_the_turn(text: str, kind: str | None, status: int | None, says: Activity) -> None:
    ends = error(1, text, kind, status)
    for lines in (
        [PROMPT, ends],
        [PROMPT, ends, system(1.1, "turn_duration")],
        [system(1.1, "turn_duration"), PROMPT, ends],
    ):
        found = claim(*lines)
        assert found is not None
        assert (found.says, found.why) == (says, text)
    after = claim(PROMPT, ends, user(2, "again"))
    assert after is not None
    assert after.says is WORKING


def test_an_agent_that_continues_by_itself_says_so() -> None:
    limit = error(1, "You've hit your 5-hour limit · resets 6:23pm (UTC)", "rate_limit", 429)
    says = system(1.1, "informational", content="Usage limit reached · continuing automatically at 6:23pm")
    reset = system(9, "informational", content="Usage limit reset · Continuing automatically")
    found = claim(PROMPT, limit, says, system(1.2, "turn_duration"), system(5, "informational", content="other news"))
    assert found is not None
    assert (found.says, round(found.at - T, 3)) == (LIMITED, 1)
    assert found.why.endswith("resets 6:23pm (UTC) · Usage limit reached · continuing automatically at 6:23pm")
    after = claim(PROMPT, limit, says, reset)
    assert after is not None
    assert after.says is WORKING


def test_a_limit_that_is_only_quoted_is_none() -> None:
    quoted = TEXT | {"text": "You've hit your session limit · resets 3pm (UTC)"}
    found = claim(PROMPT, answer(1, quoted, isApiErrorMessage=False))
    assert found is not None
    assert found.says is WAITING


def test_a_subagents_lines_say_nothing() -> None:
    lines = [user(0, "x"), answer(1, tool("a")), error(2, "limit", "rate_limit", 429)]
    assert claim(*(line | {"isSidechain": True} for line in lines)) is None


def test_lines_out_of_order_are_put_in_order() -> None:
    for lines in ([system(1.2, "turn_duration"), PROMPT], [system(1.2, "turn_duration"), PROMPT, ENDED]):
        found = claim(*lines)
        assert found is not None
        assert (found.says, round(found.at - T, 3)) == (WAITING, 1.2)


def test_a_clock_that_was_set_back_stops_nothing() -> None:
    found = claim(user(7200, "before"), answer(7201, TEXT), PROMPT)
    assert found is not None
    assert (found.says, found.at) == (WORKING, T)


@pytest.mark.parametrize(
    "line",
    [
        {},
        {"type": "user"},
        PROMPT | {"message": None},
        PROMPT | {"timestamp": []},
        answer(1) | {"message": {"content": [3]}},
    ],
)
def test_what_is_not_understood_changes_nothing(line: Line) -> None:
    before = claim(PROMPT, ENDED)
    assert claim(PROMPT, ENDED, line) == before


@pytest.mark.parametrize(("name", "says"), [("turns", LIMITED), ("queued", WORKING)])
def test_real_conversations(name: str, says: Activity) -> None:
    found = claim(*map(json.loads, (SAMPLES / f"{name}.jsonl").read_text().splitlines()))
    assert found is not None
    assert found.says is says


def test_the_words_are_few_and_on_one_line() -> None:
    found = claim(user(0, "a\nlong  prompt " * 5000))
    assert found is not None
    assert len(found.why) <= 300
    assert "\n" not in found.why
