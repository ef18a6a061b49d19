"""What an agent's last words tell: a promise, the trouble that it is in, and what it says of a limit."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from services.monitor.evidence.hooks import HOOKS, HookMemory, HookState, take
from shared.agents.claude.activity import ClaudeActivity
from shared.agents.codex.activity import CodexActivity
from shared.agents.demo.activity import DemoActivity
from shared.agents.evidence import Evidence, EvidenceSource, LimitStatement
from shared.agents.gemini.activity import GeminiActivity
from shared.agents.last_words import promise_in, promised, trouble_in
from shared.agents.opencode.activity import OpencodeActivity
from shared.agents.transcript_activity import TranscriptActivity
from shared.contract.states import Activity, Trouble

AT = datetime(2026, 11, 16, 16, 0, tzinfo=UTC)
STAMP = AT.isoformat()
UNTIL = "2026-11-17T09:30:00Z"
WORDS = f"The build runs.\n\nWAITING-UNTIL: {UNTIL}"


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (WORDS, UNTIL),
        ("WAITING-UNTIL: 2026-11-17 09:30", "2026-11-17 09:30"),
        ("`WAITING-UNTIL: 2026-11-17T09:30+01:00`.", "2026-11-17T09:30+01:00"),
        (f"WAITING-UNTIL: 2026-01-01T00:00Z, no: WAITING-UNTIL: {UNTIL}", UNTIL),
        ("If you are waiting for something, say WAITING-UNTIL: <ISO time>.", ""),
        ("waiting-until: tomorrow", ""),
        (f"**WAITING-UNTIL:** {UNTIL} - CI run", UNTIL),
        (f"WAITING-UNTIL: <{UNTIL}> 2 builds left", UNTIL),
        ("WAITING-UNTIL: 2026-11-17 09:30 2 builds left", "2026-11-17 09:30"),
    ],
)
def test_a_promise_is_a_time_behind_its_word(words: str, found: str) -> None:
    assert promise_in(words) == found


def waits(promise: str, at: float = 0.0) -> Evidence:
    return Evidence(EvidenceSource.HOOKS, Activity.WAITING, at, "its turn ended", promise=promise)


def test_a_promise_without_a_zone_is_of_the_agents_own() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    assert promised([waits("2026-11-17T09:30")], berlin) == datetime(2026, 11, 17, 8, 30, tzinfo=UTC).timestamp()
    assert promised([waits("2026-11-17T09:30Z")], berlin) == datetime(2026, 11, 17, 9, 30, tzinfo=UTC).timestamp()
    assert promised([waits("2026-99-99T09:30Z"), waits("")], UTC) is None
    newest = promised([waits("2026-11-17T09:30Z", at=1), waits("2026-11-18T09:30Z", at=2)], UTC)
    assert newest == datetime(2026, 11, 18, 9, 30, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    ("said", "trouble"),
    [
        ("authentication_failed", Trouble.LOGIN),
        ("Please run /login", Trouble.LOGIN),
        ("billing_error", Trouble.CREDIT),
        ("Your credit balance is too low", Trouble.CREDIT),
        ("Quota exceeded. Check your plan and billing details.", Trouble.CREDIT),
        ("model_not_found", Trouble.SETUP),
        ("The model gpt-9 does not exist", Trouble.SETUP),
    ],
)
def test_why_it_can_not_go_on(said: str, trouble: Trouble) -> None:
    assert trouble_in(said) is trouble


# --- hooks ---


def hooked(*calls: dict[str, Any]) -> HookState:
    known = HookState()
    for second, call in enumerate(calls):
        known = take(known, {"session_id": "c1", **call}, AT.timestamp() + second)
    return HOOKS.load(json.loads(json.dumps(HOOKS.dump(HookMemory("s1", known))))).state


def stops(error: str, said: str = "") -> dict[str, Any]:
    return {"hook_event_name": "StopFailure", "error": error, "last_assistant_message": said}


ASKED = {"hook_event_name": "UserPromptSubmit"}


def test_hooks_tell_a_promise_and_a_prompt_ends_it() -> None:
    stop = {"hook_event_name": "Stop", "last_assistant_message": WORDS}
    told = hooked(ASKED, stop).evidence()
    assert told is not None
    assert told.promise == UNTIL
    after = hooked(ASKED, {"hook_event_name": "AfterAgent", "prompt_response": WORDS}, ASKED).evidence()
    assert after is not None
    assert after.promise == ""


def test_hooks_tell_the_banner_and_the_trouble() -> None:
    limited = hooked(stops("rate_limit", "You've hit your session limit · resets 3am (UTC)")).evidence()
    assert limited is not None
    assert limited.limit == LimitStatement(AT.timestamp(), "You've hit your session limit · resets 3am (UTC)")
    failed = hooked(stops("authentication_failed", "Please run /login")).evidence()
    assert failed is not None
    assert (failed.says, failed.trouble) == (Activity.FAILED, Trouble.LOGIN)


def test_a_server_without_room_is_no_limit_of_the_account() -> None:
    said = "API Error: Server is temporarily limiting requests (not your usage limit)"
    told = hooked(stops("rate_limit", said)).evidence()
    assert told is not None
    assert (told.says, told.limit) == (Activity.WAITING, None)


def test_a_conversation_that_is_refused_twice_in_a_row_can_not_go_on() -> None:
    refused = stops("invalid_request", "messages.3: thinking blocks can't be modified")
    once = hooked(ASKED, refused).evidence()
    twice = hooked(ASKED, refused, ASKED, refused).evidence()
    between = hooked(ASKED, refused, ASKED, {"hook_event_name": "Stop"}, ASKED, refused).evidence()
    assert once is not None
    assert twice is not None
    assert between is not None
    assert (once.says, between.says) == (Activity.WAITING, Activity.WAITING)
    assert (twice.says, twice.trouble) == (Activity.FAILED, Trouble.SESSION)


# --- transcripts ---


def claude_says(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
    return {"type": "assistant", "timestamp": STAMP, "message": message}


def claude_error(kind: str, said: str, status: int, **more: Any) -> dict[str, Any]:
    return claude_says(said) | {"isApiErrorMessage": True, "error": kind, "apiErrorStatus": status, **more}


def codex_ends(said: str | None, **error: Any) -> dict[str, Any]:
    payload = {"type": "task_complete", "last_agent_message": said, **({"error": error} if error else {})}
    return {"type": "event_msg", "timestamp": STAMP, "payload": payload}


OVER = {"type": "system", "subtype": "turn_duration", "timestamp": STAMP}
PROMISES: dict[str, tuple[TranscriptActivity, list[dict[str, Any]]]] = {
    "claude": (
        ClaudeActivity(),
        [claude_says(WORDS), {"type": "system", "subtype": "turn_duration", "timestamp": STAMP}],
    ),
    "codex": (CodexActivity(), [codex_ends(WORDS)]),
    "gemini": (GeminiActivity(), [{"id": "1", "type": "gemini", "timestamp": STAMP, "content": WORDS}]),
    "opencode": (
        OpencodeActivity(),
        [
            {
                "message": {"role": "assistant", "time": {"created": 1, "completed": 2}, "finish": "stop"},
                "parts": [{"type": "text", "text": WORDS}],
            }
        ],
    ),
    "demo": (DemoActivity(), [{"time": 1.0, "who": "agent", "text": WORDS}]),
}


@pytest.mark.parametrize("kind", PROMISES)
def test_every_transcript_tells_a_promise(kind: str) -> None:
    reading, lines = PROMISES[kind]
    for line in lines:
        reading.take(line)
    claim = reading.claim()
    assert claim is not None
    assert (claim.says, claim.promise) == (Activity.WAITING, UNTIL)


def read(reading: TranscriptActivity, *lines: dict[str, Any]) -> Evidence:
    for line in lines:
        reading.take(line)
    claim = reading.claim()
    assert claim is not None
    return claim


def test_a_transcript_tells_the_moment_of_a_reset_and_whether_it_goes_on_by_itself() -> None:
    banner = "You've hit your 5-hour limit · resets 6:23pm (UTC)"
    quota = {"quotaLimits": {"resetsAt": 1794853396, "rateLimitType": "five_hour"}}
    auto = {
        "type": "system",
        "subtype": "informational",
        "timestamp": STAMP,
        "content": "Usage limit reached · continuing automatically at 6:23pm · esc to cancel",
    }
    limit = read(ClaudeActivity(), claude_error("rate_limit", banner, 429, **quota), auto).limit
    assert limit is not None
    assert limit.resets_at == 1794853396
    assert "continuing automatically at 6:23pm" in limit.words


@pytest.mark.parametrize("quota", [None, [], {"resetsAt": "soon"}, {}])
def test_an_unreadable_quota_says_nothing(quota: Any) -> None:
    limit = read(ClaudeActivity(), claude_error("rate_limit", "limit", 429, quotaLimits=quota)).limit
    assert limit is not None
    assert limit.resets_at is None


@pytest.mark.parametrize(
    ("reading", "refused", "well"),
    [
        (ClaudeActivity, claude_error("invalid_request", "too long", 400), claude_says("ok")),
        (CodexActivity, codex_ends(None, message="bad", codex_error_info="bad_request"), codex_ends("ok")),
    ],
)
def test_transcripts_tell_that_a_conversation_is_refused(
    reading: type[TranscriptActivity], refused: dict[str, Any], well: dict[str, Any]
) -> None:
    assert read(reading(), refused).says is Activity.WAITING
    assert read(reading(), refused, well, refused).says is Activity.WAITING
    twice = read(reading(), refused, refused)
    assert (twice.says, twice.trouble) == (Activity.FAILED, Trouble.SESSION)


RECORDED = Path(__file__).parents[3] / "real_agents" / "recorded"


@pytest.mark.parametrize(("situation", "trouble"), [("auth-failure", Trouble.LOGIN), ("credit", Trouble.CREDIT)])
@pytest.mark.parametrize("program", ["claude-2.1.197", "claude-2.1.325", "codex-0.166.0", "opencode-1.18.33"])
def test_recorded_transcripts_tell_their_trouble(program: str, situation: str, trouble: Trouble) -> None:
    recorded = json.loads((RECORDED / program / f"{situation}@120.json").read_text())
    readings = {"claude": ClaudeActivity(), "codex": CodexActivity(), "opencode": OpencodeActivity()}
    reading = readings[program.partition("-")[0]]
    assert read(reading, *recorded["transcript"]["lines"]).trouble is trouble
