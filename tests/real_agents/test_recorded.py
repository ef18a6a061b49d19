"""The recordings are what rules are judged by: each says which situation it shows, and nothing of where it was made."""

import json
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from tests.real_agents.record import IN_FULL_AT, RECORDED
from tests.real_agents.situations import SITUATIONS

FILES = sorted(RECORDED.glob("*/*.json"))
WRITTEN = {"live", "hooks", "transcript", "subagent_transcripts"}
ELSEWHERE = re.compile(r"(?<![\w.-])/(root|work|home)/|muster-tests|agents-[2-9]|\.cache/")


@cache
def recordings() -> dict[Path, dict[str, Any]]:
    return {file: json.loads(file.read_text(encoding="utf-8")) for file in FILES}


def names(files: Iterable[Path]) -> list[str]:
    return [f"{file.parent.name}/{file.stem}" for file in files]


def test_there_are_recordings_of_every_program() -> None:
    assert {file.parent.name.partition("-")[0] for file in FILES} == {"claude", "codex", "opencode", "gemini"}


def test_a_recording_is_of_a_situation_that_is_known() -> None:
    for file, case in recordings().items():
        cli, version = case["cli"], case["version"]
        known = {one.name: one.expected for one in SITUATIONS if one.concerns(cli, version)}
        assert (file.parent.name, file.stem) == (f"{cli}-{version}", f"{case['situation']}@{case['columns']}")
        assert known.get(case["situation"]) == case["expected"], file


def test_a_recording_was_made_once_its_situation_had_lasted() -> None:
    hasty = (file for file, case in recordings().items() if case["recorded_at"] - case["began_at"] < 1.0)
    assert names(hasty) == []


def test_what_the_program_wrote_is_kept_at_one_width() -> None:
    for file, case in recordings().items():
        assert WRITTEN & set(case) == (WRITTEN if case["columns"] == IN_FULL_AT else set()), file


def test_nothing_tells_on_which_machine_it_was_made() -> None:
    assert names(file for file in FILES if ELSEWHERE.search(file.read_text(encoding="utf-8"))) == []
