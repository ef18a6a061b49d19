"""Transcripts as the real programs wrote them (`tests/samples/transcripts`), whole, cut, broken and growing."""

import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.agents import transcript
from shared.agents.transcript import (
    READERS,
    Speaker,
    TranscriptEntry,
    TranscriptFormat,
    at,
    is_silent,
    same_prompt,
    tool_call,
)

SAMPLES = Path(__file__).parents[3] / "samples" / "transcripts"
DIRECTORIES = {
    "claude": "claude-2.1.197",
    "codex": "codex-0.166.0",
    "gemini": "gemini-0.61.0",
    "opencode": "opencode-1.18.33",
}
LINES = ("claude", "codex", "gemini")
WORKSPACE = Path("/srv/app/ws")

Short = tuple[str, str]
USER, AGENT, TOOL, RESULT, FAILED, NOTE, THINKING = "user", "agent", "tool", "result", "failed", "note", "thinking"


def sample(kind: str, name: str, directory: Path) -> Path:
    """A sample as the agent's own file."""
    source = SAMPLES / DIRECTORIES[kind]
    if kind != "opencode":
        return source / f"{name}.jsonl"
    path = directory / f"{name}.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript((source / f"{name}.sql").read_text())
    return path


def read(kind: str, path: Path) -> list[TranscriptEntry]:
    return list(READERS[kind].entries(path, READERS[kind].conversation_in(path, WORKSPACE)))


def short(entries: list[TranscriptEntry]) -> Iterator[Short]:
    for entry in entries:
        who = FAILED if entry.who is Speaker.RESULT and entry.failed else str(entry.who)
        yield who, f"{entry.tool} {entry.text}".strip().partition("\n")[0][:34]


TURNS: dict[str, list[Short]] = {
    "claude": [
        (USER, "say hello, please"),
        (AGENT, "All done."),
        (USER, "DO-LONG"),
        (AGENT, "Here is the plan:"),
        (USER, "DO-BASH echo one; echo two; ls /no"),
        (TOOL, "Bash echo one; echo two; ls /nonex"),
        (FAILED, "Exit code 2"),
        (AGENT, "All done."),
        (USER, "DO-EDIT /srv/app/ws/x.txt"),
        (TOOL, "Write /srv/app/ws/x.txt"),
        (RESULT, "File created successfully at: /srv"),
        (AGENT, "All done."),
        (USER, "DO-STREAM 15"),
        (AGENT, "word0 word1 word2 word3 word4 word"),
        (NOTE, "interrupted"),
        (USER, "DO-LIMIT"),
        (NOTE, "You've hit your session limit · re"),
    ],
    "codex": [
        (USER, "say hello, please"),
        (AGENT, "All done."),
        (USER, "DO-LONG"),
        (AGENT, "Here is the plan:"),
        (USER, "DO-BASH echo one; echo two; ls /no"),
        (TOOL, "exec_command echo one; echo two; l"),
        (FAILED, "Chunk ID: aec0c3"),
        (AGENT, "All done."),
        (USER, "DO-EDIT /srv/app/ws/x.txt"),
        (AGENT, "No such tool here."),
        (USER, "DO-STREAM 15"),
        (NOTE, "interrupted"),
        (USER, "DO-LIMIT"),
        (NOTE, "You’ve hit your usage limit. Upgra"),
    ],
    "gemini": [
        (USER, "say hello, please"),
        (AGENT, "All done."),
        (USER, "DO-LONG"),
        (AGENT, "Here is the plan:"),
        (USER, "DO-BASH echo one; echo two; ls /no"),
        (TOOL, "run_shell_command echo one; echo t"),
        (FAILED, "one"),
        (AGENT, "All done."),
        (USER, "DO-EDIT /srv/app/ws/x.txt"),
        (TOOL, "write_file /srv/app/ws/x.txt"),
        (RESULT, "Successfully created and wrote to"),
        (AGENT, "All done."),
        (USER, "DO-STREAM 15"),
        (NOTE, "Request cancelled."),
        (USER, "DO-LIMIT"),
        (NOTE, "Request cancelled."),
    ],
    "opencode": [
        (USER, "say hello, please"),
        (AGENT, "All done."),
        (USER, "DO-LONG"),
        (AGENT, "Here is the plan:"),
        (USER, "DO-BASH echo one; echo two; ls /no"),
        (TOOL, "bash echo one; echo two; ls /nonex"),
        (FAILED, "one"),
        (AGENT, "All done."),
        (USER, "DO-EDIT /srv/app/ws/x.txt"),
        (TOOL, "write /srv/app/ws/x.txt"),
        (RESULT, "Wrote file successfully."),
        (AGENT, "All done."),
        (USER, "DO-STREAM 15"),
        (AGENT, "word0 word1 word2 word3 word4 word"),
        (NOTE, "interrupted"),
        (USER, "DO-LIMIT"),
    ],
}


