"""What the programs left when they were asked, as it was recorded, and what is made of it."""

import json
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shared.agents.fork import FORKS, CannotAsk, ForkAnswer, ForkFailed, OriginalConversation
from shared.agents.gemini.fork import WITHOUT
from shared.agents.opencode.fork import CONFIG, COPY
from shared.system.child_process import ProgramResult

NO_TURN = ForkFailed("its conversation is not on disk: it has had no turn yet, or it was removed")


def claude(**found: Any) -> str:
    known = {"type": "result", "subtype": "success", "is_error": False, "api_error_status": None, "num_turns": 1}
    return json.dumps({**known, **found, "session_id": "ac3f9512-1b26-4f5c-8223-3d597bdd23c1", "modelUsage": {}})


def lines(*found: dict[str, Any]) -> str:
    return "".join(json.dumps(each) + "\n" for each in found)


WARNING = {"type": "error", "message": "Model metadata for `gpt-6-luna` not found. Defaulting to fallback metadata."}
BEGINS = ({"type": "thread.started", "thread_id": "01a1"}, {"type": "item.completed", "item": WARNING})
ALIASES = "WARNING: proceeding, even though we could not create PATH aliases: Refusing to create helper binaries\n"
LIMIT = "You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro) or try again at 9:13 AM."
NO_KEY = "unexpected status 401 Unauthorized: Incorrect API key provided., url: http://127.0.0.1/v1/responses"
RETRYING = {"type": "error", "message": f"Reconnecting... 1/5 ({NO_KEY})"}
SAID = '{"state": "working", "summary": "s", "output": ""}'
COLOURS = "Warning: 256-color support not detected. Using a terminal with at least 256-color support is recommended.\n"
TRIED = COLOURS + (
    "Attempt 1 failed with status 429. Retrying with backoff... _ApiError:"
    ' {"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"You exceeded your quota.","details":[]}}\n'
    "    at throwErrorIfNotOK (file:///chunk-JDPZ4CE3.js:267833:24)\n"
)
LOGGED = (
    'timestamp=2026-11-17T07:23:51.114Z level=ERROR run=db14ba8c message="stream error" providerID=anthropic'
    ' agent=peek mode=primary error.error="AI_APICallError: This account is out of budget."\n'
)
STEP = {"type": "step_start", "sessionID": "ses_1", "part": {"type": "step-start"}}


