"""opencode's messages: what the last ones make of the agent, and a database that is written while it is read."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from shared.agents.evidence import Evidence
from shared.agents.opencode import activity
from shared.agents.opencode.activity import OpencodeActivityReader, claim_of
from shared.agents.transcript_activity import reader_for
from shared.contract.states import Activity

SAMPLES = Path(__file__).parents[4] / "samples" / "transcripts" / "opencode-1.18.33"
T = 1794845000.0
WORKING, WAITING, ASKS = Activity.WORKING, Activity.WAITING, Activity.NEEDS_APPROVAL
LIMITED, FAILED = Activity.LIMITED, Activity.FAILED

Row = dict[str, Any]


def ms(at: float) -> int:
    return round((T + at) * 1000)


def message(role: str, at: float, *parts: Row, ended: float | None = None, **more: Any) -> Row:
    times = {"created": ms(at)} | ({"completed": ms(ended)} if ended is not None else {})
    return {"message": {"role": role, "time": times, **more}, "parts": list(parts)}


def tool(status: str, at: float, name: str = "bash", **state: Any) -> Row:
    about = {"status": status, "input": {"command": "touch x"}, "time": {"start": ms(at)}, **state}
    return {"id": f"{name}{at}{state}", "type": "tool", "tool": name, "state": about}


def answer(*parts: Row, **more: Any) -> Row:
    return message("assistant", 1, *parts, **more)


def failed(name: str, **data: Any) -> Row:
    return answer(ended=2, error={"name": name, "data": data})


PROMPT = message("user", 0, {"type": "text", "text": "do it"})
TEXT: Row = {"type": "text", "text": "All done.", "time": {"start": ms(1.2), "end": ms(1.5)}}
STEP: Row = {"ended": 2, "finish": "tool-calls"}
RUNS = tool("running", 1.3, metadata={"output": ""})
REFUSED = "The user rejected permission to use this specific tool call."
CORRECTED = "The user rejected permission to use this specific tool call with the following feedback: no"


@pytest.mark.parametrize(
    ("rows", "says", "at", "weak"),
    [
        ([PROMPT], WORKING, 0, False),
        ([PROMPT, answer()], WORKING, 1, False),
        ([PROMPT, answer(TEXT)], WORKING, 1.5, False),
        ([PROMPT, answer(tool("running", 1.3))], WORKING, 1.3, True),
        ([PROMPT, answer(tool("pending", 1.3))], WORKING, 1.3, True),
        ([PROMPT, answer(RUNS)], WORKING, 1.3, False),
        ([PROMPT, answer(RUNS | {"changed": ms(4)})], WORKING, 4, False),
        ([PROMPT, answer(tool("running", 1.3), RUNS)], WORKING, 1.3, True),
        ([PROMPT, answer(tool("running", 1.3, "task", metadata={"sessionId": "ses_2"}))], WORKING, 1.3, True),
        ([PROMPT, answer(tool("running", 1.3, "question"))], ASKS, 1.3, False),
        ([PROMPT, answer(tool("completed", 1.3))], WORKING, 1.3, False),
        ([PROMPT, answer(tool("completed", 1.3), **STEP)], WORKING, 2, False),
        ([PROMPT, answer(tool("error", 1.3, error="exit 1"), **STEP)], WORKING, 2, False),
        ([PROMPT, answer(tool("error", 1.3, error=REFUSED), **STEP)], WAITING, 2, False),
        ([PROMPT, answer(tool("error", 1.3, error=CORRECTED), **STEP)], WORKING, 2, False),
        ([PROMPT, answer(TEXT, ended=2, finish="stop")], WAITING, 2, False),
        ([PROMPT, answer(ended=2)], WAITING, 2, False),
        ([PROMPT, answer(ended=2, finish="stop"), message("user", 3)], WORKING, 3, False),
        # a prompt that waits for its turn
        ([PROMPT, answer(tool("running", 30)), message("user", 5)], WORKING, 30, True),
        ([PROMPT, answer(ended=30, finish="stop"), message("user", 5)], WAITING, 30, False),
        ([PROMPT, failed("MessageAbortedError", message="Aborted")], WAITING, 2, False),
    ],
)
def test_the_last_messages_make_the_claim(rows: list[Row], says: Activity, at: float, weak: bool) -> None:
    for order in (rows, rows[::-1]):
        found = claim_of(order)
        assert found is not None
        assert (found.says, round(found.at - T, 3), found.weak) == (says, at, weak)


@pytest.mark.parametrize(
    ("name", "data", "says"),
    [
        ("ProviderAuthError", {"message": "no key"}, FAILED),
        ("APIError", {"message": "unauthorized", "statusCode": 401}, FAILED),
        ("APIError", {"message": "slow down", "statusCode": 429}, LIMITED),
        ("APIError", {"message": "Your credit balance is too low", "statusCode": 400}, FAILED),
        ("APIError", {"message": "broken", "statusCode": 500}, WAITING),
        ("ContextOverflowError", {"message": "too long"}, WAITING),
        ("UnknownError", {}, WAITING),
    ],
)
def test_an_error_that_ends_the_turn(name: str, data: Row, says: Activity) -> None:
    found = claim_of([PROMPT, failed(name, **data)])
    assert found is not None
    assert (found.says, found.why) == (says, data.get("message", name))


@pytest.mark.parametrize(
    "row", [{}, {"message": None, "parts": None}, {"message": {"role": "assistant"}, "parts": [3]}]
)
def test_what_is_not_understood_changes_nothing(row: Row) -> None:
    assert claim_of([PROMPT, row]) == claim_of([PROMPT])
    assert claim_of([row]) is None


# --- the database ---


def sample(name: str, directory: Path) -> Path:
    path = directory / f"{name}.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((SAMPLES / f"{name}.sql").read_text())
    return path


def conversation_in(path: Path) -> str:
    with closing(sqlite3.connect(path)) as database:
        return str(database.execute("SELECT id FROM session").fetchone()[0])


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    """opencode, as it were: it keeps its database open, and a log beside it."""
    path = sample("turns", tmp_path)
    with closing(sqlite3.connect(path, isolation_level=None)) as database:
        database.execute("PRAGMA journal_mode = wal")
        yield database


def put(writer: sqlite3.Connection, conversation: str, ident: str, data: Row) -> None:
    row = (ident, conversation, data["time"]["created"], data["time"]["created"], json.dumps(data))
    writer.execute("INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?, ?)", row)


@pytest.mark.parametrize("name", ["turns", "queued"])
def test_real_conversations(name: str, tmp_path: Path) -> None:
    path = sample(name, tmp_path)
    reader = reader_for("opencode", path, conversation_in(path))
    assert reader is not None
    found = reader.read()
    assert found is not None
    assert found.says is WAITING


def said(evidence: Evidence | None) -> Activity | None:
    return evidence.says if evidence is not None else None


def test_a_database_that_is_being_written_is_followed(writer: sqlite3.Connection, tmp_path: Path) -> None:
    path = tmp_path / "turns.db"
    conversation = conversation_in(path)
    reader, other = OpencodeActivityReader(path, conversation), OpencodeActivityReader(path, "ses_other")
    assert (said(reader.read()), other.read()) == (WAITING, None)
    created = 1894845000000
    put(writer, conversation, "msg_2", {"role": "user", "time": {"created": created}})
    assert (said(reader.read()), other.read()) == (WORKING, None)
    put(writer, "ses_other", "msg_3", {"role": "user", "time": {"created": created + 1}})
    assert (said(reader.read()), said(other.read())) == (WORKING, WORKING)
    times = {"created": created + 2, "completed": created + 3}
    put(writer, conversation, "msg_4", {"role": "assistant", "time": times, "finish": "stop"})
    assert (said(reader.read()), said(other.read())) == (WAITING, WORKING)


def test_an_unchanged_database_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = sample("turns", tmp_path)
    os.utime(path, ns=(0, 10**9))
    reader = OpencodeActivityReader(path, conversation_in(path))
    before = reader.read()
    assert before is not None
    monkeypatch.setattr(activity, "claim_of", lambda _: pytest.fail("asked"))
    assert reader.read() == before


def test_a_database_that_is_gone_broken_or_replaced(tmp_path: Path) -> None:
    path = sample("turns", tmp_path)
    conversation = conversation_in(path)
    reader = OpencodeActivityReader(path, conversation)
    assert said(reader.read()) is WAITING
    path.unlink()
    assert reader.read() is None
    path.write_bytes(b"no database at all" * 100)
    assert reader.read() is None
    path.unlink()
    sample("turns", tmp_path)
    assert said(reader.read()) is WAITING
    assert reader_for("opencode", path, None) is None