@pytest.mark.parametrize("kind", TURNS)
def test_a_real_conversation_is_read(kind: str, tmp_path: Path) -> None:
    found = read(kind, sample(kind, "turns", tmp_path))
    assert [(who, text.strip()) for who, text in short(found)] == [(who, text.strip()) for who, text in TURNS[kind]]


@pytest.mark.parametrize("kind", TURNS)
def test_times_are_told_and_results_belong_to_calls(kind: str, tmp_path: Path) -> None:
    found = read(kind, sample(kind, "turns", tmp_path))
    times = [entry.time for entry in found if entry.time]
    assert len(times) == len(found)
    assert all(time.tzinfo for time in times)
    calls = [entry.call for entry in found if entry.who is Speaker.TOOL]
    assert calls
    assert calls == [entry.call for entry in found if entry.who is Speaker.RESULT]


@pytest.mark.parametrize("kind", TURNS)
def test_thoughts_and_refusals_are_seen(kind: str, tmp_path: Path) -> None:
    found = read(kind, sample(kind, "queued", tmp_path))
    assert ["two sides" in entry.text for entry in found if entry.who is Speaker.THINKING] == [True]
    refused = [entry for entry in found if entry.who is Speaker.RESULT]
    assert [entry.failed for entry in refused] == [True]


# --- the prompts ---

TURN_PROMPTS = [
    "say hello, please\nsecond line of the prompt",
    "DO-LONG",
    "DO-BASH echo one; echo two; ls /nonexistent",
    "DO-EDIT /srv/app/ws/x.txt",
    "DO-STREAM 15",
    "DO-LIMIT",
]
SENT = '  Look at the files\tand  tell\n\nwhat is wrong — "quoted" <b>&amp;</b> 漢字 🦀  '
"""As it was pasted; each program trims it in its own way."""
RECORDED = {
    "claude": '  Look at the files    and  tell\n\nwhat is wrong — "quoted" <b>&amp;</b> 漢字 🦀',
    "codex": SENT.strip(),
    "gemini": SENT.strip(),
    "opencode": SENT.lstrip()[:-1],
}
MORE = ["DO-REASON why?", "DO-STREAM 6", "queued while it works", "DO-BASH touch y.txt", "DO-ERROR"]


def prompts(reader: TranscriptFormat, path: Path, after: int = 0) -> tuple[list[str], int]:
    return reader.user_texts(path, after, reader.conversation_in(path, WORKSPACE))


@pytest.mark.parametrize("kind", TURNS)
def test_every_prompt_is_given_once_and_exactly(kind: str, tmp_path: Path) -> None:
    reader = READERS[kind]
    assert prompts(reader, sample(kind, "turns", tmp_path))[0] == TURN_PROMPTS
    queued = sample(kind, "queued", tmp_path)
    found, place = prompts(reader, queued)
    assert found == [RECORDED[kind], *MORE]
    assert same_prompt(SENT, found[0])
    assert place == reader.mark(queued, None)
    assert prompts(reader, queued, place) == ([], place)


@pytest.mark.parametrize("kind", LINES)
@pytest.mark.parametrize("name", ["turns", "queued"])
@pytest.mark.parametrize("step", [1, 97, 4096])
def test_prompts_come_once_however_the_file_grows(kind: str, name: str, step: int, tmp_path: Path) -> None:
    whole = sample(kind, name, tmp_path).read_bytes()
    growing = tmp_path / "growing.jsonl"
    growing.touch()
    found: list[str] = []
    place = 0
    with growing.open("ab", buffering=0) as file:
        for start in range(0, len(whole), step):
            file.write(whole[start : start + step])
            if step > 1 or whole[start : start + 1] in b"\n}":
                more, place = READERS[kind].user_texts(growing, place, None)
                found += more
    assert found == READERS[kind].user_texts(sample(kind, name, tmp_path), 0, None)[0]