@pytest.mark.parametrize(
    ("kind", "ended", "expected"),
    [
        ("claude", ProgramResult(0, claude(result=SAID), ""), ForkAnswer(SAID)),
        (
            "claude",
            ProgramResult(0, claude(result=SAID, structured_output={"state": "working"}), ""),
            ForkAnswer(SAID, {"state": "working"}),
        ),
        (
            "claude",
            ProgramResult(
                1,
                claude(
                    is_error=True, api_error_status=429, result="You've hit your session limit · resets 9:07am (UTC)"
                ),
                "",
            ),
            ForkFailed("You've hit your session limit · resets 9:07am (UTC)", limited=True),
        ),
        (
            "claude",
            ProgramResult(
                1, claude(is_error=True, api_error_status=401, result="Not logged in · Please run /login"), ""
            ),
            ForkFailed("Not logged in · Please run /login"),
        ),
        ("claude", ProgramResult(1, "", "No conversation found with session ID: d9f0b83c\n\n"), NO_TURN),
        (
            "claude",
            ProgramResult(1, "", "error: unknown option '--tools'\n"),
            ForkFailed("error: unknown option '--tools'"),
        ),
        ("claude", ProgramResult(None, "", ""), None),
        ("claude", ProgramResult(None, '{"type": "resu', ""), None),
        (
            "codex",
            ProgramResult(
                0, lines(*BEGINS, {"type": "item.completed", "item": {"type": "agent_message", "text": SAID}}), ALIASES
            ),
            ForkAnswer(SAID),
        ),
        (
            "codex",
            ProgramResult(1, lines(*BEGINS, {"type": "turn.failed", "error": {"message": LIMIT}}), ALIASES),
            ForkFailed(LIMIT, limited=True),
        ),
        (
            "codex",
            ProgramResult(1, lines(*BEGINS, RETRYING, {"type": "turn.failed", "error": {"message": NO_KEY}}), ALIASES),
            ForkFailed(NO_KEY),
        ),
        ("codex", ProgramResult(1, "", f"{ALIASES}Error: thread not loaded: 01a1"), NO_TURN),
        ("codex", ProgramResult(1, "", f"{ALIASES}Error: Session not found for thread_id: 01a1"), NO_TURN),
        (
            "codex",
            ProgramResult(None, lines(*BEGINS, RETRYING), ALIASES),
            ForkFailed(f"Reconnecting... 1/5 ({NO_KEY})"),
        ),
        ("codex", ProgramResult(None, lines(*BEGINS), ALIASES), None),
        (
            "opencode",
            ProgramResult(0, lines(STEP, {"type": "text", "part": {"type": "text", "text": SAID}}), ""),
            ForkAnswer(SAID),
        ),
        (
            "opencode",
            ProgramResult(
                0, lines({"type": "error", "error": {"name": "APIError", "data": {"message": "invalid x-api-key"}}}), ""
            ),
            ForkFailed("invalid x-api-key"),
        ),
        ("opencode", ProgramResult(None, "", LOGGED), ForkFailed("This account is out of budget.", limited=True)),
        ("opencode", ProgramResult(1, "", "Error: Session not found\n"), NO_TURN),
        ("opencode", ProgramResult(None, lines(STEP), ""), None),
        (
            "gemini",
            ProgramResult(0, json.dumps({"session_id": "f", "response": SAID}, indent=2), COLOURS),
            ForkAnswer(SAID),
        ),
        (
            "gemini",
            ProgramResult(
                145,
                "",
                COLOURS
                + json.dumps({"error": {"type": "Error", "message": "API key not valid.", "code": 145}}, indent=2),
            ),
            ForkFailed("API key not valid."),
        ),
        (
            "gemini",
            ProgramResult(42, "", "Error importing session from file: File not found or invalid format: /x"),
            NO_TURN,
        ),
        (
            "gemini",
            ProgramResult(None, "", TRIED),
            ForkFailed("the model refused for want of budget", limited=True),
        ),
        ("gemini", ProgramResult(None, "", COLOURS), None),
        ("demo", ProgramResult(0, f"{SAID}\n", ""), ForkAnswer(SAID)),
        ("demo", ProgramResult(1, "", "demo agent: there is no conversation c1\n"), NO_TURN),
        ("demo", ProgramResult(None, "", ""), None),
    ],
)
def test_what_was_recorded_is_read(kind: str, ended: ProgramResult, expected: ForkAnswer | ForkFailed | None) -> None:
    assert FORKS[kind].read(ended) == expected


@pytest.mark.parametrize(
    ("kind", "complaints", "hopeless"),
    [
        ("opencode", LOGGED, True),
        ("opencode", LOGGED.replace("This account is out of budget.", "Overloaded"), False),
        ("opencode", "quota", False),
        ("gemini", TRIED, True),
        ("gemini", COLOURS, False),
        ("claude", TRIED, False),
        ("codex", LOGGED, False),
    ],
)
def test_a_fork_that_waits_for_a_limit_is_ended(kind: str, complaints: str, *, hopeless: bool) -> None:
    assert FORKS[kind].is_hopeless(complaints) is hopeless


ODD = ("", "\0", "{", "[]", "null", "7", '{"type": []}', '{"item": 7, "type": "item.completed"}', '{"error": "x"}')


@pytest.mark.parametrize("kind", FORKS)
def test_whatever_a_program_leaves_is_an_answer_a_failure_or_nothing(kind: str) -> None:
    for out in ODD:
        for err in ODD:
            for status in (0, 1, None):
                found = FORKS[kind].read(ProgramResult(status, out, err))
                assert isinstance(found, ForkAnswer | ForkFailed | None)


