"""Claude's live file: each status, another process's file, half written, gone, and unchanged."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from shared.agents.claude import live_file
from shared.agents.claude.live_file import MOST_UNREADABLE, LiveFileReader, claim_of
from shared.agents.evidence import EvidenceSource
from shared.contract.states import Activity
from shared.system.processes import Process

PID, STARTED, TICKS = 4711, 1794834790.9, 250950
CLAUDE = Process(PID, 1, "claude", STARTED, TICKS)
CONVERSATION = "83eb5065-5f2d-4f37-98de-98cf65a9ee50"


def live(status: str | None, **more: Any) -> dict[str, Any]:
    return {
        "pid": PID,
        "sessionId": CONVERSATION,
        "startedAt": 1794834791586,
        "procStart": str(TICKS),
        "version": "2.1.197",
        "status": status,
        "updatedAt": 1794834794520,
        "statusUpdatedAt": 1794834794510,
        **more,
    }


@pytest.mark.parametrize(
    ("document", "says", "rule", "words"),
    [
        (live("busy"), Activity.WORKING, "busy", "busy"),
        (live("idle"), Activity.WAITING, "idle", "idle"),
        (live("shell"), Activity.WAITING, "shell", "background"),
        (live("waiting", waitingFor="permission prompt"), Activity.NEEDS_APPROVAL, "waiting", "permission prompt"),
        (live("waiting", waitingFor="dialog open"), Activity.NEEDS_APPROVAL, "menu", "dialog open"),
        (live("waiting"), Activity.NEEDS_APPROVAL, "waiting", "a person"),
        (live("waiting", waitingFor=[]), Activity.NEEDS_APPROVAL, "waiting", "a person"),
    ],
)
def test_each_status_makes_its_claim(document: dict[str, Any], says: Activity, rule: str, words: str) -> None:
    found = claim_of(document)
    assert found is not None
    assert (found.source, found.says, found.at, found.rule) == (EvidenceSource.LIVE_FILE, says, 1794834794.51, rule)
    assert words in found.why


@pytest.mark.parametrize("document", [{}, live(None), live("dreaming"), live("busy") | {"status": ["busy"]}])
def test_what_is_not_known_is_no_claim(document: dict[str, Any]) -> None:
    assert claim_of(document) is None


def test_older_files_have_other_times() -> None:
    whole = live("busy")
    for name, at in (("statusUpdatedAt", 1794834794.52), ("updatedAt", 1794834791.586), ("startedAt", 0.0)):
        del whole[name]
        found = claim_of(whole)
        assert found is not None
        assert found.at == at


class File:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.changes = 0

    def write(self, text: str) -> None:
        """With a time of its own: a test is quicker than some file systems' clocks."""
        self.changes += 1
        self.path.write_text(text)
        os.utime(self.path, ns=(0, self.changes * 10**9))


@pytest.fixture
def file(tmp_path: Path) -> File:
    return File(tmp_path / f"{PID}.json")


def says(reader: LiveFileReader) -> Activity | None:
    found = reader.read()
    return found.says if found is not None else None


def test_the_file_is_followed(file: File) -> None:
    reader = LiveFileReader(file.path, CLAUDE)
    assert (says(reader), reader.version, reader.conversation) == (None, None, None)
    file.write(json.dumps(live("idle")))
    assert (says(reader), reader.version, reader.conversation) == (Activity.WAITING, "2.1.197", CONVERSATION)
    file.write(json.dumps(live("busy")))
    assert says(reader) is Activity.WORKING
    file.path.unlink()
    assert (says(reader), reader.version, reader.conversation) == (None, None, None)


def test_an_unchanged_file_is_not_opened(file: File, monkeypatch: pytest.MonkeyPatch) -> None:
    reader = LiveFileReader(file.path, CLAUDE)
    file.write(json.dumps(live("busy")))
    assert says(reader) is Activity.WORKING
    monkeypatch.setattr(live_file, "json_in", lambda _: pytest.fail("opened"))
    assert says(reader) is Activity.WORKING


def test_a_change_within_one_tick_of_the_clock_is_seen(file: File) -> None:
    reader = LiveFileReader(file.path, CLAUDE)
    now = time.time_ns()
    for status, expected in (("busy", Activity.WORKING), ("idle", Activity.WAITING)):
        file.write(json.dumps(live(status)))  # of the same size
        os.utime(file.path, ns=(now, now))
        assert says(reader) is expected


@pytest.mark.parametrize("half", ["", json.dumps(live("idle"))[:90], "[]", "[" * 100_000, "null"])
def test_a_half_written_file_says_what_it_said_for_a_moment(half: str, file: File) -> None:
    reader = LiveFileReader(file.path, CLAUDE)
    file.write(json.dumps(live("busy")))
    assert says(reader) is Activity.WORKING
    file.write(half)
    found = [says(reader) for _ in range(MOST_UNREADABLE + 1)]
    assert found == [Activity.WORKING] * (MOST_UNREADABLE - 1) + [None] * 2
    file.write(json.dumps(live("idle")))
    assert says(reader) is Activity.WAITING


@pytest.mark.parametrize("other", [{"pid": 1}, {"procStart": "7"}, {"procStart": None}])
def test_another_processs_file_says_nothing(other: dict[str, Any], file: File) -> None:
    reader = LiveFileReader(file.path, CLAUDE)
    file.write(json.dumps(live("busy", **other)))
    assert (says(reader), reader.version, reader.conversation) == (None, None, None)


@pytest.mark.parametrize(("later", "known"), [(-0.5, True), (1.5, True), (60.0, False)])
def test_without_ticks_the_start_decides(later: float, known: bool, file: File) -> None:
    reader = LiveFileReader(file.path, Process(PID, 1, "claude", STARTED + later))
    file.write(json.dumps(live("busy")))
    assert (says(reader) is not None) is known


def test_what_is_no_file_says_nothing(tmp_path: Path) -> None:
    assert LiveFileReader(tmp_path, CLAUDE).read() is None
    assert LiveFileReader(Path("/nowhere\0"), CLAUDE).read() is None