def test_prompts_come_once_as_a_database_grows(tmp_path: Path) -> None:
    path = sample("opencode", "turns", tmp_path)
    with closing(sqlite3.connect(path)) as database:
        parts = database.execute("SELECT * FROM part ORDER BY rowid").fetchall()
        database.execute("DELETE FROM part")
        database.commit()
        found: list[str] = []
        place = 0
        for part in parts:
            database.execute("INSERT INTO part VALUES (?, ?, ?, ?, ?, ?)", part)
            database.commit()
            more, place = prompts(READERS["opencode"], path, place)
            found += more
    assert found == TURN_PROMPTS


def test_what_claude_took_into_its_queue_counts_at_once(tmp_path: Path) -> None:
    lines = sample("claude", "queued", tmp_path).read_bytes().splitlines(keepends=True)
    (row,) = [row for row, line in enumerate(lines) if b'"enqueue"' in line]
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(lines[: row + 1]))
    assert READERS["claude"].user_texts(path, 0, None)[0][-1] == "queued while it works"


@pytest.mark.parametrize(
    ("content", "typed"),
    [
        ("<command-name>/clear</command-name>\n<command-message>clear</command-message>", ["/clear"]),
        (
            "<command-message>x</command-message>\n<command-name>/x</command-name><command-args>a b</command-args>",
            ["/x a b"],
        ),
        ("<bash-input>ls -l</bash-input>", ["!ls -l"]),
        ("<local-command-stdout>done</local-command-stdout>", []),
        ("what does <command-name>/x</command-name> mean?", ["what does <command-name>/x</command-name> mean?"]),
        ("[Request interrupted by user]", []),
        ([{"type": "text", "text": "look"}, {"type": "image", "source": {}}], ["look"]),
        ([{"type": "tool_result", "tool_use_id": "1", "content": "not typed"}], []),
    ],
)
def test_what_was_typed_to_claude(content: Any, typed: list[str], tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"type": "user", "message": {"role": "user", "content": content}}) + "\n")
    assert READERS["claude"].user_texts(path, 0, None)[0] == typed


def test_nothing_of_a_side_conversation_is_taken_for_the_agents_own(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    line = {"type": "user", "isSidechain": True, "message": {"role": "user", "content": "for a helper"}}
    path.write_text(json.dumps(line) + "\n")
    assert list(READERS["claude"].entries(path, None)) == []
    assert READERS["claude"].user_texts(path, 0, None)[0] == []


def test_a_gemini_history_that_is_being_written_anew_is_not_told_twice(tmp_path: Path) -> None:
    lines = sample("gemini", "queued", tmp_path).read_bytes().splitlines(keepends=True)
    again = [row for row, line in enumerate(lines) if b"<session_context>" in line and b"$set" not in line]
    assert again
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(lines[: again[0] + 4]))  # in the middle of it
    found, place = READERS["gemini"].user_texts(path, 0, None)
    path.write_bytes(b"".join(lines))
    more, _ = READERS["gemini"].user_texts(path, place, None)
    assert [*found, *more] == [RECORDED["gemini"], *MORE]


# --- broken and strange files ---


def without_remarks(entries: list[TranscriptEntry]) -> list[TranscriptEntry]:
    return [entry for entry in entries if "could not be read" not in entry.text]


@pytest.mark.parametrize("kind", LINES)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(part=st.floats(0, 1))
def test_a_file_cut_anywhere_gives_the_beginning(kind: str, part: float, tmp_path: Path) -> None:
    source = sample(kind, "queued", tmp_path)
    whole = source.read_bytes()
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(whole[: round(part * len(whole))])
    all_of_it = list(READERS[kind].entries(source, None))
    found = list(READERS[kind].entries(cut, None))
    assert found == all_of_it[: len(found)]


@pytest.mark.parametrize("kind", LINES)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(where=st.floats(0, 1), rubbish=st.binary(min_size=1, max_size=40))
def test_rubbish_in_the_middle_costs_no_more_than_its_lines(
    kind: str, where: float, rubbish: bytes, tmp_path: Path
) -> None:
    lines = sample(kind, "queued", tmp_path).read_bytes().splitlines(keepends=True)
    row = 1 + round(where * (len(lines) - 2))
    path = tmp_path / "broken.jsonl"
    path.write_bytes(b"".join([*lines[:row], b"{!" + rubbish.replace(b"\n", b"") + b"\n", *lines[row:]]))
    found = list(READERS[kind].entries(path, None))
    whole = list(READERS[kind].entries(sample(kind, "queued", tmp_path), None))
    assert without_remarks(found) == whole
    assert "what could not be read is left out: 1 of the lines of broken.jsonl" in found[-1].text
    assert READERS[kind].user_texts(path, 0, None)[0] == [RECORDED[kind], *MORE]


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def swapped(document: Any, steps: list[int], value: Any) -> Any:
    """The document with another value somewhere in it."""
    if not steps or not isinstance(document, dict | list) or not document:
        return value
    keys = list(document) if isinstance(document, dict) else list(range(len(document)))
    key = keys[steps[0] % len(keys)]
    copy: Any = dict(document) if isinstance(document, dict) else list(document)
    copy[key] = swapped(document[key], steps[1:], value)
    return copy


