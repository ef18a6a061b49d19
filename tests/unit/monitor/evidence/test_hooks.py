"""What hooks tell, event by event, of the main agent and of subagents."""

import json
from typing import Any

import pytest

from services.monitor.evidence.hooks import HOOKS, MAIN, HookMemory, HookState, take
from shared.contract.states import Activity
from tests.unit.monitor.samples import GONE

WORKING, WAITING, ASKS = Activity.WORKING, Activity.WAITING, Activity.NEEDS_APPROVAL


def call(event: str, **more: Any) -> dict[str, Any]:
    return {"hook_event_name": event, "session_id": "s1", **more}


def after(*calls: dict[str, Any]) -> HookState:
    known = HookState()
    for place, payload in enumerate(calls):
        known = take(known, payload, 100.0 + place)
    return known


def says(known: HookState) -> Activity | None:
    evidence = known.evidence()
    return evidence.says if evidence is not None else None


BASH = {"tool_name": "Bash", "tool_input": {"command": "touch x"}}
START, PROMPT = call("SessionStart", source="startup"), call("UserPromptSubmit")
ASKED = [PROMPT, call("PreToolUse", **BASH), call("PermissionRequest", **BASH)]

TABLE: dict[str, tuple[list[dict[str, Any]], Activity | None]] = {
    "nothing": ([], None),
    "fresh": ([START], WAITING),
    "resumed": ([call("SessionStart", source="resume")], WAITING),
    "a prompt": ([START, PROMPT], WORKING),
    "a tool": ([PROMPT, call("PreToolUse", **BASH)], WORKING),
    "asks for permission": (ASKED, ASKS),
    "was given it, and the tool has run": ([*ASKED, call("PostToolUse", **BASH)], WORKING),
    "a tool that failed": ([*ASKED, call("PostToolUseFailure", **BASH)], WORKING),
    "a question": ([PROMPT, call("PreToolUse", tool_name="AskUserQuestion")], ASKS),
    "a plan to agree to": ([PROMPT, call("PreToolUse", tool_name="ExitPlanMode")], ASKS),
    "done": ([PROMPT, call("Stop")], WAITING),
    "limited": ([PROMPT, call("StopFailure", error="rate_limit")], Activity.LIMITED),
    "not logged in": ([PROMPT, call("StopFailure", error="authentication_failed")], Activity.FAILED),
    "no credit": ([PROMPT, call("StopFailure", error="billing_error")], Activity.FAILED),
    "a server's error": ([PROMPT, call("StopFailure", error="server_error")], WAITING),
    "an error that is new": ([PROMPT, call("StopFailure")], WAITING),
    "limited, then asked again": ([call("StopFailure", error="rate_limit"), PROMPT], WORKING),
    "interrupted, as Codex tells it": ([*ASKED, call("Interrupt")], WAITING),
    "made shorter in the middle of work": (
        [PROMPT, call("PreCompact"), call("SessionStart", source="compact")],
        WORKING,
    ),
    "a notice about a permission": ([PROMPT, call("Notification", notification_type="permission_prompt")], ASKS),
    "a notice that it idles": ([PROMPT, call("Notification", notification_type="idle_prompt")], WAITING),
    "a notice of something else": ([PROMPT, call("Notification", notification_type="auth_success")], WORKING),
    "the end": ([START, call("SessionEnd", reason="prompt_input_exit")], Activity.DONE),
    "cleared": ([START, call("SessionEnd", reason="clear")], WAITING),
    "Gemini: a prompt": ([call("BeforeAgent")], WORKING),
    "Gemini: asks": ([call("BeforeAgent"), call("Notification", notification_type="ToolPermission")], ASKS),
    "Gemini: done": ([call("BeforeAgent"), call("AfterAgent")], WAITING),
    "an event that nobody knows": ([PROMPT, call("MoonRise")], WORKING),
    "a payload that is no event": ([PROMPT, {"hook_event_name": 7, "session_id": None}], WORKING),
}


@pytest.mark.parametrize(("calls", "status"), TABLE.values(), ids=TABLE.keys())
def test_what_each_call_means(calls: list[dict[str, Any]], status: Activity | None) -> None:
    assert says(after(*calls)) is status


SUB = {"agent_id": "a1", "agent_type": "Explore"}


def test_a_subagent_is_told_apart_from_the_main_agent() -> None:
    known = after(PROMPT, call("SubagentStart", **SUB), call("Stop"))
    assert known.subagents == {"a1": WORKING}
    assert known.parts[MAIN].says is WAITING
    assert says(known) is WORKING, "the session does what is most urgent in it"


