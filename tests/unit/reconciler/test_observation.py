"""Whether recorded conversations are still on disk: there, moved, gone, or not to be seen."""

from pathlib import Path
from typing import Any

import pytest

from registry import AgentRecord
from services.reconciler.classification import TranscriptFile
from services.reconciler.observation import FILES_EVERY_S, ConversationFile, ConversationFiles
from shared.fleet import Declaration, Fleet
from tests.unit.reconciler.samples import record

FLEET = Fleet(Path("/f/fleet.yaml"), Declaration())


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / ".claude" / "projects" / "-work").mkdir(parents=True)
    return tmp_path


def transcript(home: Path, folder: str = "-work") -> Path:
    return home / ".claude" / "projects" / folder / "c1.jsonl"


def about(home: Path, **changes: Any) -> AgentRecord:
    return record(**{"conversation": "c1", "transcript": str(transcript(home)), **changes})


def find(home: Path, known: AgentRecord) -> ConversationFile:
    files = ConversationFiles({"HOME": str(home)})
    files.update(FLEET, {"builder": known}, 0)
    return files.of("builder", known)


def test_a_conversation_file_is_there_or_gone(home: Path) -> None:
    assert find(home, about(home)) == ConversationFile(TranscriptFile.GONE)
    transcript(home).write_text("{}\n")
    assert find(home, about(home)) == ConversationFile(TranscriptFile.THERE)


def test_a_conversation_file_may_have_moved(home: Path) -> None:
    (home / ".claude" / "projects" / "-other").mkdir()
    elsewhere = transcript(home, "-other")
    elsewhere.write_text("{}\n")
    assert find(home, about(home)) == ConversationFile(TranscriptFile.THERE, elsewhere)


def test_a_file_that_can_not_be_looked_at_is_not_gone(home: Path) -> None:
    unknown = about(home, backend="demo", transcript=str(home / "not mounted" / "c1.jsonl"))
    assert find(home, unknown) == ConversationFile(TranscriptFile.UNKNOWN)
    assert find(home, about(home, transcript="/" + "x" * 5000)) == ConversationFile(TranscriptFile.UNKNOWN)


def test_without_a_recorded_file_no_file_is_looked_for(home: Path) -> None:
    assert find(home, about(home, transcript=None)) == ConversationFile()


def test_a_file_that_is_where_it_was_is_not_looked_for_elsewhere(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    transcript(home).write_text("{}\n")
    find(home, about(home))  # reads the shipped profiles, by a glob of its own
    monkeypatch.setattr(Path, "glob", lambda *_: pytest.fail("it was looked for"))
    assert find(home, about(home)) == ConversationFile(TranscriptFile.THERE)


def test_a_clock_that_was_set_back_delays_no_look(home: Path) -> None:
    files, known = ConversationFiles({"HOME": str(home)}), about(home)
    files.update(FLEET, {"builder": known}, 10_000)
    transcript(home).write_text("{}\n")
    files.update(FLEET, {"builder": known}, 5_000)
    assert files.of("builder", known) == ConversationFile(TranscriptFile.THERE)


def test_a_file_is_looked_for_now_and_then(home: Path) -> None:
    files, known = ConversationFiles({"HOME": str(home)}), about(home)
    files.update(FLEET, {"builder": known}, 0)
    transcript(home).write_text("{}\n")
    files.update(FLEET, {"builder": known}, FILES_EVERY_S - 1)
    assert files.of("builder", known) == ConversationFile(TranscriptFile.GONE)
    files.update(FLEET, {"builder": known}, FILES_EVERY_S)
    assert files.of("builder", known) == ConversationFile(TranscriptFile.THERE)
    files.update(FLEET, {}, FILES_EVERY_S)
    assert files.of("builder", known) == ConversationFile()