@pytest.mark.parametrize("kind", LINES)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(row=st.integers(0, 500), steps=st.lists(st.integers(0, 20), min_size=1, max_size=4), value=ANYTHING)
def test_a_format_that_changed_never_raises(kind: str, row: int, steps: list[int], value: Any, tmp_path: Path) -> None:
    lines = sample(kind, "turns", tmp_path).read_text().splitlines()
    row %= len(lines)
    lines[row] = json.dumps(swapped(json.loads(lines[row]), steps, value))
    path = tmp_path / "changed.jsonl"
    path.write_text("\n".join(lines) + "\n")
    entries = list(READERS[kind].entries(path, None))
    found, _ = READERS[kind].user_texts(path, 0, None)
    assert all(isinstance(entry.text, str) for entry in entries)
    assert all(isinstance(text, str) for text in found)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(row=st.integers(0, 500), steps=st.lists(st.integers(0, 20), min_size=1, max_size=4), value=ANYTHING)
def test_a_database_that_changed_never_raises(row: int, steps: list[int], value: Any, tmp_path: Path) -> None:
    (tmp_path / "turns.db").unlink(missing_ok=True)
    path = sample("opencode", "turns", tmp_path)
    with closing(sqlite3.connect(path)) as database:
        for table in ("part", "message"):
            (count,) = database.execute(f"SELECT count(*) FROM {table}").fetchone()  # noqa: S608
            where = f"WHERE rowid = {row % count + 1}"
            (data,) = database.execute(f"SELECT data FROM {table} {where}").fetchone()  # noqa: S608
            changed = json.dumps(swapped(json.loads(data), steps, value))
            database.execute(f"UPDATE {table} SET data = ? {where}", [changed])  # noqa: S608
        database.commit()
    assert all(isinstance(entry.text, str) for entry in read("opencode", path))
    assert all(isinstance(text, str) for text in prompts(READERS["opencode"], path)[0])