def test_a_subagent_that_asks_makes_the_session_ask() -> None:
    known = after(PROMPT, call("SubagentStart", **SUB), call("PermissionRequest", **SUB, **BASH))
    evidence = known.evidence()
    assert evidence is not None
    assert (evidence.says, evidence.part) == (ASKS, "a1")


def test_a_subagent_that_ended_is_forgotten() -> None:
    known = after(PROMPT, call("SubagentStart", **SUB), call("SubagentStop", **SUB), call("Stop"))
    assert (known.subagents, says(known)) == ({}, WAITING)


def test_an_interruption_ends_the_subagents_too() -> None:
    known = after(PROMPT, call("SubagentStart", **SUB), call("Interrupt"))
    assert (known.subagents, says(known)) == ({}, WAITING)


def test_a_call_that_comes_late_changes_nothing() -> None:
    known = after(PROMPT, call("Stop"))
    assert take(known, call("PreToolUse", **BASH), 100.5) == known


def test_a_call_that_comes_twice_changes_nothing() -> None:
    known = after(*ASKED)
    assert take(known, ASKED[-1], 102.0) == known


def test_another_program_of_its_kind_is_not_taken_for_it() -> None:
    known = after(START, PROMPT)
    other = {**call("SessionStart", source="startup"), "session_id": "other"}
    assert take(take(known, other, 200.0), {**call("Stop"), "session_id": "other"}, 201.0) == known


def test_another_conversation_that_the_program_goes_on_with_counts() -> None:
    known = after(START, PROMPT)
    known = take(known, {**call("SessionStart", source="clear"), "session_id": "next"}, 200.0)
    assert (known.conversation, says(known)) == ("next", WAITING)


def test_a_command_that_was_asked_for_is_known_until_a_later_call() -> None:
    asked = after(*ASKED).asked_for
    assert asked is not None
    assert asked.command == "touch x"
    assert after(*ASKED, call("PostToolUse", **BASH)).asked_for is None


NOTICE = call("Notification", notification_type="permission_prompt", message="Claude needs your permission")


def test_a_notice_of_a_question_that_is_known_is_no_other_question() -> None:
    """Claude sends one some seconds after the dialog opened, and never names the subagent."""
    assert after(*ASKED, NOTICE) == after(*ASKED)
    known = after(PROMPT, call("PermissionRequest", **SUB, **BASH), NOTICE, call("PostToolUse", **SUB, **BASH))
    assert says(known) is WORKING


def test_a_notice_after_an_answer_is_another_question() -> None:
    assert says(after(*ASKED, call("PostToolUse", **BASH), NOTICE)) is ASKS


def test_each_notice_of_an_agent_that_tells_in_no_other_way_counts() -> None:
    asks = call("Notification", notification_type="ToolPermission")
    evidence = after(call("BeforeAgent"), asks, asks).evidence()
    assert evidence is not None
    assert evidence.at == 102.0


def test_what_hooks_told_is_remembered_as_it_was() -> None:
    known = after(PROMPT, call("SubagentStart", **SUB), call("PermissionRequest", **SUB, **BASH))
    memory = HookMemory("s1", known, GONE)
    assert HOOKS.load(json.loads(json.dumps(HOOKS.dump(memory)))) == memory


def test_another_conversation_of_the_same_program_counts() -> None:
    """Codex says of a new one that it starts, Claude Code nothing of one that it branches off."""
    known = take(HookState(), START, 100.0, pid=7)
    begun = {**call("SessionStart", source="startup"), "session_id": "next"}
    assert take(known, {**call("UserPromptSubmit"), "session_id": "next"}, 101.0, pid=7).conversation == "next"
    assert take(known, begun, 101.0, pid=7).conversation == "next"
    assert take(known, begun, 101.0, pid=8) == known, "an agent may run another of its kind"


def test_only_the_part_that_was_corrected_is_forgotten() -> None:
    known = after(*ASKED, call("SubagentStart", **SUB))
    left = known.without([MAIN])
    assert (left.conversation, left.subagents, MAIN in left.parts) == ("s1", {"a1": WORKING}, False)


def test_after_a_clock_was_set_back_new_calls_still_count() -> None:
    known = take(HookState(), PROMPT, 5_000.0)
    assert says(take(known, call("Stop"), 100.0)) is WORKING
    assert says(take(known.clamped(99.0), call("Stop"), 100.0)) is WAITING
    assert known.clamped(5_000.0) is known