def test_a_reason_is_one_line_that_is_not_too_long() -> None:
    failed = FORKS["codex"].read(
        ProgramResult(1, lines({"type": "turn.failed", "error": {"message": "a\nb " * 500}}), "")
    )
    assert isinstance(failed, ForkFailed)
    assert failed.reason.startswith("a b a b")
    assert len(failed.reason) < 400


# --- copies ---


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    made = tmp_path / "scratch"
    made.mkdir(mode=0o700)
    return made


def test_opencode_is_asked_on_a_copy_of_its_database(tmp_path: Path, scratch: Path) -> None:
    database = tmp_path / "a db #1.db"
    with closing(sqlite3.connect(database)) as own:
        own.execute("PRAGMA journal_mode=WAL")
        own.execute("CREATE TABLE session (id)")
        own.execute("INSERT INTO session VALUES ('ses_1')")
        own.commit()
        config = {"provider": {"x": 1}, "agent": {"mine": {}}}
        original = OriginalConversation("ses_1", database, tmp_path, {CONFIG: json.dumps(config)})
        prepared = FORKS["opencode"].prepare(original, scratch)
    with closing(sqlite3.connect(scratch / COPY)) as copy:
        assert copy.execute("SELECT id FROM session").fetchall() == [("ses_1",)]
    assert mode(scratch / COPY) == 0o600
    told = json.loads(prepared.env[CONFIG] or "")
    assert (told["provider"], sorted(told["agent"])) == ({"x": 1}, ["mine", "peek"])
    assert told["agent"]["peek"]["permission"] == {"*": "deny"}


def test_what_is_no_database_is_said(tmp_path: Path, scratch: Path) -> None:
    database = tmp_path / "x.db"
    database.write_text("no database at all, " * 1_000)
    with pytest.raises(CannotAsk, match="can't be copied"):
        FORKS["opencode"].prepare(OriginalConversation("ses_1", database, tmp_path, {}), scratch)
    with pytest.raises(CannotAsk, match="no turn yet"):
        FORKS["opencode"].prepare(OriginalConversation("ses_1", None, tmp_path, {}), scratch)


def test_gemini_is_asked_in_a_home_of_its_own(tmp_path: Path, scratch: Path) -> None:
    own = tmp_path / "home" / ".gemini"
    own.mkdir(parents=True)
    settings = {"security": {"auth": {"selectedType": "oauth"}}, "hooks": {"X": []}, "mcpServers": {"x": {}}}
    (own / "settings.json").write_text(f"// mine\n{json.dumps(settings)}")
    (own / "oauth_creds.json").write_text("secret")
    chat = tmp_path / "session-1.jsonl"
    chat.write_text('{"a": 1}\n{"b": 2}\n{"half')
    prepared = FORKS["gemini"].prepare(
        OriginalConversation("s", chat, tmp_path, {"HOME": str(tmp_path / "home")}), scratch
    )
    home = scratch / ".gemini"
    assert json.loads((home / "settings.json").read_text()) == {
        "security": settings["security"],
        "hooksConfig": {"enabled": False},
    }
    assert prepared.env == {WITHOUT: None}
    assert prepared.transcript is not None
    assert prepared.transcript.read_text() == '{"a": 1}\n{"b": 2}\n'
    assert (home / "oauth_creds.json").read_text() == "secret"
    assert {mode(path) for path in scratch.rglob("*") if path.is_file()} == {0o600}
    assert mode(home) == 0o700
    assert "deny" in (scratch / "deny.toml").read_text()
    assert not (home / "google_accounts.json").exists()


def test_gemini_settings_that_can_t_be_read_are_said(tmp_path: Path, scratch: Path) -> None:
    (tmp_path / ".gemini").mkdir()
    (tmp_path / ".gemini" / "settings.json").write_text("{ mine\n}")
    chat = tmp_path / "session-1.jsonl"
    chat.write_text("{}\n")
    with pytest.raises(CannotAsk, match=r"the settings in .*settings\.json can't be read"):
        FORKS["gemini"].prepare(OriginalConversation("s", chat, tmp_path, {"HOME": str(tmp_path)}), scratch)