@pytest.mark.parametrize("kind", TURNS)
def test_a_file_that_is_gone_holds_nothing(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "gone"
    reader = READERS[kind]
    assert [entry for entry in reader.entries(path, "x") if entry.who is not Speaker.NOTE] == []
    assert reader.mark(path, "x") == 0
    assert reader.user_texts(path, 0, "x") == ([], 0)
    assert not path.exists()


@pytest.mark.parametrize("kind", TURNS)
def test_a_pipe_in_place_of_a_file_holds_nothing_and_nobody_up(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader, found = READERS[kind], list[Any]()

    def look() -> None:
        found.append([entry for entry in reader.entries(path, "x") if entry.who is not Speaker.NOTE])
        found.append(reader.mark(path, "x"))
        found.append(reader.user_texts(path, 0, "x"))

    looker = threading.Thread(target=look, daemon=True)
    looker.start()
    looker.join(5)
    assert found == [[], 0, ([], 0)]


def test_a_device_is_no_transcript() -> None:
    with pytest.raises(OSError, match="no regular file"):
        transcript.opened(Path("/dev/zero"))


def test_a_line_without_end_is_the_last_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript, "LONGEST_LINE", 1000)
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n' + b"x" * 5000 + b'\n{"b": 2}\n')
    assert list(transcript.documents(path)) == [({"a": 1}, 9)]


def test_what_is_written_meanwhile_is_read_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("{}\n")
    places = []
    for _, place in transcript.documents(path):
        places.append(place)
        with path.open("a") as file:
            file.write("{}\n" * 100)
    assert places == [3]


def test_a_file_that_is_no_database_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "opencode.db"
    path.write_text("not a database, but long enough to be looked at as one" * 50)
    (entry,) = READERS["opencode"].entries(path, "x")
    assert entry.failed
    assert "can't be read" in entry.text
    assert READERS["opencode"].user_texts(path, 3, "x") == ([], 3)


def test_reading_a_database_does_not_change_it(tmp_path: Path) -> None:
    path = sample("opencode", "turns", tmp_path)
    path.chmod(0o400)
    before = path.read_bytes()
    assert read("opencode", path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_a_large_file_is_read_as_it_is_needed(tmp_path: Path) -> None:
    line = {"type": "user", "message": {"role": "user", "content": "again and again"}}
    path = tmp_path / "large.jsonl"
    path.write_text((json.dumps(line) + "\n") * 200_000)
    entries = READERS["claude"].entries(path, None)
    assert next(entries).text == "again and again"
    assert READERS["claude"].mark(path, None) == path.stat().st_size


@pytest.mark.parametrize("cut", [0, 1, 5])
def test_a_mark_is_behind_the_last_complete_line(cut: int, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n' + b"x" * 100_000 * (cut > 1) + b'{"b": 2}'[:cut])
    assert READERS["codex"].mark(path, None) == 9


# --- finding them ---


def put(path: Path, text: str = "{}\n", age: int = 0) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (1_000_000_000 - age, 1_000_000_000 - age))
    return path


def test_claudes_newest_of_the_workspace_is_found(tmp_path: Path) -> None:
    projects = tmp_path / ".claude" / "projects"
    old = put(projects / "-srv-app-ws" / "old.jsonl", age=9)
    new = put(projects / "-srv-app-ws" / "new.jsonl", age=5)
    put(projects / "-srv-app-ws" / "agent-1.jsonl")
    other = put(projects / "-srv-app-ws-two" / "other.jsonl")
    reader, env = READERS["claude"], {"HOME": str(tmp_path)}
    assert reader.locate(env, WORKSPACE, None) == new
    assert reader.locate(env, WORKSPACE, "old") == old
    assert reader.locate(env, WORKSPACE, "other") == other
    assert reader.locate({"HOME": "/", "CLAUDE_CONFIG_DIR": str(tmp_path / ".claude")}, WORKSPACE, None) == new
    assert reader.locate({"HOME": "/nowhere"}, WORKSPACE, None) is None
    assert reader.conversation_in(new, WORKSPACE) == "new"


def test_a_conversation_of_claudes_is_first_looked_for_where_its_workspace_keeps_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    projects, work = tmp_path / ".claude" / "projects", tmp_path / "link"
    work.symlink_to(tmp_path / "real", target_is_directory=True)
    env, dashes = {"HOME": str(tmp_path)}, str(tmp_path / "real").replace("/", "-").replace("_", "-")
    elsewhere = put(projects / "-elsewhere" / "c1.jsonl")
    assert READERS["claude"].locate(env, work, "c1") == elsewhere
    own = put(projects / dashes / "c1.jsonl", age=9)
    monkeypatch.setattr(Path, "glob", lambda *_: pytest.fail("all folders were looked through"))
    assert READERS["claude"].locate(env, work, "c1") == own


def test_claudes_long_and_foreign_directories_are_found(tmp_path: Path) -> None:
    projects = tmp_path / ".claude" / "projects"
    long = Path("/" + "/".join(["directory"] * 30))
    expected = put(projects / (str(long).replace("/", "-")[:200] + "-1x2y3z") / "a.jsonl")
    assert READERS["claude"].locate({"HOME": str(tmp_path)}, long, None) == expected
    odd = put(projects / "-srv----x-y" / "b.jsonl")
    assert READERS["claude"].locate({"HOME": str(tmp_path)}, Path("/srv/🦀_x.y"), None) == odd


def test_codexs_newest_of_the_workspace_is_found(tmp_path: Path) -> None:
    day = tmp_path / ".codex" / "sessions" / "2026" / "11" / "16"

    def rollout(name: str, age: int, **about: Any) -> Path:
        line = json.dumps({"type": "session_meta", "payload": {"cwd": "/srv/app/ws", "source": "cli", **about}})
        return put(day / f"rollout-2026-11-16T05-36-42-{name}.jsonl", line + "\n", age)

    old, new = rollout("01-old", 9), rollout("01-new", 5)
    rollout("01-helper", 1, source={"subagent": "review"})
    elsewhere = rollout("01-else", 0, cwd="/srv/other")
    reader, env = READERS["codex"], {"HOME": str(tmp_path)}
    assert reader.locate(env, WORKSPACE, None) == new
    assert reader.locate(env, WORKSPACE, "01-old") == old
    assert reader.locate({"CODEX_HOME": str(tmp_path / ".codex")}, Path("/srv/other"), None) == elsewhere
    assert reader.conversation_in(new, WORKSPACE) == "01-new"


def test_geminis_newest_of_the_workspace_is_found(tmp_path: Path) -> None:
    root = tmp_path / ".gemini"
    put(root / "projects.json", json.dumps({"projects": {"/srv/app/ws": "ws-1"}}))
    old = put(root / "tmp" / "ws-1" / "chats" / "session-1-aaaaaaaa.jsonl", '{"sessionId": "aaaaaaaa-1"}\n', 9)
    new = put(root / "tmp" / "ws-1" / "chats" / "session-2-bbbbbbbb.jsonl", '{"sessionId": "bbbbbbbb-1"}\n', 5)
    put(root / "tmp" / "ws" / "chats" / "session-3-cccccccc.jsonl", '{"sessionId": "cccccccc-1"}\n')
    reader, env = READERS["gemini"], {"HOME": str(tmp_path)}
    assert reader.locate(env, WORKSPACE, None) == new
    assert reader.locate(env, WORKSPACE, "aaaaaaaa-1") == old
    assert reader.locate(env, WORKSPACE, "aaaaaaaa-2") is None
    assert reader.conversation_in(new, WORKSPACE) == "bbbbbbbb-1"
    (root / "projects.json").write_text("[")
    put(root / "tmp" / "ws" / ".project_root", "/srv/app/ws\n")
    found = reader.locate(env, WORKSPACE, None)
    assert found is not None
    assert found.parent.parent.name == "ws"


def test_opencodes_conversations_are_told_apart(tmp_path: Path) -> None:
    data = tmp_path / ".local" / "share" / "opencode"
    data.mkdir(parents=True)
    path = sample("opencode", "turns", data).rename(data / "opencode.db")
    reader, env = READERS["opencode"], {"HOME": str(tmp_path)}
    conversation = reader.conversation_in(path, WORKSPACE)
    assert conversation is not None
    assert reader.locate(env, WORKSPACE, None) == path
    assert reader.locate({"XDG_DATA_HOME": str(tmp_path / ".local" / "share")}, WORKSPACE, conversation) == path
    assert reader.locate(env, Path("/srv/other"), None) is None
    assert reader.locate(env, WORKSPACE, "ses_other") is None
    assert list(reader.entries(path, "ses_other")) == []


@pytest.mark.parametrize("kind", TURNS)
@pytest.mark.parametrize("conversation", ["../../x", "*", "", "a/b", "a' OR 1=1 --", "\x00"])
def test_a_conversation_is_never_a_path(kind: str, conversation: str, tmp_path: Path) -> None:
    put(tmp_path / ".claude" / "projects" / "-srv-app-ws" / "a.jsonl")
    put(tmp_path / ".claude" / "x.jsonl")
    assert READERS[kind].locate({"HOME": str(tmp_path)}, WORKSPACE, conversation) is None


# --- small things ---


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"description": "lists", "command": "ls"}, "ls"),
        ({"cmd": ["bash", "-lc", "ls"]}, "bash -lc ls"),
        ({"unknown": 1}, '{"unknown": 1}'),
        ({}, ""),
        (None, ""),
        ("*** Begin Patch", "*** Begin Patch"),
    ],
)
def test_a_call_is_described_by_its_main_argument(arguments: Any, text: str) -> None:
    assert tool_call("x", arguments, time=None, call="1").text == text


