"""The recordings are what rules are judged by: each says which situation it shows, and nothing of where it was made."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.real_agents.record import IN_FULL_AT, RECORDED
from tests.real_agents.situations import SITUATIONS

FILES = sorted(RECORDED.glob("*/*.json"))
WRITTEN = {"live", "hooks", "transcript", "subagent_transcripts"}
ELSEWHERE = re.compile(r"(?<![\w.-])/(root|work|home)/|muster-tests|agents-[2-9]|\.cache/")

any_recording = pytest.mark.parametrize("file", FILES, ids=lambda file: f"{file.parent.name}/{file.stem}")


def case_in(file: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return found


def test_there_are_recordings_of_every_program() -> None:
    assert {file.parent.name.partition("-")[0] for file in FILES} == {"claude", "codex", "opencode", "gemini"}


@any_recording
def test_a_recording_is_of_a_situation_that_is_known(file: Path) -> None:
    case = case_in(file)
    cli, version = case["cli"], case["version"]
    known = {one.name: one.expected for one in SITUATIONS if one.concerns(cli, version)}
    assert (file.parent.name, file.stem) == (f"{cli}-{version}", f"{case['situation']}@{case['columns']}")
    assert known.get(case["situation"]) == case["expected"]


@any_recording
def test_a_recording_was_made_once_its_situation_had_lasted(file: Path) -> None:
    case = case_in(file)
    assert case["recorded_at"] - case["began_at"] >= 1.0


@any_recording
def test_what_the_program_wrote_is_kept_at_one_width(file: Path) -> None:
    case = case_in(file)
    assert WRITTEN & set(case) == (WRITTEN if case["columns"] == IN_FULL_AT else set())


@any_recording
def test_nothing_tells_on_which_machine_it_was_made(file: Path) -> None:
    assert ELSEWHERE.findall(file.read_text(encoding="utf-8")) == []
