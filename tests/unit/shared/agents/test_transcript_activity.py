"""The readers as the monitor uses them: a file that grows and is replaced, and agents without a transcript."""

import json
from pathlib import Path

import pytest

from shared.agents import transcript_activity as tail
from shared.agents.transcript_activity import READINGS, JsonLinesReader, reader_for
from shared.contract.states import Activity

WORKING, WAITING = Activity.WORKING, Activity.WAITING


def note(path: Path, time: float, who: str, **more: str) -> None:
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"time": time, "who": who, "text": "x", **more}) + "\n")


def test_a_transcript_is_followed(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    reader = reader_for("demo", path, None)
    assert reader is not None
    assert reader.read() is None
    note(path, 1.0, "user")
    found = reader.read()
    assert found is not None
    assert (found.says, found.at) == (WORKING, 1.0)
    assert reader.read() is found
    note(path, 2.0, "agent")
    found = reader.read()
    assert found is not None
    assert (found.says, found.at) == (WAITING, 2.0)


def test_what_a_replaced_transcript_said_is_forgotten(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    reader = reader_for("demo", path, None)
    assert reader is not None
    note(path, 1.0, "user")
    assert reader.read() is not None
    path.write_text("{}\n")
    assert reader.read() is None
    note(path, 3.0, "user")
    assert reader.read() is not None
    path.unlink()
    assert reader.read() is None


def test_what_was_written_before_the_program_started_is_not_of_it(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    note(path, 10.0, "user")
    reader = reader_for("demo", path, None, since=20.0)
    assert reader is not None
    assert reader.read() is None
    note(path, 21.0, "user")
    assert reader.read() is not None


def test_a_long_piece_is_read_to_its_end_before_it_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.jsonl"
    note(path, 1.0, "agent")
    reader = JsonLinesReader(path, READINGS["demo"])
    assert reader.read() is not None
    note(path, 2.0, "user", text="y" * 2 * tail.BYTES_PER_READ)
    note(path, 3.0, "agent", text="z" * 2 * tail.BYTES_PER_READ)
    claims = [reader.read() for _ in range(8)]
    assert [claim.says for claim in claims if claim is not None] == [WAITING] * 8
    assert claims[-1] is not None
    assert claims[-1].at == 3.0


@pytest.mark.parametrize("kind", ["aider", "agy", "", "my-own"])
def test_a_kind_without_a_known_format_has_no_reader(kind: str, tmp_path: Path) -> None:
    assert reader_for(kind, tmp_path, "x") is None