@pytest.mark.parametrize("stamp", [None, "yesterday", [], 1e300, float("nan"), {}, "0001-01-01T00:00:00+14:00"])
def test_an_unreadable_time_is_left_out(stamp: Any) -> None:
    assert at(stamp) is None


@pytest.mark.parametrize(
    ("sent", "recorded", "same"),
    [("a b", "a b", True), ("a\tb \n", "a    b", True), ("a b", "ab", False), ("a", "", False)],
)
def test_prompts_are_compared_by_their_words(sent: str, recorded: str, same: bool) -> None:
    assert same_prompt(sent, recorded) is same


@pytest.mark.parametrize(
    ("program", "sample", "before"),
    [("claude", "claude-2.1.197", 3), ("codex", "codex-0.166.0", 1), ("gemini", "gemini-0.61.0", 2)],
)
def test_what_programs_write_before_anything_is_said_is_a_silent_conversation(
    tmp_path: Path, program: str, sample: str, before: int
) -> None:
    lines = (SAMPLES / sample / "turns.jsonl").read_text().splitlines(keepends=True)
    path = tmp_path / "conversation.jsonl"
    path.write_text("".join(lines[:before]))
    assert is_silent(READERS[program], path, None)
    path.write_text("".join(lines))
    assert not is_silent(READERS[program], path, None)
