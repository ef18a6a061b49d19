"""`muster transcript`: from an agent's name to its conversation, and from its entries to lines for people."""

import argparse
import io
import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.cli import transcript
from services.cli.fleet_option import open_fleet
from services.cli.transcript import last_turns, one_line, render, wrapped
from services.cli.words import Paint
from shared.agents.transcript import Speaker, TranscriptEntry
from shared.client.transcript_place import TranscriptPlace
from shared.errors import MusterError

SAMPLES = Path(__file__).parents[2] / "samples" / "transcripts"
THEN = datetime(2030, 1, 2, 3, 4, 5, tzinfo=UTC)
PLAIN = Paint(io.StringIO())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A fleet file with one agent of each kind, all in the workspace of the samples; their HOME is beside it."""
    monkeypatch.setenv("TZ", "UTC")
    kinds = ("claude", "codex", "gemini", "opencode")
    declared = {
        "host": "box",
        "workspaces": ["/srv/app/ws"],
        "backends": {kind: {"binary": kind, "transcript": kind} for kind in kinds},
        "agents": {
            **{f"a-{kind}": {"backend": kind, "dir": "/srv/app/ws", "env": {"HOME": str(tmp_path)}} for kind in kinds},
            "other": {"dir": "/srv/app/ws", "backend": "aider"},
        },
    }
    path = tmp_path / "fleet.yaml"
    path.write_text(json.dumps(declared))  # JSON is YAML
    return path


def put(home: Path, kind: str) -> str:
    """Place a sample where the agent would have it; give the id of its conversation."""
    match kind:
        case "claude":
            target = home / ".claude" / "projects" / "-srv-app-ws" / "01-claude.jsonl"
        case "codex":
            target = home / ".codex" / "sessions" / "2026" / "11" / "16" / "rollout-2026-11-16T05-36-42-01-codex.jsonl"
        case "gemini":
            target = home / ".gemini" / "tmp" / "ws" / "chats" / "session-1.jsonl"
        case _:
            target = home / ".local" / "share" / "opencode" / "opencode.db"
    target.parent.mkdir(parents=True)
    (source,) = SAMPLES.glob(f"{kind}-*/turns.*")
    if kind == "gemini":
        (target.parent.parent / ".project_root").write_text("/srv/app/ws")
    if kind == "opencode":
        with closing(sqlite3.connect(target)) as database:
            database.executescript(source.read_text())
            return str(database.execute("SELECT id FROM session").fetchone()[0])
    target.write_bytes(source.read_bytes())
    if kind == "gemini":
        return str(json.loads(source.read_text().partition("\n")[0])["sessionId"])
    return f"01-{kind}"


def run(fleet: Path, *words: str) -> int:
    parser = argparse.ArgumentParser()
    transcript.arguments(parser)
    options = parser.parse_args(words)
    options.fleet = str(fleet)
    return transcript.run(options)


@pytest.mark.parametrize("kind", ["claude", "codex", "gemini", "opencode"])
def test_a_conversation_is_shown(kind: str, fleet: Path, capsys: pytest.CaptureFixture[str]) -> None:
    conversation = put(fleet.parent, kind)
    assert run(fleet, f"a-{kind}") == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.startswith(f"a-{kind} · {kind} · conversation {conversation} · {fleet.parent}")
    text = "\n".join(lines)
    assert "── Monday, 16 November 2026 ──" in text
    assert "  say hello, please\n  second line of the prompt\n" in text
    assert "  ▸ " in text
    assert "echo one; echo two; ls /nonexistent" in text
    assert "  All done." in text
    assert "\x1b" not in text


@pytest.mark.parametrize("kind", ["claude", "codex", "gemini", "opencode"])
def test_a_conversation_can_be_chosen_and_cut_to_its_last_turns(
    kind: str, fleet: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    conversation = put(fleet.parent, kind)
    assert run(fleet, f"a-{kind}", "--conversation", conversation, "--last", "2", "--json") == 0
    entries = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [entry["text"] for entry in entries if entry["who"] == "user"] == ["DO-STREAM 15", "DO-LIMIT"]
    assert entries[0]["time"].startswith("2026-11-16T05:")


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["a-cladue"], "there is no agent 'a-cladue'; did you mean 'a-claude'? there are: a-claude, a-codex"),
        (
            ["other"],
            "other runs aider, of which no transcripts are known; known: claude, codex, demo, gemini",
        ),
        (["a-claude"], "claude has no conversation in /srv/app/ws for a-claude: it begins with the first prompt"),
        (["a-codex", "--conversation", "x\x1b[2J"], "codex has no conversation 'x\\x1b[2J' for a-codex"),
    ],
)
def test_what_does_not_exist_is_reported_in_a_sentence(words: list[str], says: str, fleet: Path) -> None:
    with pytest.raises(MusterError) as told:
        run(fleet, *words)
    assert says in str(told.value)
    assert str(told.value).isprintable()


def test_transcripts_are_looked_for_by_the_agents_own_environment(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somebody/else")
    monkeypatch.setenv("CODEX_HOME", "/from/outside")
    there = TranscriptPlace.of(open_fleet(argparse.Namespace(fleet=str(fleet))), "a-codex", None)
    assert there.env["HOME"] == str(fleet.parent)
    assert there.env["CODEX_HOME"] == "/from/outside"
    assert (there.format, there.workspace) == ("codex", Path("/srv/app/ws"))


# --- for people ---


def lines(*entries: TranscriptEntry, width: int = 60, full: bool = False, paint: Paint = PLAIN) -> list[str]:
    return list(render(entries, paint, width=width, full=full))


def test_the_speaker_is_named_when_it_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = lines(
        TranscriptEntry(Speaker.USER, "do it"),
        TranscriptEntry(Speaker.THINKING, "hm"),
        TranscriptEntry(Speaker.TOOL, "ls -l\nsecond line", tool="Bash", arguments='{"command": "ls -l"}'),
        TranscriptEntry(Speaker.RESULT, "one\ntwo\n"),
        TranscriptEntry(Speaker.AGENT, "done"),
        TranscriptEntry(Speaker.NOTE, "interrupted", failed=True),
        TranscriptEntry(Speaker.USER, "again"),
        TranscriptEntry(Speaker.USER, "and again"),
    )
    assert shown == [
        *("", "user", "  do it"),
        *("", "agent", "  ┊ hm", "  ▸ Bash ls -l second line", "  ⎿ one", "    two", "", "  done", "  — interrupted"),
        *("", "user", "  again", "", "user", "  and again"),
    ]


def test_times_are_local_and_a_new_day_has_a_line() -> None:
    shown = lines(
        TranscriptEntry(Speaker.USER, "one", THEN),
        TranscriptEntry(Speaker.USER, "two", THEN),
        TranscriptEntry(Speaker.USER, "three", THEN.replace(day=9)),
    )
    assert sum(line.startswith("── ") for line in shown) == 2
    assert f"user {THEN.astimezone():%H:%M:%S}" in shown


def test_long_results_are_cut_unless_full_is_given() -> None:
    result = TranscriptEntry(Speaker.RESULT, "\n".join(f"{number} " + "x" * 99 for number in range(9)))
    shown = lines(TranscriptEntry(Speaker.AGENT, ""), result)[3:]
    assert [len(line) for line in shown[:3]] == [60] * 3
    assert shown[3].strip() == "… 6 more lines (--full)"
    assert len(lines(TranscriptEntry(Speaker.AGENT, ""), result, full=True)[3:]) == 9


def test_all_arguments_are_shown_with_full() -> None:
    call = TranscriptEntry(Speaker.TOOL, "ls", tool="Bash", arguments='{"command": "ls", "timeout": 5}')
    assert lines(call, full=True)[-1] == '  ▸ Bash {"command": "ls", "timeout": 5}'


def test_colours_are_for_terminals() -> None:
    failed = TranscriptEntry(Speaker.NOTE, "limit", failed=True)
    assert lines(failed) == ["  — limit"]
    assert lines(failed, paint=Paint(Terminal())) == ["\x1b[31m  — limit\x1b[0m"]


def test_no_color_is_honoured(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(fleet.parent, "claude")
    for value, is_coloured in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", value)
        with monkeypatch.context() as patch:
            patch.setattr("sys.stdout", terminal := Terminal())
            run(fleet, "a-claude")
        assert ("\x1b[" in terminal.getvalue()) is is_coloured


@given(text=st.text())
def test_control_characters_in_a_transcript_do_not_reach_the_terminal(text: str) -> None:
    whos = [TranscriptEntry(who, text, THEN, tool=text, arguments=text, failed=True) for who in Speaker]
    for full in (True, False):
        shown = list(render(whos, PLAIN, width=60, full=full))
        assert [line for line in shown if not line.isprintable()] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("one two three four", ["  one two", "  three four"]),
        ("    indented words here", ["      indented", "      words here"]),
        ("a\n\nb", ["  a", "", "  b"]),
        ("\tcode", ["          code"]),
        ("\n\nbegins late\n\n", ["  begins", "  late"]),
    ],
)
def test_a_broken_line_keeps_its_indentation(text: str, shown: list[str]) -> None:
    assert list(wrapped(text, 16 if "indented" in text or "code" in text else 12)) == shown


def test_one_line_is_one_line() -> None:
    assert one_line("a\n  b\tc", None) == "a b c"
    assert one_line("abcdef", 4) == "abc…"


@pytest.mark.parametrize(("count", "texts"), [(None, "xa1b2"), (1, "b2"), (2, "a1b2"), (9, "xa1b2"), (0, "")])
def test_the_last_turns(count: int | None, texts: str) -> None:
    entries = [TranscriptEntry(Speaker.USER if letter in "ab" else Speaker.AGENT, letter) for letter in "xa1b2"]
    assert "".join(entry.text for entry in last_turns(entries, count)) == texts
