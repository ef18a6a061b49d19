"""Where an agent's transcript is: by its record first, then by the fleet file."""

from pathlib import Path

import pytest

from shared.client.transcript_place import TranscriptPlace
from shared.errors import MusterError
from shared.fleet import Fleet
from tests.fakes.fleets import WrittenFleet
from tests.fakes.records import make_record


@pytest.fixture
def fleet(tmp_path: Path) -> Fleet:
    env = {"CLAUDE_CONFIG_DIR": str(tmp_path / "claude")}
    agents = {"builder": {"backend": "claude", "dir": "work", "env": env}, "plain": {"backend": "aider"}}
    return WrittenFleet(tmp_path, agents).file.fleet


def kept(tmp_path: Path, workspace: str, conversation: str) -> Path:
    folder = tmp_path / "claude" / "projects" / workspace.replace("/", "-").replace("_", "-").replace(".", "-")
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{conversation}.jsonl"
    path.write_text("{}\n")
    return path


def test_the_recorded_conversation_where_it_was_recorded(fleet: Fleet, tmp_path: Path) -> None:
    path = kept(tmp_path, "/elsewhere", "c1")
    record = make_record(backend="claude", workspace="/elsewhere", conversation="c1")
    assert TranscriptPlace.of(fleet, "builder", record).find() == (path, "c1")


def test_a_recorded_conversation_that_is_gone_gives_the_newest(fleet: Fleet, tmp_path: Path) -> None:
    path = kept(tmp_path, "/elsewhere", "c2")
    record = make_record(backend="claude", workspace="/elsewhere", conversation="c1")
    assert TranscriptPlace.of(fleet, "builder", record).find() == (path, "c2")


def test_without_a_record_the_declaration_counts(fleet: Fleet, tmp_path: Path) -> None:
    path = kept(tmp_path, str(tmp_path / "work"), "c3")
    place = TranscriptPlace.of(fleet, "builder", None)
    assert place.find() == (path, "c3")
    with pytest.raises(MusterError, match="has no conversation 'c9' for builder"):
        place.find("c9")


def test_what_can_not_be_found_is_a_sentence(fleet: Fleet) -> None:
    with pytest.raises(MusterError, match="no transcripts are known"):
        TranscriptPlace.of(fleet, "plain", None).find()
    with pytest.raises(MusterError, match="stranger runs gone, which the fleet file does not know any more"):
        TranscriptPlace.of(fleet, "stranger", make_record(backend="gone"))
    with pytest.raises(MusterError, match="it begins with the first prompt"):
        TranscriptPlace.of(fleet, "stranger", make_record(backend="claude", workspace="/never/was")).find()


def test_the_recorded_file_counts_wherever_it_is(fleet: Fleet, tmp_path: Path) -> None:
    """A program that a wrapper gives another home keeps its conversations there."""
    kept(tmp_path, "/elsewhere", "c2")
    path = tmp_path / "wrapped" / "c1.jsonl"
    path.parent.mkdir()
    path.write_text("{}\n")
    record = make_record(backend="claude", workspace="/elsewhere", conversation="c1", transcript=str(path))
    assert TranscriptPlace.of(fleet, "builder", record).find() == (path, "c1")
    assert TranscriptPlace.of(fleet, "builder", record).find("c2")[1] == "c2"
    path.unlink()
    assert TranscriptPlace.of(fleet, "builder", record).find()[1] == "c2"


def test_a_scripted_agent_keeps_its_conversation_beside_the_fleet_file(fleet: Fleet) -> None:
    path = fleet.home / "demo" / "c1.jsonl"
    path.parent.mkdir()
    path.write_text("{}\n")
    record = make_record(backend="demo", conversation="c1")
    assert TranscriptPlace.of(fleet, "builder", record).find() == (path, "c1")
